"""Tables 1 and 2: averages by hand, the paper's numbers in columns of their own, shares of the original model."""

import math

import pytest
from cllpu_scores import cells, flat, free, rows

from kbook.report import cllpu_overall as overall
from kbook.scoring.accessibility import EM, ROUGE_L


@pytest.fixture
def known():
    """NPO forgets all at home and half of what is elsewhere; the original knows 0.8 of the target."""
    uneven = {**flat(0.0, 0.4), ("de", "en"): 0.1, ("de", "th"): 0.3}
    return cells(
        rows("npo", uneven), rows("original", free(0.8)), rows("retrain", free(0.2)),
        rows("npo", flat(0.6, 0.3), role="retain"), rows("original", free(0.6), role="retain"),
        rows("npo", flat(0.0, 0.25), measure=EM), rows("original", free(0.5), measure=EM),
    )  # fmt: skip


def test_source_and_cross_stand_in_the_columns_of_the_paper(known):
    frame = overall.overall_frame(known, "common-goal", "forget").set_index("method")
    assert list(frame.index) == ["Original", "Retrain", "NPO"]
    assert frame.loc["NPO", "ROUGE-L source"] == 0
    assert frame.loc["NPO", "ROUGE-L cross"] == pytest.approx((0.2 + 0.4 + 0.4) / 3)
    assert frame.loc["NPO", "EM cross"] == 0.25 and math.isnan(frame.loc["NPO", "S cross"])
    assert frame.loc["Retrain", "ROUGE-L source"] == frame.loc["Retrain", "ROUGE-L cross"] == pytest.approx(0.2)


@pytest.mark.parametrize(
    ("setting", "role", "column", "value"),
    [
        ("common-goal", "forget", "ROUGE-L cross", 0.1113),
        ("conditioned", "retain", "S source", 0.8676),
        ("conditioned", "forget", "EM cross", 0.0520),
    ],
)
def test_the_papers_table_has_the_same_columns_marked(known, setting, role, column, value):
    paper = overall.published_overall(setting, role)
    ours = overall.overall_frame(known, "common-goal", "forget")
    assert [name.removesuffix(" (published)") for name in paper.frame.columns] == list(ours.columns)
    assert paper.number(column, method="NPO") == value


def test_ours_and_the_papers_stand_side_by_side_and_a_method_of_ones_own_has_none(known):
    both = overall.both_frame(cells(rows("mine", flat(0.1, 0.2)), rows("original", free(0.5))))
    mine, original = (both[both["method"] == name].iloc[0] for name in ("mine", "Original"))
    assert mine["source"] == pytest.approx(0.1) and math.isnan(mine["source (published)"])
    assert original["cross (published)"] == 0.7660
    assert overall.both_frame(known)["cross (published)"].notna().all()


def test_what_is_kept_is_a_share_of_the_original_model(known):
    kept = overall.kept_frame(overall.both_frame(known, ROUGE_L)).set_index(["method", "role"])
    assert kept.loc[("NPO", "target"), "cross"] == pytest.approx((1 / 3) / 0.8)
    assert kept.loc[("NPO", "neighbour"), "source"] == pytest.approx(1)
    assert kept.loc[("NPO", "target"), "cross (published)"] == pytest.approx(0.1113 / 0.7660)
    assert "Original" not in kept.index.get_level_values("method")


def test_nothing_is_kept_of_nothing():
    both = overall.both_frame(cells(rows("npo", flat(0.1, 0.2)), rows("original", free(0.0))))
    assert overall.kept_frame(both)[["source", "cross"]].isna().all(axis=None)


def test_forgetting_that_weakens_leaves_more_in_other_languages(known):
    found = overall.weakening_frame(overall.both_frame(known))
    assert found["method"].tolist() == ["NPO"]
    assert found["cross − source"].iloc[0] == pytest.approx(1 / 3)
    assert found["cross − source (published)"].iloc[0] == pytest.approx(0.1113 - 0.0810)
