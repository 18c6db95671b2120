"""Membership attacks: each score by hand, the order that the curve keeps, and what a gap counts as."""

import doctest
import math
import zlib

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from kbook.scoring import membership as module
from kbook.scoring.accessibility import COLUMNS
from kbook.scoring.membership import (
    ATTACKS,
    attack_auc,
    attack_aucs,
    attack_frame,
    attack_scores,
    loss_score,
    min_k_plus_score,
    min_k_score,
    zlib_score,
)

NAN = float("nan")
SCORES = st.lists(st.integers(-3, 3).map(float), min_size=1, max_size=12)


@pytest.mark.parametrize(
    ("log_probs", "expected"),
    [([-1.0], -1), ([-1.0, -3.0], -3), ([-1.0, -2.0, -4.0, -8.0], -8), ([-1.0, -2.0, -3.0, -4.0, -10.0], -7)],
    ids=["one token", "two of which one", "four of which one", "five of which two"],
)
def test_min_k_averages_the_least_likely_forty_in_a_hundred(log_probs, expected):
    assert min_k_score(log_probs) == expected


@pytest.mark.parametrize("n", [1, 2, 4, 5, 7, 10, 15, 35, 100])
def test_min_k_looks_at_the_floor_of_its_share(n):
    """Log-probabilities 0, -1, ... : the mean of the lowest m is -(n - (m + 1) / 2)."""
    m = max(1, 4 * n // 10)
    assert min_k_score([-float(i) for i in range(n)]) == pytest.approx(-(n - (m + 1) / 2))


def test_min_k_plus_standardises_first_and_chooses_after():
    """(-4 + 2) / 2 = -1 and (-3 + 1) / 0.5 = -4: the likelier token is the stranger one."""
    assert min_k_plus_score([-4.0, -3.0], [-2.0, -1.0], [4.0, 0.25]) == -4
    assert min_k_score([-4.0, -3.0]) == -4 != min_k_score([-3.0, -3.0])


def test_a_distribution_without_variance_is_floored():
    assert min_k_plus_score([-0.5], [-0.25], [0.0]) == pytest.approx(-0.25 / 1e-3)
    assert min_k_plus_score([-0.5], [-0.25], [1e-4]) == pytest.approx(-0.25 / 1e-2)


def test_zlib_divides_by_the_bytes_of_the_compressed_answer():
    answer = "নদী" * 30
    size = len(zlib.compress(answer.encode()))
    assert size < len(answer.encode())
    assert zlib_score([-1.0, -3.0], answer) == pytest.approx(-2 / size)
    assert zlib_score([-2.0], "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa") < zlib_score([-2.0], "8f3kq0z7xw1mv5n2b9c4d6g8h1j3k5")


def test_loss_is_the_mean():
    assert loss_score([-1.0, -2.0, -6.0]) == -3


@pytest.mark.parametrize("score", [loss_score, min_k_score, lambda x: zlib_score(x, "a")])
def test_an_answer_without_tokens_or_with_a_gap_has_no_score(score):
    assert math.isnan(score([])) and math.isnan(score([-1.0, NAN]))
    assert math.isnan(min_k_plus_score([], [], [])) and math.isnan(min_k_plus_score([-1.0], [NAN], [1.0]))


@given(SCORES, SCORES)
def test_the_area_is_that_of_the_roc_curve_with_ties_at_one_half(members, others):
    expected = roc_auc_score([1] * len(members) + [0] * len(others), members + others)
    assert attack_auc(members, others) == pytest.approx(expected)
    assert attack_auc(members, others) + attack_auc(others, members) == pytest.approx(1)


def test_the_area_by_hand():
    assert attack_auc([2.0, 0.0], [1.0, 0.0]) == (1 + 1 + 0 + 0.5) / 4
    assert attack_auc([-5.0], [-1.0]) == 0


def test_gaps_are_left_out_of_the_order():
    assert attack_auc([NAN, 2.0], [1.0]) == 1
    assert math.isnan(attack_auc([NAN], [1.0])) and math.isnan(attack_auc([], [1.0]))


def rows(source, language, role, values):
    return [
        ("npo", "common-goal", source, language, role, "core", "loss", "p", f"{role}{i}", v)
        for i, v in enumerate(values)
    ]


def test_each_source_has_its_own_area():
    parts = rows("de", "de", "forget", [-3.0, -2.0]) + rows("de", "de", "holdout", [-1.0])
    parts += rows("en", "en", "forget", [-1.0]) + rows("en", "en", "holdout", [-2.0, NAN])
    parts += rows("en", "de", "forget", [-9.0]) + rows("de", "de", "retain", [-9.0])
    found = attack_aucs(pd.DataFrame(parts, columns=list(COLUMNS))).set_index("source")
    assert found["auc"].to_dict() == {"de": 0, "en": 1}
    assert found[["n_members", "n_others"]].values.tolist() == [[2, 1], [1, 1]]


def test_surface_questions_do_not_take_part():
    scores = pd.DataFrame(rows("de", "de", "forget", [1.0]) + rows("de", "de", "holdout", [0.0]), columns=list(COLUMNS))
    more = pd.concat([scores, scores.assign(layer="surface", value=[0.0, 1.0])])
    assert attack_aucs(more).equals(attack_aucs(scores))


def test_a_model_that_no_language_made_is_attacked_in_each():
    scores = pd.DataFrame(
        rows("", "de", "forget", [1.0]) + rows("", "de", "holdout", [0.0]) + rows("", "en", "forget", [0.0])
        + rows("", "en", "holdout", [0.0]),
        columns=list(COLUMNS),
    )  # fmt: skip
    assert attack_aucs(scores).set_index("source")["auc"].to_dict() == {"de": 1, "en": 0.5}


def test_scores_become_a_row_an_attack():
    values = attack_scores([-1.0], [-0.5], [0.25], "x")
    assert values["min-k++"] == -1 and set(values) == set(ATTACKS)
    found = attack_frame([("p", "u", "forget", "sw", values)], method="npo", setting="conditioned", source="sw")
    assert tuple(found.columns) == COLUMNS and found["measure"].tolist() == list(ATTACKS)
    assert np.allclose(found["value"], list(values.values()))


def test_the_example_holds():
    assert doctest.testmod(module).failed == 0
