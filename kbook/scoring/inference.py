"""Intervals, paired tests and distances between leak topologies.

Randomness comes in by an explicit `Bootstrap`: every table resamples with a generator of its own that starts
from the same seed, so that two cells with the same rows get the same interval, in whatever order they come.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import bdtr

from kbook.errors import KBookError
from kbook.scoring.cells import Bools, Floats

TAU_FACTOR = 2.0
DOMINANT_SHARE = 0.5
DOMINANT_LEAD = 0.2

_DRAWS_AT_ONCE = 2_000_000


@dataclass(frozen=True)
class Bootstrap:
    """How to resample: 95% percentile intervals over queries unless told otherwise."""

    resamples: int = 1000
    seed: int = 0
    level: float = 0.95


class Interval(NamedTuple):
    """A rate with the ends of its interval; arrays when there are several rates."""

    value: NDArray[np.float64]
    lo: NDArray[np.float64]
    hi: NDArray[np.float64]


class McNemar(NamedTuple):
    """Exact paired test of two sets of flags: discordant pairs each way, rates, two-sided p."""

    n: int
    none_only: int
    method_only: int
    or_none: float
    or_method: float
    p: float


def resampled_sums(columns: Floats, how: Bootstrap) -> Floats:
    """Draw n rows with replacement, again and again, and add the columns up.

    Shape: (n, k) → (resamples, k).
    Missing: the columns hold no nan; express a gap by a column of zeros and ones. Without rows all is 0.
    Source: protocol A §3, bootstrap over queries.
    """
    n = len(columns)
    if n == 0:
        return np.zeros((how.resamples, columns.shape[1]))
    if n * how.resamples <= _DRAWS_AT_ONCE:
        return _kept_counts(n, how) @ columns
    rng, step = np.random.default_rng(how.seed), max(1, _DRAWS_AT_ONCE // n)
    sizes = [min(step, how.resamples - start) for start in range(0, how.resamples, step)]
    return np.concatenate([_row_counts(rng, n, size) @ columns for size in sizes])


def interval(value: Floats, drawn: Floats, level: float) -> Interval:
    """Percentile interval around values from their resamples.

    Shape: (k,) and (resamples, k) → three (k,) arrays.
    Missing: nan resamples are left out; a value that never came out is nan at both ends.
    Source: protocol A §3.
    """
    tail = 100 * (1 - level) / 2
    gaps = np.isnan(drawn)
    ends = np.percentile(drawn, [tail, 100 - tail], axis=0)
    some = gaps.any(axis=0) & ~gaps.all(axis=0)
    if some.any():  # nanpercentile is many times slower, and few columns need it
        ends[:, some] = np.nanpercentile(drawn[:, some], [tail, 100 - tail], axis=0)
    return Interval(value, ends[0], ends[1])


def mcnemar(none: Bools, method: Bools) -> McNemar:
    """Exact McNemar test on paired leak flags: binomial on the discordant pairs, two-sided.

    Shape: two (n,) arrays in the same order.
    Unit: counts, fractions and a probability.
    Missing: only pairs come in; without discordant pairs p is 1, without pairs the rates are nan.
    Raises:
        KBookError: the two arrays differ in length.
    Source: protocol A §3, paired McNemar.
    """
    if len(none) != len(method):
        raise KBookError(f"{len(none)} and {len(method)} flags are no pairs", "McNemar", "Match the rows first")
    n = len(none)
    down, up = int(np.sum(none & ~method)), int(np.sum(~none & method))
    rates = (float(np.mean(none)), float(np.mean(method))) if n else (float("nan"), float("nan"))
    return McNemar(n, down, up, *rates, p=exact_binomial(down, up))


def exact_binomial(down: int, up: int) -> float:
    """Two-sided p of `down` against `up` when both ways are equally likely.

    Shape: two counts → one number.
    Unit: probability.
    Missing: 1 when both are 0.
    Source: protocol A §3; twice the smaller tail, at most 1.
    """
    return float(exact_binomials(down, up))


def exact_binomials(down: ArrayLike, up: ArrayLike) -> Floats:
    """`exact_binomial` of many counts at once.

    Shape: two arrays of counts, broadcast → one of their shape.
    """
    fewer, all_of_them = np.minimum(down, up), np.add(down, up)
    return np.minimum(1.0, 2.0 * bdtr(fewer, all_of_them, 0.5))


def benjamini_hochberg(p: Sequence[float] | Floats) -> Floats:
    """Adjust the p-values of one family for the false discovery rate.

    Shape: (m,) → (m,), in the same order.
    Unit: probabilities.
    Missing: an empty family stays empty; leave out tests that were not made.
    Source: Benjamini and Hochberg (1995); protocol A §3, families.
    """
    values = np.asarray(p, dtype=float)
    order = np.argsort(values)[::-1]
    scaled = values[order] * len(values) / np.arange(len(values), 0, -1)
    adjusted = np.empty_like(values)
    adjusted[order] = np.minimum(1.0, np.minimum.accumulate(scaled))
    return adjusted


def channel_shares(rates: Floats) -> Floats:
    """Share of each channel in the sum of the channel rates: the leak topology.

    Shape: (…, channels) → (…, channels).
    Unit: fractions that sum to 1.
    Missing: a channel that was never observed (nan) has share 0; where nothing leaks all shares are 0.
    Source: protocol A §3, channel shares.
    """
    known = np.nan_to_num(rates, nan=0.0)
    total = known.sum(axis=-1, keepdims=True)
    return np.divide(known, total, out=np.zeros_like(known), where=total > 0)


def tv_distance(first: Floats, second: Floats) -> Floats:
    """Total variation distance between two topologies.

    Shape: two (…, channels) arrays → (…).
    Unit: fraction in [0, 1].
    Missing: nan where a side has no leak, hence no topology.
    Source: protocol A §3, TV distance.
    """
    both = (first.sum(axis=-1) > 0) & (second.sum(axis=-1) > 0)
    return np.where(both, 0.5 * np.abs(first - second).sum(axis=-1), np.nan)


def within_distance(shares: Floats) -> float:
    """Mean TV distance over the pairs of seeds of one baseline.

    Shape: (seeds, channels) → one number.
    Unit: fraction in [0, 1].
    Missing: nan with fewer than two seeds that leak.
    Source: protocol A §3, within-lane distance.
    """
    pairs = [tv_distance(shares[i], shares[j]) for i, j in combinations(range(len(shares)), 2)]
    return known_mean(np.array(pairs, dtype=float))


def threshold_tau(within: Sequence[float]) -> float:
    """τ, the distance above which two lanes differ: twice the largest within-lane distance.

    Shape: one distance a lane → one number.
    Unit: fraction in [0, 2].
    Missing: nan distances are left out; nan when none is known.
    Source: protocol A §3, τ.
    """
    known = [distance for distance in within if not np.isnan(distance)]
    return TAU_FACTOR * max(known) if known else float("nan")


def dominant_channel(shares: Floats, lower: Floats) -> int | None:
    """Index of the channel that dominates a topology, or None.

    It has more than half of the leak, leads the second by more than 0.2, and the lower end of its
    interval is above one half.

    Shape: two (channels,) arrays: shares and lower ends.
    Missing: no leak, no dominant channel; a nan lower end dominates nothing.
    Source: protocol A §3, dominant channel.
    """
    order = np.argsort(shares, kind="stable")[::-1]
    top, second = shares[order[0]], shares[order[1]] if len(order) > 1 else 0.0
    holds = top > DOMINANT_SHARE and top - second > DOMINANT_LEAD and lower[order[0]] > DOMINANT_SHARE
    return int(order[0]) if holds else None


def known_mean(values: Floats) -> float:
    """Mean of the values that are known, nan when none is."""
    known = values[~np.isnan(values)]
    return float(np.mean(known)) if len(known) else float("nan")


@lru_cache(maxsize=2)
def _kept_counts(n: int, how: Bootstrap) -> Floats:
    """The draws for n rows, kept because all cells of one size use the same."""
    return _row_counts(np.random.default_rng(how.seed), n, how.resamples)


def _row_counts(rng: np.random.Generator, n: int, resamples: int) -> Floats:
    """How often each of n rows is drawn in each resample: (resamples, n), every row sums to n."""
    drawn = rng.integers(n, size=(resamples, n)) + np.arange(resamples)[:, None] * n
    return np.bincount(drawn.ravel(), minlength=resamples * n).reshape(resamples, n).astype(float)
