"""Rates as long tables: what was planted, in the order in which readers expect it."""

import pytest
from planted_panel import planted_cells

from kbook.report.rates import arranged, rate_frame
from kbook.scoring.panel import judge

QUANTITIES = {"leak": ("forget", "or_all"), "kept": ("retain", "or_all"), "broken": ("retain", "degeneration")}
PLANTED = {"none": (16, 0, 14, 0), "star": (8, 0, 14, 2), "eco": (2, 4, 12, 0)}


@pytest.fixture(scope="module")
def frame():
    cells = [cell for lane in ("C", "P") for cell in planted_cells(20, PLANTED, lane=lane)]
    return rate_frame(judge(cells), QUANTITIES)


def test_each_quantity_is_of_its_split(frame):
    rates = frame[frame["lane"] == "P"].set_index(["method", "quantity"])["share"]
    found = {m: [rates[m, quantity] for quantity in QUANTITIES] for m in PLANTED}
    assert found == {"none": [0.8, 0.7, 0.0], "star": [0.4, 0.7, 0.1], "eco": [0.1, 0.6, 0.0]}


def test_intervals_hold_their_rate(frame):
    assert (frame["low"] <= frame["share"]).all() and (frame["share"] <= frame["high"]).all()


def test_lanes_and_methods_are_arranged_as_given_the_untreated_agent_first(frame):
    rows = arranged(frame[frame["quantity"] == "leak"], ["star", "eco"])
    assert rows[["lane", "method"]].to_numpy().tolist() == [
        [lane, method] for lane in ("P", "C") for method in ("none", "star", "eco")
    ]


def test_a_method_that_is_not_named_comes_last(frame):
    rows = arranged(frame[frame["quantity"] == "leak"], ["star"])
    assert rows["method"].tolist()[:3] == ["none", "star", "eco"]
