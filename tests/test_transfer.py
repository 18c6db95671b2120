"""Transfer of forgetting: relative drops by hand, both directions, and who is compared with whom."""

import math

import pandas as pd
import pytest

from kbook.scoring.accessibility import COLUMNS
from kbook.scoring.transfer import asymmetry_frame, transfer_frame, transfer_ratio

NAN = float("nan")


def scores(*rows):
    """Rows of method, source, language, unit and value."""
    full = [(m, "common-goal", s, t, "forget", "core", "rouge-l", "p", u, v) for m, s, t, u, v in rows]
    return pd.DataFrame(full, columns=list(COLUMNS))


def test_the_ratio_is_a_mean_of_relative_drops():
    """(0.8 - 0.2) / 0.8 = 0.75 and (0.4 - 0.4) / 0.4 = 0: their mean, not the drop of the mean (0.5)."""
    assert transfer_ratio([0.8, 0.4], [0.2, 0.4]) == (pytest.approx(0.375), 2)


@pytest.mark.parametrize(
    ("before", "after", "ratio", "n"),
    [
        ([0.5, 0.09], [0.0, 0.0], 1, 1),
        ([0.1], [0.05], 0.5, 1),
        ([0.5], [1.0], -1, 1),
        ([0.5, 0.5], [NAN, 0.5], 0, 1),
        ([NAN, 0.5], [0.5, 0.25], 0.5, 1),
    ],
    ids=["barely known before", "at the floor", "more than before", "not scored after", "not scored before"],
)
def test_units_that_count(before, after, ratio, n):
    assert transfer_ratio(before, after) == (pytest.approx(ratio), n)


def test_nothing_that_was_known_has_no_ratio():
    ratio, n = transfer_ratio([0.05], [0.0])
    assert math.isnan(ratio) and n == 0


def test_a_method_is_compared_with_the_model_that_no_language_made():
    frame = scores(
        ("original", "", "bn", "u", 0.8), ("original", "", "en", "u", 0.5),
        ("gd", "bn", "bn", "u", 0.0), ("gd", "bn", "en", "u", 0.5), ("gd", "en", "bn", "u", 0.2),
        ("gd", "en", "en", "u", 0.0),
    )  # fmt: skip
    found = transfer_frame(frame)
    assert found.set_index(["source", "language"])["transfer"].to_dict() == {
        ("bn", "bn"): 1, ("bn", "en"): 0, ("en", "bn"): pytest.approx(0.75), ("en", "en"): 1,
    }  # fmt: skip
    (row,) = asymmetry_frame(found).to_dict("records")
    assert (row["source"], row["language"]) == ("bn", "en")
    assert (row["there"], row["back"], row["asymmetry"]) == (0, pytest.approx(0.75), pytest.approx(-0.75))


def test_by_source_the_original_is_that_of_the_same_source():
    frame = scores(("original", "bn", "en", "u", 1.0), ("original", "sw", "en", "u", 0.5), ("gd", "bn", "en", "u", 0.5))
    (row,) = transfer_frame(frame).to_dict("records")
    assert row["transfer"] == 0.5 and row["source"] == "bn" and row["method"] == "gd"


def test_units_of_one_model_alone_are_left_out():
    frame = scores(("original", "", "en", "u", 1.0), ("gd", "bn", "en", "v", 0.5), ("gd", "bn", "en", "u", 0.0))
    (row,) = transfer_frame(frame).to_dict("records")
    assert (row["transfer"], row["n"]) == (1, 1)


def test_no_scores_have_no_transfer():
    assert transfer_frame(scores()).empty and asymmetry_frame(transfer_frame(scores())).empty
