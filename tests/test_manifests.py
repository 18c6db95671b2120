"""Manifests: whole or not at all, and without the name of a machine."""

import json
import platform
import subprocess
import sys
from dataclasses import replace
from datetime import datetime

import pytest

from kbook import manifests
from kbook.manifests import MANIFEST, Manifest, damaged_files, read_manifest, write_manifest

MADE = Manifest(
    key="kbench/llama-tiny/P/none/forget/seed=0",
    digest="d" * 64,
    parts={"parameters": {"n": 8}},
    profile="smoke",
    seed=0,
    versions={"python": "3.11.7"},
    hardware={"n_cpus": 2},
    seconds=1.25,
    started="2026-01-01T00:00:00+00:00",
    ended="2026-01-01T00:00:02+00:00",
    commit={"id": "unknown", "dirty": None},
    checksums={},
    n_rows=3,
    n_batches=1,
    extra={"note": "é"},
)


def test_manifest_round_trip(tmp_path):
    write_manifest(tmp_path, MADE)
    assert read_manifest(tmp_path) == MADE


def test_no_manifest_is_none(tmp_path):
    assert read_manifest(tmp_path) is None


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace('"n_rows": 3', '"n_rows": 4'),
        lambda text: text[:-20],
        lambda text: "",
        lambda text: "[]",
        lambda text: "\x00" * 100,
        lambda text: "[" * 100_000,
        lambda text: text.replace('"seconds": 1.25', '"seconds": NaN'),
    ],
    ids=["one digit", "cut off", "empty", "a list", "zeros", "too deep", "NaN"],
)
def test_damaged_manifest_is_an_error(tmp_path, change):
    write_manifest(tmp_path, MADE)
    path = tmp_path / MANIFEST
    path.write_text(change(path.read_text()))
    with pytest.raises(ValueError, match="manifest"):
        read_manifest(tmp_path)


def test_manifest_of_a_later_schema_is_an_error(tmp_path):
    write_manifest(tmp_path, replace(MADE, schema_version=99))
    with pytest.raises(ValueError, match="schema"):
        read_manifest(tmp_path)


def test_manifest_is_readable_json_with_its_schema_version(tmp_path):
    write_manifest(tmp_path, MADE)
    content = json.loads((tmp_path / MANIFEST).read_text())
    assert content["schema_version"] == 1 and content["key"] == MADE.key


def test_damaged_files_are_the_missing_and_the_changed_ones(tmp_path):
    for name in ("good", "changed", "missing"):
        (tmp_path / name).write_bytes(name.encode())
    made = replace(MADE, checksums=manifests.checksums(tmp_path, frozenset()))
    assert damaged_files(tmp_path, made) == []
    (tmp_path / "changed").write_bytes(b"Changed!")
    (tmp_path / "missing").unlink()
    assert damaged_files(tmp_path, made) == [tmp_path / "changed", tmp_path / "missing"]


def test_checksums_leave_out_what_is_skipped_and_what_was_set_aside(tmp_path):
    for name in ("a/deep/file", "a/skip", "skip/b", "old.corrupt-0", "kept"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    assert list(manifests.checksums(tmp_path, frozenset({"skip"}))) == ["a/deep/file", "a/skip", "kept"]


def test_hardware_says_what_counts_and_not_whose_machine_it_is():
    found = manifests.hardware()
    assert found["n_cpus"] >= 1 and found["memory_gb"] > 0 and found["cpu"]
    assert platform.node() not in json.dumps(found) or not platform.node()


def test_versions_are_read_without_importing_anything_heavy():
    code = "import sys, kbook.manifests as m; print(m.versions()['torch'], 'torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    version, imported = done.stdout.split()
    assert version[0].isdigit() and imported == "False"


def test_now_is_utc():
    assert datetime.fromisoformat(manifests.now()).utcoffset().total_seconds() == 0


def test_commit_is_unknown_where_the_package_is_not_tracked(tmp_path, monkeypatch):
    monkeypatch.setattr(manifests, "PACKAGE", tmp_path)
    manifests.git_commit.cache_clear()
    assert manifests.git_commit() == {"id": "unknown", "dirty": None}
    manifests.git_commit.cache_clear()
