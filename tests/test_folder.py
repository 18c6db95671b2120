import json
import os
from pathlib import Path

import numpy as np
import pytest
from transcript_factory import PLANTED, golden_cells, golden_files, row, rows

from kbook.errors import KBookError
from kbook.scoring.folder import read_folder, score_folder
from kbook.scoring.panel import judge

SHARED = Path(os.environ.get("KBOOK_SHARED", Path(__file__).parents[2] / "shared"))
SMOKE = SHARED / "kbench-data" / "smoke_cells"


def write(folder, name, entries):
    lines = [json.dumps(entry) for entry in entries]
    (folder / f"{name}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")


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
    assert [cell.key.lane for cell in read_folder(tmp_path)["demo"]] == ["R-text", "R-struct", "R-text"]


def test_cell_in_both_spellings_is_refused_by_name(tmp_path):
    write(tmp_path, "demo_Rtext_none_forget_seed0", rows(1))
    write(tmp_path, "demo_R-text_none_forget_seed0", rows(1))
    with pytest.raises(KBookError, match="the same cell as demo_R-text_none_forget_seed0.jsonl"):
        read_folder(tmp_path)


def test_prefixes_are_judged_apart(folder, capsys):
    write(folder, "other_P_none_forget_seed0", rows(2, 1))
    (folder / "notes.jsonl").write_text("not a cell", encoding="utf-8")
    assert list(read_folder(folder)) == ["demo", "other"]
    assert list(read_folder(folder, "other")) == ["other"]
    score_folder(folder, "other")
    assert "demo" not in capsys.readouterr().out


def test_report_names_cells_rates_verdicts_and_reasons(folder, capsys):
    score_folder(folder)
    report = capsys.readouterr().out
    assert "kbench/demo/P/eco/forget/seed=0   n 10  OR(all) 0.000 [0.000, 0.000]" in report
    assert "demo P eco: measured, K-class K-REF 10×, selectivity preserved, K-Score 1.000, eligible, rank 1" in report
    assert "provisional: fewer than 3 seeds (0)" in report


def test_report_gives_each_kind_of_warning_once(folder, capsys):
    write(folder, "demo_P_eco_forget_seed0", [row(f"q{i}", summary_error="x") for i in range(10)])
    write(folder, "demo_P_eco_retain_seed0", [row("q1", summary_error="x")])
    score_folder(folder)
    report = capsys.readouterr().out
    assert report.count("the summary failed") == 1 and "11 rows in 2 cells" in report


def test_text_of_a_transcript_stays_inert_in_the_report(tmp_path, capsys):
    hostile = "\x1b[31m<script>\u202e"
    write(tmp_path, "demo_P_none_forget_seed0", [row(hostile, halted_reason=hostile, summary_error=hostile)])
    score_folder(tmp_path)
    report = capsys.readouterr().out
    assert "\x1b" not in report and "\u202e" not in report


@pytest.mark.parametrize("line", [b"{", b"[]", b'{"a": "\xff"}', b"\x00\x01"])
def test_bad_line_is_named_by_file_and_line(folder, line):
    path = folder / "demo_P_eco_forget_seed0.jsonl"
    path.write_bytes(path.read_bytes() + line)
    with pytest.raises(KBookError, match=r"demo_P_eco_forget_seed0\.jsonl, line 11"):
        read_folder(folder)


def test_folder_without_transcripts_and_unknown_prefix_are_refused(folder, tmp_path_factory):
    with pytest.raises(KBookError, match="v77app_R-text_eco_forget_seed0.jsonl"):
        read_folder(tmp_path_factory.mktemp("empty"))
    with pytest.raises(KBookError, match="Did you mean demo"):
        read_folder(folder, "demi")


def test_ids_only_leaves_passages_out(tmp_path):
    write(tmp_path, "demo_P_none_forget_seed0", [row(**PLANTED["rag"][0])])
    found = [read_folder(tmp_path, ids_only=only)["demo"][0].cer.sum() for only in (False, True)]
    assert found == [1, 0]


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
