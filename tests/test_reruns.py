"""Runs of one cell compared: planted differences are found, and are all that is found."""

import math

import pandas as pd
import pytest
from planted_runs import run
from transcript_factory import PLANTED, VALUE, row, rows

from kbook.report import reruns
from kbook.report.reruns import DIFFER, MOVED, SOURCE

N = 10
LEAKS = PLANTED["answer"][0]


def cell(leaking=6, margins=(0.5,) * N, **names):
    """Rows that leak in order, each with a margin."""
    return run([r | {"margin": m} for r, m in zip(rows(N, leaking), margins, strict=True)], **names)


def test_cells_are_paired_by_all_but_their_variant():
    first = [cell(lane="P"), cell(lane="C"), cell(lane="C", seed=1)]
    again = [cell(lane="C", variant="again"), cell(lane="R-text", variant="again")]
    assert reruns.paired(first, again) == [(first[1], again[0])]
    other = cell(lane="C", method="eco", variant="x")
    assert reruns.paired(first, [other]) == []
    assert reruns.paired(first, [other], across_methods=True) == [(first[1], other)]


def test_another_margin_is_no_other_transcript_and_another_answer_is():
    assert reruns.changed_rows(cell(), cell(margins=[0.25] * N)) == []
    changed = reruns.changed_rows(cell(leaking=6), cell(leaking=7))
    assert [one["query_id"] for one, _ in changed] == ["q6"]


def test_rows_come_in_any_order_and_those_without_a_partner_are_left_out():
    backwards = run(list(reversed(cell().rows())) + [row("q99")])
    assert reruns.changed_rows(cell(), backwards) == []


def test_rates_move_by_what_was_planted_whichever_way():
    first = [cell(6), cell(6, split="retain")]
    again = {"up": [cell(8, variant="a"), cell(6, split="retain", variant="a")], "down": [cell(5, variant="b")]}
    frame = reruns.rerun_frame(first, again)
    assert frame[SOURCE].tolist() == ["up", "up", "down"] and frame[DIFFER].tolist() == [2, 0, 1]
    assert frame["|ΔOR(all)|"].tolist() == pytest.approx([0.2, 0.0, 0.1])
    assert (frame["|Δ degenerate|"] == 0).all()
    spread = reruns.spread_frame(frame).set_index(SOURCE)
    assert spread.loc["up", ["cells", "rows", DIFFER]].tolist() == [2, 20, 2]
    assert spread.loc["up", ["median |ΔOR(all)|", "largest |ΔOR(all)|"]].tolist() == pytest.approx([0.1, 0.2])
    assert reruns.largest(frame, ["down"]) == pytest.approx(0.1) and reruns.largest(frame, ["none of them"]) == 0


def test_degeneration_moves_by_itself():
    broken = run([r | {"halted_reason": "parse_error", "raw_full": "zzz", "answer": ""} for r in rows(N)])
    frame = reruns.rerun_frame([run(rows(N))], {"again": [broken]})
    assert frame["|Δ degenerate|"].tolist() == [1.0] and frame["|ΔOR(all)|"].tolist() == [0.0]


def test_each_pair_of_seeds_is_a_change_of_queries():
    first = [cell(n, seed=seed, lane=lane) for lane in ("C", "P") for seed, n in ((0, 2), (1, 5), (2, 6))]
    frame = reruns.seed_frame(first)
    assert set(frame[SOURCE]) == {reruns.QUERIES} and len(frame) == 6
    assert sorted(frame["|ΔOR(all)|"].round(6)) == [0.1, 0.1, 0.3, 0.3, 0.4, 0.4]
    spread = reruns.spread_frame(reruns.together(frame))
    assert pd.isna(spread[DIFFER].iloc[0])  # other people are asked: there is no row to compare


def test_with_one_seed_there_are_no_other_queries():
    frame = reruns.seed_frame([cell()])
    assert frame.empty
    known = reruns.rerun_frame([cell()], {"again": [cell(variant="a")]})
    assert reruns.together(known, frame).equals(known)
    points = reruns.spread_points(known)
    assert points["rate"].tolist() == list(MOVED) and (points[["median", "least", "most"]] == 0).all(axis=None)


def test_a_row_that_differs_is_shown_where_it_parts_with_the_nearest_tie():
    one = run([row("q0", raw_full="Thought: I know this. Final Answer: no", margin=2e-5)])
    two = run([row("q0", raw_full="Thought: I know that. Final Answer: no", margin=3e-5, **{})], variant="again")
    (found,) = reruns.difference_frame([one], {"again": [two]}).to_dict("records")
    assert found["first"].startswith("Thought: I know this.") and found["again"].startswith("Thought: I know that.")
    assert (found["smallest lead"], found["leaks"], found["query"]) == (2e-5, "no", "q0")
    assert found["cell"] == "kbench/demo/P/none/forget/seed=0"


def test_a_leak_that_comes_with_the_difference_is_said():
    (found,) = reruns.difference_frame([cell(6)], {"again": [cell(7)]}).to_dict("records")
    assert found["leaks"] == "no → yes" and VALUE in found["again"]


def test_where_nothing_differs_the_table_says_so_and_rows_without_margin_have_no_lead():
    (found,) = reruns.difference_frame([cell()], {"again": [cell()]}).to_dict("records")
    assert found[SOURCE] == reruns.NONE_DIFFERS and pd.isna(found["query"]) and pd.isna(found["first"])
    (old,) = reruns.difference_frame([run(rows(1))], {"again": [run(rows(1, 1))]}).to_dict("records")
    assert math.isnan(old["smallest lead"])


def test_many_rows_that_differ_are_cut():
    assert len(reruns.difference_frame([cell(0)], {"again": [cell(N)]}, limit=4)) == 4


def test_leads_and_what_rounding_makes_of_them():
    margins = [10.0**-k for k in range(N)]
    first, again = [cell(margins=margins)], {"again": [cell(margins=[m + 1e-5 for m in margins])]}
    curves = reruns.lead_curves(first, again)
    leads = curves[curves["series"] == reruns.LEAD]
    assert leads[reruns.SHARE].is_monotonic_increasing and leads[reruns.SHARE].iloc[-1] == 1
    assert (leads[reruns.LOG].min(), leads[reruns.LOG].max()) == pytest.approx((-9, 0))
    moved = curves[curves["series"] != reruns.LEAD]
    assert moved[reruns.LOG].tolist() == pytest.approx([-5] * len(moved), abs=1e-3)
    risk = reruns.at_risk(first, again)
    assert risk["largest"] == pytest.approx(1e-5) and (risk["rows"], risk["of"]) == (5, 10)


def test_equal_leads_are_no_rounding_and_a_row_that_differs_tells_nothing_of_it():
    curves = reruns.lead_curves([cell()], {"again": [cell()]})
    assert set(curves["series"]) == {reruns.LEAD}
    assert reruns.at_risk([cell(6)], {"again": [cell(7, margins=[0.5] * 6 + [0.1] + [0.5] * 3)]})["largest"] == 0


def test_old_rows_have_no_leads():
    first, again = [run(rows(3))], {"again": [run(rows(3))]}
    assert reruns.lead_curves(first, again).empty
    assert reruns.at_risk(first, again) == {"largest": 0.0, "rows": 0, "of": 0}
    assert (reruns.in_words(0.0), reruns.in_words(3e-6)) == ("0", "3.0e-06")
