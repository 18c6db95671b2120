"""Power by simulation against sums over all outcomes, and against the limits that need no computation."""

import numpy as np
import pytest
from scipy.stats import binom, multinomial

from kbook.errors import KBookError
from kbook.scoring.inference import exact_binomial, mcnemar
from kbook.scoring.power import (
    Pairs,
    Simulation,
    correlated_pairs,
    detectable,
    largest_correlation,
    pairs,
    simulate,
)
from kbook.scoring.verdicts import ALPHA

HOW = Simulation(studies=20_000, seed=3)


def power_over_all_outcomes(truth: Pairs, n: int) -> float:
    """Sum the probabilities of all pairs of counts that the test finds."""
    counts = [(d, u) for d in range(n + 1) for u in range(n + 1 - d) if exact_binomial(d, u) < ALPHA]
    chances = [float(truth.down), float(truth.up), 1 - float(truth.down) - float(truth.up)]
    return sum(multinomial.pmf([d, u, n - d - u], n, chances) for d, u in counts)


@pytest.mark.parametrize(
    ("difference", "up", "n"),
    [
        pytest.param(0.3, 0.05, 30, id="mostly one way"),
        pytest.param(0.1, 0.2, 40, id="both ways"),
        pytest.param(-0.3, 0.45, 30, id="the method leaks more"),
        pytest.param(0.0, 0.2, 40, id="no difference"),
    ],
)
def test_the_simulation_agrees_with_the_sum_over_all_outcomes(difference, up, n):
    truth = pairs(difference, up)
    found = simulate(truth, n, how=Simulation(HOW.studies, HOW.seed, level=0.999))
    assert found.lo <= power_over_all_outcomes(truth, n) <= found.hi
    assert found.hi - found.lo < 0.03


def test_one_way_pairs_are_found_from_the_sixth_on():
    found = simulate(pairs(0.2, 0.0), 40, how=HOW)
    assert found.value == pytest.approx(binom.sf(5, 40, 0.2), abs=0.01)


def test_where_nothing_is_true_the_test_keeps_its_level():
    found = simulate(pairs([0.0, 0.0, 0.0], [0.0, 0.1, 0.4]), 200, how=HOW)
    assert (found.lo <= ALPHA).all() and found.value[0] == 0 and 0.01 < found.value[2] < ALPHA


def test_a_stricter_level_finds_less_and_more_pairs_find_more():
    truth = pairs(0.05, 0.05)
    assert simulate(truth, 300, alpha=0.005).value < simulate(truth, 300).value < simulate(truth, 900).value


def test_pairs_that_go_both_ways_hide_a_difference():
    found = simulate(pairs(0.05, [0.0, 0.05, 0.2]), 300, how=HOW).value
    assert found[0] > found[1] > found[2]


def test_the_same_seed_gives_the_same_power_and_another_seed_another():
    truth = pairs(0.05, 0.05)
    first, again = simulate(truth, 300), simulate(truth, 300)
    assert first.value == again.value != simulate(truth, 300, how=Simulation(seed=1)).value


def test_a_fall_of_30_percent_at_correlation_0_7_is_found_with_600_pairs_unless_little_leaks():
    baseline = np.array([0.10, 0.20, 0.30, 0.40])
    found = simulate(correlated_pairs(baseline, 0.7 * baseline, 0.7), 600)
    assert (found.lo[1:] > 0.95).all() and found.hi[0] < 0.95
    assert (simulate(correlated_pairs(baseline, 0.7 * baseline, 0.7), 20).hi < 0.5).all()


def test_flags_drawn_from_the_pairs_have_the_rates_and_the_correlation_asked_for():
    truth, n = correlated_pairs(0.3, 0.21, 0.6), 200_000
    kinds = np.random.default_rng(0).choice(4, size=n, p=[truth.down, truth.up, 0.3 - truth.down, 0.7 - truth.up])
    none, method = np.isin(kinds, [0, 2]), np.isin(kinds, [1, 2])
    assert (none.mean(), method.mean()) == (pytest.approx(0.3, abs=0.01), pytest.approx(0.21, abs=0.01))
    assert np.corrcoef(none, method)[0, 1] == pytest.approx(0.6, abs=0.01)
    assert mcnemar(none, method).none_only == pytest.approx(float(truth.down) * n, rel=0.03)


def test_a_correlation_beyond_what_the_rates_allow_is_refused():
    limit = largest_correlation(0.682, 0.477)
    assert limit == pytest.approx(0.652, abs=0.001)
    assert correlated_pairs(0.682, 0.477, float(limit)).up == pytest.approx(0, abs=1e-9)
    with pytest.raises(KBookError, match="largest_correlation"):
        correlated_pairs(0.682, 0.477, 0.7)
    assert np.isnan(largest_correlation(1.0, 0.5)) and largest_correlation(0.3, 0.3) == pytest.approx(1)


@pytest.mark.parametrize(("difference", "up"), [(0.2, -0.1), (-0.2, 0.1), (0.8, 0.2)])
def test_impossible_pairs_are_refused(difference, up):
    with pytest.raises(KBookError, match="at least 0"):
        pairs(difference, up)


def test_the_smallest_detectable_difference_is_where_the_power_reaches_the_target():
    smallest = detectable(300, 0.02)
    assert simulate(pairs(smallest, 0.02), 300).value >= 0.8 > simulate(pairs(smallest - 0.005, 0.02), 300).value
    assert detectable(1200, 0.02) < smallest < detectable(100, 0.02)


def test_five_pairs_can_detect_nothing():
    assert np.isnan(detectable(5, 0.0)) and detectable(6, 0.0) > 0.9
