"""An artifact says where it comes from, travels as JSON, and shows without markup from its data."""

import json
from dataclasses import replace
from types import SimpleNamespace

import pytest

from kbook.report.artifacts import (
    MIME,
    Artifact,
    Provenance,
    RunRecord,
    commit_text,
    duration,
    minute,
    several,
)


def record(seed=0, ended="2026-01-02T03:04:05+00:00", seconds=30.0):
    key = f"kbench/llama-tiny/P/none/forget/seed={seed}"
    return RunRecord(key, "d" * 64, "smoke", seconds, ended, "abc")


def test_a_run_is_recorded_from_its_manifest():
    manifest = SimpleNamespace(
        profile="smoke",
        seconds=1.5,
        ended="2026-01-02T03:04:05+00:00",
        commit={"id": "0123456789abc", "dirty": True},
    )
    run = SimpleNamespace(key="kbench/a/P/none/forget/seed=0", digest="f" * 64, manifest=manifest)
    assert RunRecord.of(run).commit == "0123456789 with changes"
    assert RunRecord.of(run).seconds == 1.5


def test_measured_names_profile_base_runs_days_and_time():
    runs = (record(0), record(137, ended="2026-01-03T00:00:00+00:00", seconds=90.0))
    sentence = Provenance("measured", runs).sentence()
    assert sentence == "Measured here · profile smoke · base llama-tiny · 2 runs, 2026-01-02 to 2026-01-03, 2 min"


def test_of_stored_data_the_maker_is_named_in_place_of_a_base():
    data = replace(record(), key="cllpu/data=pairs/seed=0/variant=world-almanac")
    assert "profile smoke · made by world-almanac · 1 run" in Provenance("measured", (data,)).sentence()
    both = Provenance("measured", (data, record())).sentence()
    assert "base llama-tiny · made by world-almanac · 2 runs" in both


def test_one_run_is_named():
    assert (
        "1 run (kbench/llama-tiny/P/none/forget/seed=0), 2026-01-02, 30 s"
        in Provenance("measured", (record(),)).sentence()
    )


def test_published_says_that_it_was_not_measured():
    assert Provenance("published", (), ("A paper, Table 5",)).sentence() == (
        "Published numbers, not measured here: A paper, Table 5"
    )


def test_scored_says_whose_transcripts_they_were():
    assert Provenance("scored", (), ("table demo of a folder",)).sentence() == (
        "Scored here, from transcripts that were given: table demo of a folder"
    )


def test_measured_beside_published_names_both():
    sentence = Provenance("measured", (record(),), ("A paper, Table 5",)).sentence()
    assert sentence.startswith("Measured here") and sentence.endswith("what is marked published: A paper, Table 5")


def test_a_payload_is_json_and_reads_back_equal():
    artifact = Artifact(
        "fig-a-b", "A caption.", Provenance("measured", (record(),)), "x\n1\n", svg="<svg/>", alt="A point"
    )
    assert Artifact.of(json.loads(json.dumps(artifact.payload()))) == artifact


def test_the_preview_escapes_caption_and_alt():
    artifact = Artifact("fig-a-b", "<script>", Provenance("constructed"), "x\n", svg="<svg/>", alt='"><script>')
    bundle = artifact._repr_mimebundle_()
    assert "<script>" not in bundle["text/html"] and "data (CSV)" in bundle["text/html"]
    assert bundle[MIME]["caption"] == "<script>"


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.2, "under 1 s"), (1, "1 s"), (89, "89 s"), (90, "2 min"), (5399, "90 min"), (7200, "2.0 h")],
)
def test_times_are_written_as_said(seconds, words):
    assert duration(seconds) == words


def test_small_words():
    assert several(["a", "a"], "base") == "base a" and several(["a", "b"], "base") == "bases a, b"
    assert minute("2026-01-02T03:04:05+00:00") == "2026-01-02 03:04"
    assert commit_text({"id": "0123456789abc", "dirty": None}) == "0123456789"
