"""The rates of one cell, or of its seeds together, each with its bootstrap interval."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kbook.keys import CHANNELS
from kbook.scoring.cells import CellScores, Floats, Pool, graded, leaks, ratio
from kbook.scoring.inference import (
    Bootstrap,
    Interval,
    channel_shares,
    dominant_channel,
    interval,
    resampled_sums,
)

_K = len(CHANNELS)
_BY_CHANNEL = ("cer_available", "cer_all", "severity", "share")
_PARTS: dict[str, int | slice] = {"or_all": 0, "graded": 1, "degeneration": 2}
_PARTS |= {name: slice(3 + i * _K, 3 + (i + 1) * _K) for i, name in enumerate(_BY_CHANNEL)}


@dataclass(frozen=True, eq=False)
class Summary:
    """Rates of a cell or pool; the channel rates are arrays in the order of `keys.CHANNELS`.

    Shape: the three totals are scalars, the four channel rates (6,), `n_observed` (6,).
    Unit: fractions in [0, 1].
    Missing: nan where nothing was observed.
    """

    n: int
    or_all: Interval
    graded: Interval
    degeneration: Interval
    cer_available: Interval
    cer_all: Interval
    severity: Interval
    share: Interval
    n_observed: Floats

    @property
    def dominant(self) -> str | None:
        """The channel that dominates the topology, if one does."""
        index = dominant_channel(self.share.value, self.share.lo)
        return None if index is None else CHANNELS[index]


def summarise(scores: CellScores | Pool, how: Bootstrap) -> Summary:
    """Measure a cell or pool with percentile intervals, all rates from the same resamples of its rows.

    Shape: see `Summary`.
    Unit: fractions in [0, 1].
    Missing: as the rates of `cells`; shares follow `cer_available`.
    Source: protocol A §§2 and 3.
    """
    columns = _columns(scores)
    value = _rates(columns.sum(axis=0, keepdims=True))[0]
    both = interval(value, _rates(resampled_sums(columns, how)), how.level)
    rates = {name: Interval(*(end[part] for end in both)) for name, part in _PARTS.items()}
    return Summary(n=len(columns), n_observed=columns[:, 4 : 4 + _K].sum(axis=0), **rates)


def _columns(scores: CellScores | Pool) -> Floats:
    """One row per query, whose sums hold all rates: 1, 3 totals; observed, CER, severity by channel."""
    totals = [np.ones(scores.n), leaks(scores.cer), graded(scores.severity), scores.degenerate]
    observed = ~np.isnan(scores.cer)
    by_channel = [observed, np.nan_to_num(scores.cer), np.nan_to_num(scores.severity)]
    return np.hstack([np.column_stack(totals), *by_channel]).astype(float)


def _rates(sums: Floats) -> Floats:
    """From sums of `_columns` (r, 4 + 18) to all rates (r, 3 + 24), in the order of `_PARTS`."""
    n, totals = sums[:, :1], sums[:, 1:4]
    observed, cer, severity = np.split(sums[:, 4:], 3, axis=1)
    available = ratio(cer, observed)
    rows = np.broadcast_to(n, cer.shape)
    by_channel = [available, ratio(cer, rows), ratio(severity, observed), channel_shares(available)]
    return np.hstack([ratio(totals, np.broadcast_to(n, totals.shape)), *by_channel])
