"""Matrices, dependence on the source, both directions, and whether a method draws the boundary that is asked for."""

import pytest
from cllpu_scores import cells, flat, free, rows, scores

from kbook.report import cllpu_boundaries as boundaries
from kbook.report.cllpu_overall import both_frame, kept_frame

UNEVEN = {
    ("de", "de"): 0.0, ("de", "en"): 0.1, ("de", "th"): 0.5,
    ("en", "de"): 0.0, ("en", "en"): 0.0, ("en", "th"): 0.0,
    ("th", "de"): 0.6, ("th", "en"): 0.4, ("th", "th"): 0.2,
}  # fmt: skip


@pytest.fixture
def known():
    return scores(
        rows("original", free(0.8)), rows("original", free(0.8), role="retain"),
        rows("gd", UNEVEN), rows("gd", flat(0.7, 0.2), role="retain"),
    )  # fmt: skip


def test_the_targets_matrices_come_first_and_references_have_none(known):
    frame = boundaries.matrix_frame(cells(known), "common-goal")
    assert frame["role"].tolist() == ["target"] * 9 + ["neighbour"] * 9 and set(frame["method"]) == {"GD"}
    assert frame[["source", "language"]].iloc[2].tolist() == ["de", "th"] and frame["value"].iloc[2] == 0.5


def test_what_is_left_depends_on_the_source(known):
    by_source = boundaries.by_source_frame(boundaries.matrix_frame(cells(known), "common-goal"))
    target = by_source[by_source["role"] == "target"].set_index("source")
    assert target["others"].to_dict() == {"de": pytest.approx(0.3), "en": 0, "th": pytest.approx(0.5)}
    assert target["own"].to_dict() == {"de": 0, "en": 0, "th": pytest.approx(0.2)}
    (row,) = boundaries.dependence_frame(by_source).to_dict("records")
    assert (row["least left from"], row["most left from"]) == ("en", "th")
    assert row["range"] == pytest.approx(0.5) and row["mean"] == pytest.approx(0.8 / 3)


def test_transfer_is_the_relative_drop(known):
    frame = boundaries.transfer_matrix(known, "common-goal", "gd").set_index(["source", "language"])
    assert frame.loc[("de", "en"), "transfer"] == pytest.approx(0.7 / 0.8)
    assert frame.loc[("th", "th"), "transfer"] == pytest.approx(0.75) and len(frame) == 9


def test_the_most_unequal_pair_of_directions_is_first(known):
    pairs = boundaries.directions(known, "common-goal")
    first = pairs.iloc[0]
    assert (first["method"], first["first"], first["second"]) == ("GD", "en", "th")
    assert (first["there"], first["back"]) == (pytest.approx(1), pytest.approx(0.5))
    assert pairs["difference"].abs().is_monotonic_decreasing
    (row,) = boundaries.one_sidedness(pairs).to_dict("records")
    assert row["between"] == "en → th" and row["pairs"] == 3 and row["largest"] == pytest.approx(0.5)
    assert row["mean difference"] == pytest.approx((0.5 + 0.125 + 0.125) / 3)


def test_a_stronger_way_back_is_named_in_its_direction():
    lopsided = scores(rows("original", free(0.8)), rows("ga", {**flat(0, 0.8), ("th", "de"): 0.0}))
    assert boundaries.one_sidedness(boundaries.directions(lopsided, "common-goal"))["between"].tolist() == ["th → de"]


def test_without_pairs_there_is_a_row_that_says_so():
    alone = scores(rows("original", {("", "de"): 0.8}), rows("ga", {("de", "de"): 0.1}))
    assert boundaries.one_sidedness(boundaries.directions(alone, "common-goal"))["method"].tolist() == ["–"]


@pytest.mark.parametrize(
    ("setting", "target", "neighbour", "fails"),
    [
        ("common-goal", flat(0.0, 0.1), flat(0.8, 0.7), "–"),
        ("common-goal", flat(0.0, 0.6), flat(0.8, 0.2), "target, cross still there; neighbour, cross lost"),
        ("conditioned", flat(0.0, 0.7), flat(0.8, 0.7), "–"),
        ("conditioned", flat(0.0, 0.1), flat(0.8, 0.7), "target, cross lost"),
        ("conditioned", flat(0.7, 0.7), flat(0.8, 0.7), "target, source still there"),
    ],
    ids=["gone everywhere", "stops too early", "gone at home alone", "goes too far", "nothing forgotten"],
)
def test_each_setting_asks_for_its_own_boundary(setting, target, neighbour, fails):
    original = free(0.8) if setting == "common-goal" else flat(0.8, 0.8)
    parts = [("npo", target, "forget"), ("npo", neighbour, "retain")]
    parts += [("original", original, "forget"), ("original", original, "retain")]
    kept = kept_frame(both_frame(cells(*(rows(m, v, role=r, setting=setting) for m, v, r in parts))))
    frame = boundaries.boundary_frame(kept, gone=0.2, kept_least=0.8)
    assert frame["fails at"].tolist() == [fails]
    assert boundaries.drawn_by(frame, setting) == (["NPO"] if fails == "–" else [])


def test_the_papers_methods_are_judged_by_the_same_limits(known):
    kept = kept_frame(both_frame(cells(known)))
    frame = boundaries.boundary_frame(kept, gone=0.2, kept_least=0.8, mark=" (published)")
    (row,) = frame.to_dict("records")
    assert row["target, cross (published)"] == pytest.approx(0.1435 / 0.7660)
    assert row["fails at"] == "neighbour, source lost; neighbour, cross lost"
