"""Power of the paired test, by simulation: how often a difference that is there would be found.

A query leaks under both agents, under neither, only untreated, or only treated. Simulated studies draw the counts of
these four kinds of pair and put them through the exact McNemar test.

Example:
    >>> pairs = correlated_pairs(0.30, 0.21, correlation=0.7)
    >>> bool(simulate(pairs, n=600).value > 0.95)
    True
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betaincinv

from kbook.errors import KBookError
from kbook.scoring.inference import Interval, exact_binomials
from kbook.scoring.verdicts import ALPHA

TARGET = 0.80
"""Power that a study is usually planned for."""

_FINE = 1e-4


class Pairs(NamedTuple):
    """Probabilities of the two kinds of pair that tell two agents apart; arrays when there are several truths.

    `down`: the query leaks untreated and not treated. `up`: it leaks only treated. Their difference is the true
    difference of the leak rates, their sum the discordance.
    """

    down: NDArray[np.float64]
    up: NDArray[np.float64]


@dataclass(frozen=True)
class Simulation:
    """How to simulate: the number of studies, the seed of their generator, and the level of the result's interval."""

    studies: int = 4000
    seed: int = 0
    level: float = 0.95


DEFAULT = Simulation()


def pairs(difference: ArrayLike, up: ArrayLike) -> Pairs:
    """Pairs of a true difference, given how many queries begin to leak.

    Shape: two (k,) arrays or numbers, broadcast → two (k,) arrays.
    Unit: fractions of all queries.
    Raises:
        KBookError: a probability is below 0, or both together are above 1.
    """
    gained, lost = np.broadcast_arrays(np.asarray(up, dtype=float), np.asarray(up, dtype=float) + difference)
    return _checked(Pairs(lost, gained))


def correlated_pairs(or_none: ArrayLike, or_method: ArrayLike, correlation: float) -> Pairs:
    """Pairs of two leak rates whose flags have a given correlation.

    Shape: two (k,) arrays or numbers, broadcast → two (k,) arrays.
    Unit: fractions; the correlation is that of the two flags of a query, in [-1, 1].
    Missing: two flags with different rates cannot be correlated at will; see `largest_correlation`.
    Raises:
        KBookError: no pairs have these rates and this correlation.
    Source: protocol A §3, power.
    """
    none, method = np.broadcast_arrays(np.asarray(or_none, dtype=float), np.asarray(or_method, dtype=float))
    both = none * method + correlation * _spread(none, method)
    return _checked(Pairs(none - both, method - both))


def largest_correlation(or_none: ArrayLike, or_method: ArrayLike) -> NDArray[np.float64]:
    """The largest correlation that the flags of two leak rates can have: no query begins to leak, or none stops.

    Shape: two (k,) arrays or numbers → (k,).
    Unit: a correlation in [0, 1].
    Missing: nan where a rate is 0 or 1, as its flags do not vary.
    """
    none, method = np.asarray(or_none, dtype=float), np.asarray(or_method, dtype=float)
    spread = _spread(none, method)
    covariance = np.minimum(none, method) - none * method
    return np.divide(covariance, spread, out=np.full(np.shape(spread), np.nan), where=spread > 0)


def simulate(truth: Pairs, n: int, *, how: Simulation = DEFAULT, alpha: float = ALPHA) -> Interval:
    """Power of the exact McNemar test at n pairs, with the interval of the simulation (Clopper and Pearson).

    Args:
        truth: what is true; k truths at once.
        n: pairs of a study.
        how: the simulation.
        alpha: below which p counts as found.

    Shape: (k,) → three (k,) arrays.
    Unit: fraction of the studies.
    Source: protocol A §3, paired McNemar.
    """
    rng = np.random.default_rng(how.seed)
    rest = np.clip(1.0 - truth.down - truth.up, 0.0, 1.0)
    counts = rng.multinomial(n, np.stack([truth.down, truth.up, rest], axis=-1), size=(how.studies, *truth.up.shape))
    found = np.sum(exact_binomials(counts[..., 0], counts[..., 1]) < alpha, axis=0)
    return _with_interval(found, how)


def detectable(n: int, up: float, *, target: float = TARGET, how: Simulation = DEFAULT, alpha: float = ALPHA) -> float:
    """The smallest true fall of the leak rate that n pairs find with a given power, by bisection.

    Shape: numbers → one number.
    Unit: fraction of all queries, to a ten-thousandth.
    Missing: nan when not even the largest possible fall is found that often.
    """
    low, high = 0.0, 1.0 - 2 * up

    def enough(difference: float) -> bool:
        return bool(simulate(pairs(difference, up), n, how=how, alpha=alpha).value >= target)

    if not enough(high):
        return float("nan")
    while high - low > _FINE:
        middle = (low + high) / 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def _spread(none: NDArray[np.float64], method: NDArray[np.float64]) -> NDArray[np.float64]:
    """Product of the standard deviations of two flags."""
    return np.sqrt(none * (1 - none) * method * (1 - method))


def _with_interval(found: NDArray[Any], how: Simulation) -> Interval:
    tail = (1 - how.level) / 2
    missed = how.studies - found
    low = np.where(found > 0, betaincinv(np.maximum(found, 1), missed + 1, tail), 0.0)
    high = np.where(missed > 0, betaincinv(found + 1, np.maximum(missed, 1), 1 - tail), 1.0)
    return Interval(found / how.studies, low, high)


def _checked(truth: Pairs) -> Pairs:
    slack = 1e-12
    if np.any(truth.down < -slack) or np.any(truth.up < -slack) or np.any(truth.down + truth.up > 1 + slack):
        what = f"no pairs have the probabilities {truth.down} of a leak that stops and {truth.up} of one that begins"
        raise KBookError(what, "power", "Both are at least 0, and together at most 1: see largest_correlation")
    return Pairs(np.maximum(truth.down, 0.0), np.maximum(truth.up, 0.0))
