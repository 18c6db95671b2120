"""Table 3: AUC by hand, reading beside it; reading that stays while the neighbour goes is seen."""

import pandas as pd
import pytest
from cllpu_scores import cells, flat, free, rows, scores

from kbook.report import cllpu_membership as membership
from kbook.report.cllpu_overall import both_frame, kept_frame
from kbook.scoring.accessibility import COLUMNS
from kbook.scoring.membership import ATTACKS


def attacked(method, source, members, others):
    """Core scores of members and non-members in one language, the same for every attack."""
    sides = [("forget", value) for value in members] + [("holdout", value) for value in others]
    language = source or "de"
    full = [
        (method, "common-goal", source, language, role, "core", attack, "p", f"u{i}", value)
        for attack in ATTACKS
        for i, (role, value) in enumerate(sides)
    ]
    return pd.DataFrame(full, columns=list(COLUMNS))


def read(method, source, right):
    full = [
        (method, "common-goal", source, "de", "utility", "core", "reading", "", f"q{i}", v) for i, v in enumerate(right)
    ]
    return pd.DataFrame(full, columns=list(COLUMNS))


@pytest.fixture
def found():
    """GA: 1 of 4 pairs in order from German, 3 of 4 from Thai."""
    return scores(
        attacked("original", "", [2, 3], [0, 1]),
        attacked("ga", "de", [0, 2], [1, 3]),
        attacked("ga", "th", [1, 3], [0, 2]),
    )


@pytest.fixture
def reading():
    return scores(read("original", "", [1, 1, 1, 0]), read("ga", "de", [1, 1, 1, 0]), read("ga", "th", [1, 1, 0, 0]))


def test_the_mean_over_sources_stands_beside_reading(found, reading):
    frame = membership.membership_frame(found, reading, "common-goal").set_index("method")
    assert frame.loc["Original"].tolist() == [1, 1, 1, 1, 0.75]
    assert frame.loc["GA", "Loss"] == pytest.approx((0.25 + 0.75) / 2)
    assert frame.loc["GA", "reading"] == pytest.approx((0.75 + 0.5) / 2)


@pytest.mark.parametrize(("setting", "value"), [("common-goal", 0.5042), ("conditioned", 0.2156)])
def test_the_papers_table_has_the_same_columns_marked(found, reading, setting, value):
    paper = membership.published_membership(setting)
    ours = membership.membership_frame(found, reading, "common-goal")
    assert [name.removesuffix(" (published)") for name in paper.frame.columns] == list(ours.columns)
    assert paper.number("Min-K%++", method="GA") == value


def test_the_spread_over_languages_is_shown_and_attacks_keep_their_order(found):
    frame = membership.auc_frame(found, "common-goal")
    assert frame["attack"].drop_duplicates().tolist() == ["Loss", "Min-K%", "Min-K%++", "Zlib"]
    ga = frame[(frame["method"] == "GA") & (frame["attack"] == "Zlib")].iloc[0]
    assert (ga["low"], ga["auc"], ga["high"], ga["languages"]) == (0.25, 0.5, 0.75, 2)
    assert ga["auc (published)"] == 0.4307


def test_reading_that_stays_hides_a_neighbour_that_goes(reading):
    both = both_frame(cells(rows("original", free(0.8), role="retain"), rows("ga", flat(0.4, 0.2), role="retain")))
    kept = kept_frame(both)
    (row,) = membership.damage_frame(reading, kept).to_dict("records")
    assert row["reading kept"] == pytest.approx(0.625 / 0.75)
    assert (row["neighbour kept, source"], row["neighbour kept, cross"]) == (pytest.approx(0.5), pytest.approx(0.25))
    assert row["hidden"] == pytest.approx(0.625 / 0.75 - 0.25)
    paper = membership.published_damage(kept)
    assert paper.number("reading kept", method="GA", setting="common goal") == pytest.approx(0.5597 / 0.8086)
    assert paper.number("neighbour kept, cross", method="GA", setting="common goal") == pytest.approx(0.0467 / 0.7630)
