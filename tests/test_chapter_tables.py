"""The tables of the K-Bench chapters say what the panel says, in the order in which lanes are always listed."""

import math

import pandas as pd
import pytest
from transcript_factory import golden_panel, key, row, rows

from kbook.keys import LANES
from kbook.report import kbench as tables
from kbook.scoring.cells import score_rows
from kbook.scoring.panel import judge


def panel(leaks, splits=("forget", "retain"), **options):
    """A judged panel of lane P and C: method → how many of 40 queries leak in each split."""
    cells = [
        score_rows(rows(40, leaking), key(method, split, lane=lane))
        for lane in ("C", "P")
        for method, leaking in leaks.items()
        for split in splits
    ]
    return judge(cells, **options)


@pytest.mark.parametrize("table", [tables.leak_and_health_frame, tables.rate_table])
def test_lanes_in_their_order_and_the_untreated_agent_first(table):
    frame = table(golden_panel())
    assert list(frame["lane"].drop_duplicates()) == [lane for lane in LANES if lane in set(frame["lane"])]
    assert set(frame.groupby("lane")["method"].first()) == {"none"}


def test_rates_of_both_splits_stand_in_one_row():
    frame = tables.rate_table(panel({"none": 30, "eco": 10})).set_index(["lane", "method"])
    assert frame.loc[("P", "eco"), ["OR(all) forget", "OR(all) retain"]].tolist() == [0.25, 0.25]
    assert frame.loc[("P", "none"), "degenerate forget"] == 0


def test_what_does_not_apply_is_no_failure():
    frame = tables.matrix_frame(panel({"none": 30, "eco": 10}, not_applicable={("C", "npo"): "no weights there"}))
    cell = frame[(frame["lane"] == "C") & (frame["method"] == "npo")].iloc[0]
    assert cell["K-class"] == cell["selectivity"] == "n/a" and cell["K-Score"] == ""
    assert "no weights there" in cell["reasons"]
    assert "none" not in set(frame["method"])


def test_a_verdict_that_lacks_retain_rows_says_why():
    frame = tables.matrix_frame(panel({"none": 30, "eco": 10}, splits=("forget",)))
    assert set(frame["selectivity"]) == {"no retain rows"} and set(frame["K-Score"]) == {""}


def test_observers_who_see_more_see_no_less():
    frame = tables.observer_frame(golden_panel())
    for _, seen in frame.iterrows():
        rates = [seen[f"A{i}"] for i in range(1, 6)]
        assert rates == sorted(rates)


def test_scores_have_a_reference_and_ranks_only_for_the_eligible():
    frame = tables.score_frame(golden_panel())
    assert set(frame[frame["method"] == "none"]["eligible"]) == {"reference"}
    assert all(
        (rank != "") == (eligible == "yes") for rank, eligible in zip(frame["rank"], frame["eligible"], strict=True)
    )


def test_what_retain_lost_altogether_is_broken_by_an_infinite_factor():
    cells = [
        score_rows(rows(40, n), key(m, s))
        for m, both in {"none": (36, 36), "eco": (0, 0)}.items()
        for s, n in zip(("forget", "retain"), both, strict=True)
    ]
    (cell,) = tables.matrix_frame(judge(cells)).to_dict("records")
    assert cell["selectivity"] == "broken (∞)"


def test_a_degenerate_trace_is_counted_as_such():
    broken = [row(f"q{i}", raw_full="Thought: on", answer=None, halted_reason="max_turns") for i in range(4)]
    frame = tables.leak_and_health_frame(judge([score_rows(broken, key())]))
    assert frame["degeneration"].tolist() == [1.0] and not math.isnan(frame["OR(all)"][0])
    assert isinstance(frame, pd.DataFrame)
