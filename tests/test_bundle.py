"""What a bundle must withstand: it came from somebody else."""

import hashlib
import json
import os

import pytest
from transcript_factory import rows, write_cell

from kbook.errors import KBookError
from kbook.scoring.bundle import is_own, seal
from kbook.scoring.folder import find_cells, score_folder
from kbook.scoring.packing import write_bundle

FILE = "cells/demo_P_eco_forget_seed0.jsonl"


@pytest.fixture
def bundle(tmp_path):
    for method in ("none", "eco"):
        for split in ("forget", "retain"):
            config = {"substrate": "P", "query_subset": split, "seed": 0, "n_sample": 4, "api_model": None}
            stem = f"demo_P_{method}_{split}_seed0"
            write_cell(tmp_path, stem, rows(4, 2), config | {"model": "m", "base_model": "m"})
    write_bundle(tmp_path, tmp_path / "b")
    return tmp_path / "b"


def forge(bundle, change, sealed=True):
    """Rewrite the manifest as an attacker would, its own digest made right again."""
    path = bundle / "bundle.json"
    manifest = json.loads(path.read_text())
    manifest.pop("self")
    change(manifest)
    path.write_text(json.dumps(seal(manifest) if sealed else manifest))
    return bundle


def entry(manifest, file=FILE):
    return next(cell for cell in manifest["cells"] if cell["file"] == file)


def refused(bundle, match):
    with pytest.raises(KBookError, match=match):
        find_cells(bundle)


def test_control_a_sound_bundle_is_opened_without_a_word(bundle):
    found = find_cells(bundle)
    assert len(found.sources) == 4 and found.notices == () and is_own(bundle)


def test_manifest_that_was_edited_is_refused(bundle):
    path = bundle / "bundle.json"
    path.write_text(path.read_text().replace('"made_by": "kbook', '"made_by": "hook'))
    refused(bundle, "was changed after it was written")


@pytest.mark.parametrize("content", [b"", b"[]", b"{", b"\xff", b'{"schema": "kbench-transcript-bundle@9"}'])
def test_manifest_that_is_none_is_refused(bundle, content):
    (bundle / "bundle.json").write_bytes(content)
    refused(bundle, r"bundle\.json: (not a manifest|the schema is)")


@pytest.mark.parametrize("cells", [[], {}, [1], None])
def test_manifest_without_cells_is_refused(bundle, cells):
    refused(forge(bundle, lambda m: m.update(cells=cells)), "lists no cells")


@pytest.mark.parametrize("suffix", ["jsonl", "config.json"])
def test_file_with_another_content_is_refused_by_name(bundle, suffix):
    path = bundle / "cells" / f"demo_P_eco_forget_seed0.{suffix}"
    path.write_bytes(path.read_bytes() + b" ")
    refused(bundle, rf"demo_P_eco_forget_seed0\.{suffix}: has another checksum than the manifest says")


def test_file_that_is_missing_is_refused_by_name(bundle):
    (bundle / FILE).unlink()
    refused(bundle, "demo_P_eco_forget_seed0.jsonl: is missing from the bundle")


@pytest.mark.parametrize("checksum", [None, "", "abc", 7])
def test_cell_without_a_checksum_is_refused(bundle, checksum):
    def change(manifest):
        entry(manifest)["sha256"] = checksum
        manifest["files"][FILE]["sha256"] = checksum

    refused(forge(bundle, change), "has no checksum in the manifest")


def test_two_checksums_for_one_file_are_refused(bundle):
    refused(forge(bundle, lambda m: entry(m).update(sha256="0" * 64)), "two checksums for cells/demo_P_eco_forget")


ESCAPES = [
    "../demo_P_eco_forget_seed0.jsonl",
    "cells/../../demo_P_eco_forget_seed0.jsonl",
    "/etc/passwd",
    "..\\demo_P_eco_forget_seed0.jsonl",
    "",
]


@pytest.mark.parametrize("name", ESCAPES)
def test_path_that_leaves_the_bundle_is_refused_before_it_is_opened(bundle, name, monkeypatch):
    outside = bundle.parent / "demo_P_eco_forget_seed0.jsonl"
    checksum = hashlib.sha256(outside.read_bytes()).hexdigest()

    def change(manifest):
        manifest["files"][name] = {"sha256": checksum}
        entry(manifest).update(file=name, sha256=checksum)

    refused(forge(bundle, change), "leaves the bundle")


@pytest.mark.parametrize("what", ["file", "folder"])
def test_symbolic_link_is_refused_wherever_it_leads(bundle, what):
    target = bundle / ("cells" if what == "folder" else FILE)
    target.rename(bundle.parent / "moved")
    target.symlink_to(bundle.parent / "moved")
    refused(bundle, "leads through a symbolic link")


def test_manifest_that_is_a_link_is_refused(bundle):
    (bundle / "bundle.json").rename(bundle.parent / "elsewhere.json")
    (bundle / "bundle.json").symlink_to(bundle.parent / "elsewhere.json")
    refused(bundle, "leads through a symbolic link")


def test_pipe_in_place_of_a_file_is_not_waited_for(bundle):
    (bundle / FILE).unlink()
    os.mkfifo(bundle / FILE)
    refused(bundle, "is missing from the bundle")


@pytest.mark.parametrize("part", [{"seed": 137}, {"method": "star"}, {"substrate": "C"}, {"prefix": "other"}])
def test_entry_that_contradicts_its_name_is_refused(bundle, part):
    refused(forge(bundle, lambda m: entry(m).update(part)), "contradicts its name")


@pytest.mark.parametrize("key", ["kbench/demo/P/star/forget/seed=0", "kbench/demo/C/eco/forget/seed=0", "x", 7])
def test_stated_key_of_another_cell_is_refused(bundle, key):
    refused(forge(bundle, lambda m: entry(m)["kbook"].update(key=key)), "is not (that of the file|a key)")


def test_stated_table_is_a_name_or_refused(bundle):
    refused(forge(bundle, lambda m: entry(m)["kbook"].update(table="<b>\u202e")), "cannot be the base of a key")


def test_sidecar_of_another_cell_or_beside_the_cell_is_refused(bundle):
    def other(manifest):
        entry(manifest)["provenance"]["harness_sidecar_config"]["seed"] = 137

    refused(forge(bundle, other), "the sidecar says seed 137")

    def different(manifest):
        entry(manifest)["provenance"]["harness_sidecar_config"].update(seed=0, model="another")

    refused(forge(bundle, different), "says something else than the manifest")


def test_bases_that_differ_are_refused_although_all_checksums_are_right(bundle):
    path = bundle / "cells" / "demo_P_eco_retain_seed0.config.json"
    config = json.loads(path.read_text()) | {"base_model": "other"}
    path.write_text(json.dumps(config))

    def change(manifest):
        name = "cells/demo_P_eco_retain_seed0"
        entry(manifest, f"{name}.jsonl")["provenance"]["harness_sidecar_config"] = config
        manifest["files"][f"{name}.config.json"]["sha256"] = hashlib.sha256(path.read_bytes()).hexdigest()

    forge(bundle, change)
    with pytest.raises(KBookError, match="comes from another base: m and other|comes from another base: other and m"):
        score_folder(bundle)


@pytest.mark.parametrize("role", ["retain", "reference_forget", "reference_retain"])
def test_pairing_with_another_cell_than_by_name_is_refused(bundle, role):
    refused(forge(bundle, lambda m: m["pairings"][0].update({role: FILE})), f"as {role}; by its name it is")


def test_pairing_of_an_unknown_cell_is_refused_and_an_absent_one_named(bundle):
    refused(forge(bundle, lambda m: m["pairings"].append({"forget": "cells/x"})), "no treated forget cell")
    refused(forge(bundle, lambda m: m.update(pairings={})), "pairings is no list of objects")


def test_file_that_is_not_listed_is_named_and_not_read(bundle):
    write_cell(bundle / "cells", "demo_P_star_forget_seed0", rows(1))
    found = find_cells(bundle)
    assert [str(n) for n in found.notices] == [
        "cells/demo_P_star_forget_seed0.jsonl: is not listed in the manifest and is not read"
    ]
    assert {source.key.method for source in found.sources} == {"none", "eco"} and not is_own(bundle)


def test_bundle_with_the_words_of_the_public_schema_alone_is_read(bundle):
    """Without what K-Book adds: checksums of sidecars, tables, keys, a digest of the manifest."""

    def public(manifest):
        for name in ("files", "made_by", "not_applicable"):
            del manifest[name]
        for cell in manifest["cells"]:
            del cell["kbook"], cell["sidecar"]

    forge(bundle, public, sealed=False)
    for path in (bundle / "cells").glob("*.config.json"):
        path.unlink()
    found = find_cells(bundle)
    assert found.prefixes == ("demo",) and found.notices == () and found.sources[0].config["base_model"] == "m"


PUBLIC = {"schema", "created_at", "kbench_version", "scorer_version", "run_identity", "provenance", "cells", "pairings"}
PUBLIC_CELL = {"file", "prefix", "model", "base_model", "method", "substrate", "split", "seed", "n", "api", "sha256"}


def test_every_word_of_the_public_schema_is_written(bundle):
    manifest = json.loads((bundle / "bundle.json").read_text())
    assert set(manifest) >= PUBLIC and manifest["scorer_version"] == "v2"
    assert all(set(cell) >= PUBLIC_CELL | {"provenance", "comparable"} for cell in manifest["cells"])
    configs = {cell["file"]: cell["provenance"]["harness_sidecar_config"] for cell in manifest["cells"]}
    assert manifest["provenance"]["harness_sidecar_configs"] == configs
