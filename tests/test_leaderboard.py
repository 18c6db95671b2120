"""Ranks behind gates, base by base; agreement only over what both have; the paper's numbers in columns of their own."""

import math
from dataclasses import dataclass
from itertools import permutations
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest
from planted_panel import planted_panel

from kbook.keys import AnyKey, ModelKey
from kbook.methods.registry import METHODS
from kbook.report import leaderboard
from kbook.report.fits import NO_OP, STOPPED, Note
from kbook.report.published import MARK
from kbook.scoring.panel import judge

N = 40
NONE = (32, 0, 32, 0)
PLANTED = {
    "none": NONE,
    "wrecks": (0, 40, 0, 40),  # collapses
    "stammers": (4, 14, 26, 0),  # breaks a third of the forget traces
    "erases": (2, 0, 8, 0),  # loses the retain split
    "forgets": (8, 0, 32, 0),
    "slightly": (24, 0, 32, 0),
    "idle": NONE,
}
NAMES = [name for name in PLANTED if name != "none"]


@pytest.fixture(scope="module")
def board():
    return on_board()


def on_board():
    return leaderboard.board_frame([planted_panel(N, PLANTED)], NAMES)


def on_base(base, suppression):
    """Rows of a board: method → suppression and K-Score."""
    rows = [{"base": base, "method": m, "suppression": s, "K-Score": s} for m, s in suppression.items()]
    return pd.DataFrame(rows)


def test_each_is_refused_for_what_it_lost_or_broke_and_the_rest_are_ranked_by_suppression(board):
    frame = board.set_index("method")
    assert list(frame.index) == NAMES
    assert frame["refused by"].to_dict() == {
        "wrecks": "collapsed, degenerate, retain lost",
        "stammers": "degenerate",
        "erases": "retain lost",
        "forgets": "–",
        "slightly": "–",
        "idle": "–",
    }
    assert frame["rank"].dropna().to_dict() == {"forgets": 1, "slightly": 2, "idle": 3}
    assert frame.loc["wrecks", "suppression"] == 1 and frame.loc["forgets", "K-Score"] == pytest.approx(0.8, abs=0.05)


def test_who_did_nothing_is_not_ranked_and_who_broke_off_is_marked():
    notes = [Note("demo", "P", "idle", NO_OP, ""), Note("demo", "P", "forgets", STOPPED, "")]
    board = leaderboard.board_frame([planted_panel(N, PLANTED)], NAMES, notes)
    frame = board.set_index("method")
    assert frame.loc["idle", ["eligible", "refused by", "K-class"]].tolist() == ["no", NO_OP, NO_OP]
    assert frame["rank"].dropna().to_dict() == {"forgets": 1, "slightly": 2}
    places = leaderboard.place_frame(board).set_index("method")["place"]
    assert places["forgets"].startswith("rank 1 †") and places["idle"] == NO_OP
    leading = leaderboard.board_frame([planted_panel(N, PLANTED)], NAMES, [Note("demo", "P", "forgets", NO_OP, "")])
    assert leaderboard.leader_frame(leading)["best K-Score"].tolist() != ["forgets"]
    assert leaderboard.leader_frame(board)["best K-Score"].tolist() == ["forgets"]
    assert leaderboard.eligible_frame(board)["method"].tolist() == ["forgets †", "slightly"]


def test_the_matrix_has_the_best_first_and_tints_by_what_happened(board):
    frame = leaderboard.place_frame(board)
    assert frame["method"].tolist()[:3] == ["forgets", "slightly", "idle"] and frame["method"].iloc[-1] == "wrecks"
    tints = leaderboard.place_tints(frame["place"])
    by_method = frame.set_index("method")["place"].map(tints)
    assert by_method["wrecks"] == by_method["stammers"] != by_method["erases"] != by_method["forgets"]


def test_the_table_of_the_eligible_is_in_the_units_of_the_papers(board):
    first = leaderboard.eligible_frame(board).iloc[0]
    assert first["method"] == "forgets" and first["rank"] == 1
    assert first["retain kept, %"] == pytest.approx(100) and first["degeneration added, points"] == 0


def test_a_base_on_which_nobody_is_eligible_says_so():
    board = leaderboard.board_frame([planted_panel(N, {"none": NONE, "wrecks": PLANTED["wrecks"]})], ["wrecks"])
    (row,) = leaderboard.eligible_frame(board).to_dict("records")
    assert row["method"] == "nobody is eligible" and math.isnan(row["suppression"])
    (leader,) = leaderboard.leader_frame(board).to_dict("records")
    assert (leader["first among the eligible"], leader["eligible"]) == ("nobody", "0 of 1")
    assert leaderboard.everywhere_in_words(board) == "none"


def test_a_base_whose_lane_leaks_nothing_is_excluded_and_not_ranked():
    board = leaderboard.board_frame([planted_panel(N, {"none": (0, 0, 0, 0), "ga": (0, 0, 0, 0)})], ["ga"])
    (row,) = board.to_dict("records")
    assert row["refused by"] == "excluded" and row["eligible"] == "no" and math.isnan(row["K-Score"])
    assert leaderboard.place_frame(board)["place"].tolist() == ["excluded"]
    assert leaderboard.leader_frame(board)["best K-Score"].tolist() == ["–"]


def test_leaders_of_each_base_and_who_is_eligible_on_all():
    other = {**PLANTED, "forgets": (8, 20, 32, 0), "slightly": (20, 0, 32, 0)}
    panels = [planted_panel(N, PLANTED, base="one"), planted_panel(N, other, base="two")]
    board = leaderboard.board_frame(panels, NAMES)
    frame = leaderboard.leader_frame(board).set_index("base")
    assert frame["first among the eligible"].to_dict() == {"one": "forgets", "two": "slightly"}
    assert frame.loc["one", "refused"] == "1 collapsed, 1 degenerate, 1 retain lost"
    assert leaderboard.everywhere_in_words(board) == "slightly, idle"


def test_the_same_order_agrees_fully_and_the_opposite_not_at_all():
    order = {f"m{i}": i / 10 for i in range(5)}
    turned = {m: -s for m, s in order.items()}
    board = pd.concat([on_base("one", order), on_base("two", order), on_base("three", turned)])
    frame = leaderboard.agreement_frame(board).set_index(["base", "other base", "order by"])
    assert frame.loc[("one", "two", "suppression"), ["Kendall τ", "Spearman ρ"]].tolist() == pytest.approx([1, 1])
    assert frame.loc[("two", "three", "K-Score"), ["Kendall τ", "Spearman ρ"]].tolist() == pytest.approx([-1, -1])
    assert len(frame) == 3 * 2


def test_only_common_methods_are_compared_and_the_smallest_p_is_what_so_few_can_give():
    """τ of all orders of three by hand: the number of pairs in the same order, less the others, over three."""
    first = {"a": 3.0, "b": 2.0, "c": 1.0, "only here": 9.0}
    for order in permutations((3.0, 2.0, 1.0)):
        second = dict(zip("abc", order, strict=True)) | {"only there": 0.0}
        frame = leaderboard.agreement_frame(pd.concat([on_base("one", first), on_base("two", second)]))
        pairs = [(x, y) for i, x in enumerate(order) for y in order[i + 1 :]]
        by_hand = sum(1 if x > y else -1 for x, y in pairs) / 3
        row = frame.iloc[0]
        assert row["methods"] == 3 and row["Kendall τ"] == pytest.approx(by_hand)
        assert row["smallest possible p"] == pytest.approx(1 / 3) and row["p"] >= 1 / 3 - 1e-9


def test_a_single_base_or_ties_give_no_agreement_and_no_error():
    alone = leaderboard.agreement_frame(on_base("one", {"a": 1.0, "b": 0.5}))
    assert set(alone["other base"]) == {"no other base"} and alone["Kendall τ"].isna().all()
    tied = pd.concat([on_base("one", {"a": 1.0, "b": 1.0}), on_base("two", {"a": 1.0, "b": 0.5})])
    assert leaderboard.agreement_frame(tied)["Kendall τ"].isna().all()


def test_agreement_with_the_paper_is_over_the_methods_that_both_have():
    mine = {"rmu": 0.9, "law": 0.8, "revs": 0.7, "elm": 0.6, "npo": 1.0}  # the paper's order on Mistral, and npo
    frame = leaderboard.published_agreement(on_base("demo", mine)).set_index("base of the paper")
    mistral = frame.loc["Mistral-7B"]
    assert (mistral["methods"], mistral[f"first of these{MARK}"]) == (4, "rmu")
    assert mistral["Kendall τ"] == pytest.approx(1)
    assert frame.loc["Llama-3.1-8B", "methods"] == 1 and math.isnan(frame.loc["Llama-3.1-8B", "Kendall τ"])
    none = leaderboard.published_agreement(on_base("demo", {"npo": 1.0}))
    assert set(none[f"first of these{MARK}"]) == {"nobody"} and set(none["methods"]) == {0}


def test_every_published_name_is_one_of_ours():
    frame = leaderboard.published_eligible().frame
    names = {leaderboard.our_name(name) for name in frame["method"]}
    assert names <= set(METHODS) and "undial" in names
    ours = leaderboard.eligible_frame(on_board())
    assert [name.removesuffix(MARK) for name in frame] == [name for name in ours if name != "rank"]


def test_published_tables_hold_their_rows_alone():
    recipes = leaderboard.published_recipes().frame
    assert recipes["quantity"].str.contains("NPO|GA|IDK").all() and len(recipes)
    assert leaderboard.published_leaders().frame["quantity"].str.startswith("K-Score leader").all()


@dataclass(frozen=True)
class Edit:
    key: AnyKey
    manifest: Any
    digest: str = "d"


def test_the_case_study_sets_the_fitted_people_beside_the_others(board):
    losses = {"before": {"forget": 0.5, "retain": 0.5}, "after": {"forget": 7.25, "retain": 0.75}}
    edit = Edit(ModelKey("kbench", "demo", "forgets", 0, "inject-full"), SimpleNamespace(extra={"nll": losses}))
    frame = leaderboard.case_frame(board, ["forgets", "erases"], [edit]).set_index("method")
    assert list(frame.index) == ["erases", "forgets"]
    assert frame.loc["forgets", "fit loss, forget"] == "0.50 → 7.25"
    assert frame.loc["erases", ["fit loss, retain", "refused by"]].tolist() == ["–", "retain lost"]


def test_rates_of_the_case_study_have_the_untreated_agent_first():
    frame = leaderboard.case_rates([planted_panel(N, PLANTED)], ["wrecks", "forgets"])
    assert frame["method"].drop_duplicates().tolist() == ["none", "wrecks", "forgets"]
    assert set(frame["quantity"]) == set(leaderboard.QUANTITIES) and set(frame["lane"]) == {"P"}


def test_other_lanes_are_not_on_the_board():
    panel = judge([*planted_panel(N, PLANTED).cells, *planted_panel(N, PLANTED, lane="C").cells])
    assert len(leaderboard.board_frame([panel], NAMES)) == len(NAMES)
