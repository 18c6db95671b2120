import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest
from statsmodels.stats.multitest import multipletests

from kbook.errors import KBookError
from kbook.scoring import inference
from kbook.scoring.inference import (
    Bootstrap,
    benjamini_hochberg,
    channel_shares,
    dominant_channel,
    exact_binomial,
    interval,
    mcnemar,
    resampled_sums,
    threshold_tau,
    tv_distance,
    within_distance,
)

COUNTS = st.integers(0, 300)


def test_resamples_draw_as_many_rows_as_there_are():
    ones = np.ones((7, 2))
    np.testing.assert_array_equal(resampled_sums(ones, Bootstrap(resamples=50)), np.full((50, 2), 7))


def test_resamples_are_the_same_from_the_same_seed_and_others_from_another():
    columns = np.arange(20.0).reshape(10, 2)
    first, again, other = (resampled_sums(columns, Bootstrap(seed=seed)) for seed in (3, 3, 4))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


def test_drawing_in_pieces_changes_nothing(monkeypatch):
    columns = np.random.default_rng(0).random((30, 3))
    whole = resampled_sums(columns, Bootstrap(resamples=100))
    monkeypatch.setattr(inference, "_DRAWS_AT_ONCE", 700)
    np.testing.assert_allclose(resampled_sums(columns, Bootstrap(resamples=100)), whole)


def test_spread_of_a_resampled_mean_is_its_standard_error():
    flags = np.r_[np.ones(60), np.zeros(140)][:, None]
    drawn = resampled_sums(flags, Bootstrap(resamples=4000)) / 200
    assert drawn.mean() == pytest.approx(0.3, abs=0.002)
    assert drawn.std() == pytest.approx(np.sqrt(0.3 * 0.7 / 200), rel=0.05)


def test_interval_takes_percentiles_and_leaves_gaps_out():
    drawn = np.column_stack([np.arange(101.0), np.r_[np.nan, np.arange(100.0)], np.full(101, np.nan)])
    found = interval(np.array([50.0, 49.5, np.nan]), drawn, level=0.9)
    np.testing.assert_allclose(found.lo, [5, 4.95, np.nan])
    np.testing.assert_allclose(found.hi, [95, 94.05, np.nan])


@pytest.mark.parametrize(("down", "up", "p"), [(0, 0, 1), (1, 0, 1), (5, 0, 1 / 16), (0, 5, 1 / 16), (3, 3, 1)])
def test_exact_binomial_by_hand(down, up, p):
    assert exact_binomial(down, up) == pytest.approx(p)


@given(COUNTS, COUNTS)
def test_exact_binomial_agrees_with_scipy(down, up):
    expected = binomtest(down, down + up).pvalue if down + up else 1.0
    assert exact_binomial(down, up) == pytest.approx(expected, rel=1e-9)


def test_mcnemar_counts_discordant_pairs_each_way():
    none = np.array([1, 1, 1, 0, 0], dtype=bool)
    method = np.array([1, 0, 0, 1, 0], dtype=bool)
    assert mcnemar(none, method) == (5, 2, 1, pytest.approx(0.6), pytest.approx(0.4), 1.0)


def test_control_mcnemar_of_a_set_with_itself_finds_nothing():
    flags = np.array([1, 0, 1, 1], dtype=bool)
    assert mcnemar(flags, flags).p == 1
    empty = mcnemar(flags[:0], flags[:0])
    assert empty.n == 0 and empty.p == 1 and np.isnan(empty.or_none)


def test_mcnemar_refuses_what_is_not_paired():
    with pytest.raises(KBookError, match="no pairs"):
        mcnemar(np.ones(2, dtype=bool), np.ones(3, dtype=bool))


def test_benjamini_hochberg_by_hand():
    np.testing.assert_allclose(benjamini_hochberg([0.04, 0.01, 0.03, 0.5]), [0.16 / 3, 0.04, 0.16 / 3, 0.5])
    assert benjamini_hochberg([]).shape == (0,)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=30))
def test_benjamini_hochberg_agrees_with_statsmodels(p):
    np.testing.assert_allclose(benjamini_hochberg(p), multipletests(p, method="fdr_bh")[1], atol=1e-12)


def test_shares_sum_to_one_and_an_unobserved_channel_has_none():
    np.testing.assert_allclose(channel_shares(np.array([0.3, 0.1, np.nan])), [0.75, 0.25, 0])
    np.testing.assert_array_equal(channel_shares(np.zeros(3)), np.zeros(3))
    np.testing.assert_allclose(channel_shares(np.array([[1.0, 1.0], [0.0, 0.2]])), [[0.5, 0.5], [0, 1]])


def test_tv_distance_by_hand():
    assert tv_distance(np.array([0.5, 0.5, 0]), np.array([0.5, 0, 0.5])) == pytest.approx(0.5)
    assert tv_distance(np.array([1.0, 0]), np.array([0, 1.0])) == 1
    assert tv_distance(np.array([1.0, 0]), np.array([1.0, 0])) == 0
    assert np.isnan(tv_distance(np.array([1.0, 0]), np.zeros(2))), "no leak has no topology"


def test_within_distance_is_the_mean_over_pairs_of_seeds():
    shares = np.array([[1.0, 0.0], [0.8, 0.2], [0.5, 0.5]])
    assert within_distance(shares) == pytest.approx((0.2 + 0.5 + 0.3) / 3)
    assert np.isnan(within_distance(shares[:1]))
    assert within_distance(np.vstack([shares[:2], np.zeros(2)])) == pytest.approx(0.2), "a silent seed is left out"


def test_tau_is_twice_the_largest_known_distance():
    assert threshold_tau([0.1, np.nan, 0.25]) == pytest.approx(0.5)
    assert np.isnan(threshold_tau([np.nan]))


@pytest.mark.parametrize(
    ("shares", "lower", "expected"),
    [
        pytest.param([0.1, 0.8, 0.1], 0.6, 1, id="all three conditions"),
        pytest.param([0.25, 0.5, 0.25], 0.6, None, id="half is not more than half"),
        pytest.param([0.4, 0.59, 0.01], 0.55, None, id="a lead of 0.19"),
        pytest.param([0.1, 0.8, 0.1], 0.5, None, id="an interval that reaches one half"),
        pytest.param([0.1, 0.8, 0.1], np.nan, None, id="no interval"),
        pytest.param([0.0, 0.0, 0.0], 0.0, None, id="no leak"),
    ],
)
def test_dominant_channel(shares, lower, expected):
    assert dominant_channel(np.array(shares), np.full(3, lower)) == expected
