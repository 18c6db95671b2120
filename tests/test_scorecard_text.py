import pytest
from transcript_factory import row, rows, write_cell

from kbook.report.scorecard_text import report_lines
from kbook.scoring.folder import score_folder


@pytest.fixture
def folder(tmp_path):
    for method, leaking in (("none", 6), ("eco", 0)):
        for split in ("forget", "retain"):
            write_cell(tmp_path, f"demo_P_{method}_{split}_seed0", rows(10, leaking if split == "forget" else 5))
    return tmp_path


def report(folder):
    return "\n".join(report_lines(score_folder(folder)))


def test_report_names_cells_rates_verdicts_and_reasons(folder):
    found = report(folder)
    assert "kbench/demo/P/eco/forget/seed=0   n 10  OR(all) 0.000 [0.000, 0.000]" in found
    verdict = "demo P eco: measured, K-class K-REF 10×, selectivity preserved, K-Score 1.000, eligible, rank 1"
    assert f"{verdict}, provisional\n" in found
    assert "provisional: fewer than 3 seeds (0)" in found


def test_warnings_come_with_their_names(folder):
    assert "  [sidecar_missing] demo: 4 of 4 cells have no sidecar" in report(folder)


def test_verdict_without_retain_has_no_k_score_and_says_why(folder):
    for path in folder.glob("*retain*"):
        path.unlink()
    found = report(folder)
    assert "demo P eco: measured, K-class K-REF 10×, no K-Score, eligibility unknown, provisional" in found
    assert "there is no retain cell of eco, hence no Δ_sel and no K-Score" in found


def test_tables_stand_one_after_the_other(folder):
    write_cell(folder, "other_C_none_forget_seed0", rows(2, 1))
    found = report(folder)
    assert found.index("demo: 4 cells") < found.index("other: 1 cells")


def test_text_of_a_transcript_stays_inert_in_the_report(tmp_path):
    hostile = "\x1b[31m<script>\u202e"
    path = write_cell(tmp_path, "demo_P_none_forget_seed0", [row(hostile, summary_error=hostile)])
    path.with_name("not_applicable.json").write_text('[{"lane": "C", "method": "eco", "reason": "\\u001b[2J\\u202e"}]')
    found = report(tmp_path)
    assert "\x1b" not in found and "\u202e" not in found and "␛[2J⟨U+202E⟩" in found
