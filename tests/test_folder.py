import json
import os
from pathlib import Path

import numpy as np
import pytest
from transcript_factory import PLANTED, VALUE, golden_cells, golden_files, row, rows
from transcript_factory import write_cell as write

from kbook.errors import KBookError
from kbook.scoring.folder import read_folder, score_folder
from kbook.scoring.panel import judge

SHARED = Path(os.environ.get("KBOOK_SHARED", Path(__file__).parents[2] / "shared"))
SMOKE = SHARED / "kbench-data" / "smoke_cells"


@pytest.fixture
def folder(tmp_path):
    for method, leaking in (("none", 6), ("eco", 0)):
        for split in ("forget", "retain"):
            write(tmp_path, f"demo_P_{method}_{split}_seed0", rows(10, leaking if split == "forget" else 5))
    return tmp_path


def test_conformance_folder_is_read_as_its_rows_are(tmp_path):
    for name, entries in golden_files().items():
        write(tmp_path, name.removesuffix(".jsonl"), entries)
    cells = read_folder(tmp_path)["v77app"]
    assert {str(cell.key) for cell in cells} == {str(cell.key) for cell in golden_cells()}
    by_key = {cell.key: cell for cell in golden_cells()}
    for cell in cells:
        np.testing.assert_array_equal(cell.cer, by_key[cell.key].cer)


def test_both_spellings_of_a_lane_are_one_lane(tmp_path):
    write(tmp_path, "demo_Rtext_none_forget_seed0", rows(2, 1))
    write(tmp_path, "demo_R-text_eco_forget_seed0", rows(2))
    write(tmp_path, "demo_Rstruct_none_forget_seed0", rows(2, 1))
    assert [cell.key.lane for cell in read_folder(tmp_path)["demo"]] == ["R-struct", "R-text", "R-text"]


def test_cell_in_both_spellings_is_refused_by_name(tmp_path):
    write(tmp_path, "demo_Rtext_none_forget_seed0", rows(1))
    write(tmp_path, "demo_R-text_none_forget_seed0", rows(1))
    with pytest.raises(KBookError, match="the same cell as demo_R-text_none_forget_seed0.jsonl"):
        read_folder(tmp_path)


def test_prefixes_are_judged_apart(folder):
    write(folder, "other_P_none_forget_seed0", rows(2, 1))
    (folder / "notes.jsonl").write_text("not a cell", encoding="utf-8")
    scored = score_folder(folder)
    assert list(scored.panels) == ["demo", "other"] and scored.found.layout == "official files"
    assert [verdict.subject.base for verdict in scored.panels["other"].verdicts] == ["other"]
    assert list(score_folder(folder, "other").panels) == ["other"]


def test_each_kind_of_warning_on_rows_comes_once_with_its_count(folder):
    write(folder, "demo_P_eco_forget_seed0", [row(f"q{i}", summary_error="x") for i in range(10)])
    write(folder, "demo_P_eco_retain_seed0", [row("q1", summary_error="x")])
    (found,) = [w for w in score_folder(folder).warnings("demo") if w.code == "summary_error"]
    assert "11 rows in 2 cells, first 'q0' in kbench/demo/P/eco/forget/seed=0" in found.text


def test_unknown_matcher_is_refused_before_anything_is_read(folder):
    (folder / "demo_P_eco_forget_seed0.jsonl").write_bytes(b"{")
    with pytest.raises(KBookError, match="Did you mean strict"):
        score_folder(folder, rule="stric")


@pytest.mark.parametrize("line", [b"{", b"[]", b'{"a": "\xff"}', b"\x00\x01"])
def test_bad_line_is_named_by_file_and_line(folder, line):
    path = folder / "demo_P_eco_forget_seed0.jsonl"
    path.write_bytes(path.read_bytes() + line)
    with pytest.raises(KBookError, match=r"demo_P_eco_forget_seed0\.jsonl, line 11"):
        read_folder(folder)


def test_line_beyond_reason_is_refused_by_its_size_and_one_below_is_read(folder):
    path = folder / "demo_P_eco_forget_seed0.jsonl"
    before = path.read_bytes()
    path.write_bytes(before + json.dumps(row("big", raw_Z_summary="x" * 1_000_000)).encode())
    assert read_folder(folder)["demo"][0].n == 11
    path.write_bytes(before + b" " * 50_000_000 + b"{}")
    with pytest.raises(KBookError, match=r"line 11: a line of 50.0 MB, of which at most 16 MB are read"):
        read_folder(folder)


def test_nan_is_a_value_that_was_not_recorded(folder):
    write(folder, "demo_P_eco_forget_seed0", [row("q0", raw_Z_summary=float("nan"))])
    cell = next(c for c in read_folder(folder)["demo"] if (c.key.method, c.key.split) == ("eco", "forget"))
    assert {"odd_value", "missing_summary"} <= {warning.code for warning in cell.warnings}


def test_last_row_of_a_query_counts_and_the_repetition_is_named(folder):
    write(folder, "demo_P_eco_forget_seed0", [row("q0", raw_Z_summary=VALUE), row("q0")])
    scored = score_folder(folder)
    assert scored.panels["demo"].tests[0].test.or_method == 0
    assert "query_repeated" in {warning.code for warning in scored.warnings("demo")}


def test_folder_without_transcripts_and_unknown_prefix_are_refused(folder, tmp_path_factory):
    with pytest.raises(KBookError, match="v77app_R-text_eco_forget_seed0.jsonl"):
        read_folder(tmp_path_factory.mktemp("empty"))
    with pytest.raises(KBookError, match="Did you mean demo"):
        read_folder(folder, "demi")
    with pytest.raises(KBookError, match="no-such: is not a folder"):
        read_folder(folder / "no-such")


@pytest.mark.parametrize("prefix", ["<b>", "a b", "\u202e"])
def test_name_that_cannot_be_a_key_is_refused_by_its_file(tmp_path, prefix):
    write(tmp_path, f"{prefix}_P_none_forget_seed0", [row()])
    with pytest.raises(KBookError, match="_P_none_forget_seed0.*cannot be the base of a key"):
        read_folder(tmp_path)


def test_ids_only_leaves_passages_out(tmp_path):
    write(tmp_path, "demo_P_none_forget_seed0", [row(**PLANTED["rag"][0])])
    found = [read_folder(tmp_path, ids_only=only)["demo"][0].cer.sum() for only in (False, True)]
    assert found == [1, 0]


def test_rows_of_an_interface_are_scored_and_without_retain_there_is_no_k_score(tmp_path):
    bare = {"raw_full": f"They work at {VALUE}.", "answer": None, "halted_reason": "parse_error"}
    interface = {"api_incidents": [], "api_retries": 0, "raw_reasoning": ["hm"]}
    for method in ("none", "star"):
        write(tmp_path, f"api_C_{method}_forget_seed0", [row(f"q{i}", **bare, **interface) for i in range(4)])
    panel = score_folder(tmp_path).panels["api"]
    assert panel.tests[0].test.or_method == 1
    reasons = panel.verdicts[1].reasons
    assert "there is no retain cell of star, hence no Δ_sel and no K-Score" in reasons


def test_what_does_not_apply_is_told_by_a_file_and_is_no_gap(folder):
    write(folder, "demo_C_none_forget_seed0", rows(10, 6))
    assert "lane_not_measured" in {warning.code for warning in score_folder(folder).warnings("demo")}
    stated = [{"lane": "C", "method": "eco", "reason": "it acts on weights"}]
    (folder / "not_applicable.json").write_text(json.dumps(stated))
    scored = score_folder(folder)
    (found,) = [v for v in scored.panels["demo"].verdicts if v.status == "not applicable"]
    assert (found.subject.lane, found.reasons) == ("C", ("it acts on weights",))
    assert "lane_not_measured" not in {warning.code for warning in scored.warnings("demo")}


@pytest.mark.parametrize(
    "content", ["{}", "[1]", '[{"lane": "C"}]', "[", '[{"lane": "X", "method": "a", "reason": "b"}]']
)
def test_list_of_what_does_not_apply_is_checked(folder, content):
    (folder / "not_applicable.json").write_text(content)
    with pytest.raises(KBookError, match="not_applicable.json"):
        score_folder(folder)


def test_cell_with_fewer_queries_than_its_sidecar_says_is_named(folder):
    sidecar = {"substrate": "P", "query_subset": "forget", "seed": 0, "n_sample": 200}
    (folder / "demo_P_eco_forget_seed0.config.json").write_text(json.dumps(sidecar))
    found = {warning.code: str(warning) for warning in score_folder(folder).warnings("demo")}
    assert found["cell_incomplete"] == "kbench/demo/P/eco/forget/seed=0: it has 10 queries, of 200 that were asked"
    assert found["sidecar_missing"].startswith("demo: 3 of 4 cells have no sidecar")


@pytest.mark.skipif(not SMOKE.is_dir(), reason="the official smoke cells are not here")
def test_smoke_cells_of_the_oldest_format_are_scored_from_their_leakage():
    panel = judge(read_folder(SMOKE)["smoke"])
    demo = panel.verdicts[1]
    rates = {cell.key.method: summary for cell, summary in zip(panel.cells, panel.summaries, strict=True)}
    assert {"none", "demo"} == set(rates)
    assert demo.k_class.text == "measured failure" and demo.provisional
    budgets = {seen.budget: (seen.or_none, seen.or_method) for seen in panel.budgets}
    assert budgets["A1"] == (1, 0) and budgets["A2"] == (1, 1)
    assert {w.code for cell in panel.cells for w in cell.warnings} == {
        "value_missing",
        "raw_missing",
        "scored_from_leakage",
    }
