"""What a score depends on: K-Scores on a balanced grid, and how their variance divides.

A grid has two factors, the method and one more (the base, or the recipe of injection), and its seeds are the
replicates. η² of a source is its share of the total sum of squares; all shares add up to 1. What a grid cannot tell
(one base, one seed) is missing and has a reason; its sum of squares is in the rest.

Example:
    >>> table = np.array([[[0.1, 0.3], [0.5, 0.7]], [[0.5, 0.7], [0.9, 1.1]]])  # 2 methods, 2 bases, 2 seeds
    >>> [(share.source, round(float(share.eta2), 3)) for share in variance_shares(table, ("method", "base"))]
    [('method', 0.444), ('base', 0.444), ('method × base', 0.0), ('the rest', 0.111)]
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import product
from typing import NamedTuple

import numpy as np

from kbook.errors import KBookError
from kbook.keys import SPLITS, CellKey
from kbook.scoring.cells import CellScores, Floats, graded, ratio
from kbook.scoring.comparisons import BASELINE
from kbook.scoring.inference import Bootstrap, Interval, interval, resampled_sums
from kbook.scoring.verdicts import k_factors

REST = "the rest"

_ROUNDING = 1e-24
"""A total sum of squares below this part of the sum of squared values is what rounding leaves of zero."""
_NAMED = 4
"""Missing cells that an error names."""


class Share(NamedTuple):
    """What one source has of the variance.

    Unit: `eta2` with the ends of its interval, and `chance`, its mean if values were dealt out at random, are
        fractions in [0, 1].
    Missing: nan, and `reason` says why.
    """

    source: str
    df: int
    eta2: float
    lo: float
    hi: float
    chance: float
    reason: str


@dataclass(frozen=True, eq=False)
class ScoreGrid:
    """K-Scores of a balanced grid, and of its resamples.

    Shape: `value` (methods, levels, seeds); `drawn` (resamples, methods, levels, seeds).
    Unit: fractions in [0, 1].
    """

    factors: tuple[str, str]
    methods: tuple[str, ...]
    levels: tuple[str, ...]
    seeds: tuple[int, ...]
    value: Floats
    drawn: Floats
    confidence: float

    def shares(self) -> tuple[Share, ...]:
        """How the variance of the K-Scores divides."""
        return variance_shares(self.value, self.factors, self.drawn, self.confidence)

    def means(self) -> Interval:
        """Mean over the seeds, each with its interval. Shape: three (methods, levels) arrays."""
        drawn = self.drawn.mean(axis=-1)
        flat = interval(self.value.mean(axis=-1).ravel(), drawn.reshape(len(drawn), -1), self.confidence)
        return Interval(*(end.reshape(self.value.shape[:2]) for end in flat))


# ---- the variance of a table -------------------------------------------------------------------------------


def sums_of_squares(table: Floats) -> Floats:
    """Sums of squares of a balanced table with two factors: first, second, their interaction, replicates.

    Shape: (…, a, b, r) → (…, 4).
    Unit: the square of the table's; the four add up to the sum of squares about the mean.
    Missing: the table holds no nan.
    Source: two-way analysis of variance with replication; protocol A §4.7.
    """
    axes = ((-3, -2, -1), (-2, -1), (-3, -1), (-1,))
    grand, first, second, cell = (table.mean(axis=axis, keepdims=True) for axis in axes)
    parts = first - grand, second - grand, cell - first - second + grand, table - cell
    return np.stack([(np.broadcast_to(part, table.shape) ** 2).sum(axis=axes[0]) for part in parts], axis=-1)


def variance_shares(
    table: Floats, factors: tuple[str, str], drawn: Floats | None = None, confidence: float = 0.95
) -> tuple[Share, ...]:
    """Divide the variance of a balanced table among two factors, their interaction and the rest.

    Args:
        table: values by level of the first factor, level of the second, and replicate.
        factors: what the two are called.
        drawn: resamples of the table, for percentile intervals.
        confidence: of the intervals.

    Shape: (a, b, r), and (resamples, a, b, r) → four shares.
    Unit: η², fractions in [0, 1] that add up to 1.
    Missing: a factor of one level has no effect that could be seen, and neither has an interaction with it; with one
        replicate the highest effect cannot be told from the rest, and a rest of which nothing can be told apart is no
        share; a table of equal values has no variance to divide. These are nan, with the reason.
    Raises:
        KBookError: a value is missing.
    Source: protocol A §4.7, η² = SS / SS_total.
    """
    if np.isnan(table).any():
        a, b, r = np.argwhere(np.isnan(table))[0] + 1
        where = f"{factors[0]} {a}, {factors[1]} {b}, replicate {r}"
        raise KBookError(
            f"the table is not balanced: no value at {where}", "variance", "Leave the level out, or fill it"
        )
    reasons = _reasons(table.shape, factors)
    known = np.array([not reason for reason in reasons])
    eta2 = _shares(table, known)
    nothing = np.full(len(eta2), np.nan)
    found = Interval(eta2, nothing, nothing) if drawn is None else interval(eta2, _shares(drawn, known), confidence)
    names, degrees = (*factors, " × ".join(factors), REST), _pooled(_degrees(table.shape), known)
    chance = ratio(degrees, np.full(len(degrees), table.size - 1))
    flat = "all values are equal" if known.any() else "nothing can be told apart from it"
    why = [reason or flat * bool(np.isnan(share)) for reason, share in zip((*reasons, ""), eta2, strict=True)]
    columns = (np.nan_to_num(degrees).astype(int).tolist(), *(end.tolist() for end in found), chance.tolist())
    return tuple(Share(*row) for row in zip(names, *columns, why, strict=True))


def _reasons(shape: tuple[int, ...], factors: tuple[str, str]) -> list[str]:
    """Why each of the two factors and their interaction cannot be seen; "" where it can."""
    single = [f"only one {name}" if n == 1 else "" for name, n in zip(factors, shape, strict=False)]
    reasons = [*single, single[0] or single[1]]
    seen = [i for i, reason in enumerate(reasons) if not reason]
    if shape[2] == 1 and seen:
        reasons[seen[-1]] = f"only one seed: not to be told from {REST}"
    return reasons


def _degrees(shape: tuple[int, ...]) -> Floats:
    a, b, r = shape
    return np.array([a - 1, b - 1, (a - 1) * (b - 1), a * b * (r - 1)], dtype=float)


def _pooled(parts: Floats, known: np.ndarray) -> Floats:
    """Add the parts that cannot be seen to the rest and leave them missing; all are if none is seen. Shape (…, 4)."""
    effects, rest = parts[..., :3], parts[..., 3:]
    hidden = np.where(known, 0.0, effects).sum(axis=-1, keepdims=True) if known.any() else np.nan
    return np.concatenate([np.where(known, effects, np.nan), rest + hidden], axis=-1)


def _shares(tables: Floats, known: np.ndarray) -> Floats:
    """η² of each table. Shape: (…, a, b, r) → (…, 4)."""
    sums = sums_of_squares(tables)
    total, size = sums.sum(axis=-1), (tables**2).sum(axis=(-3, -2, -1))
    some = np.where(total > _ROUNDING * size, total, 0.0)
    return _pooled(ratio(sums, np.broadcast_to(some[..., None], sums.shape)), known)


# ---- K-Scores as a table -----------------------------------------------------------------------------------

_Place = tuple[str, str, int, str]


def score_grid(cells: Iterable[CellScores], factor: str, level: Callable[[CellKey], str], how: Bootstrap) -> ScoreGrid:
    """Compute the K-Score of every method, level and seed of one lane against the untreated cell beside it.

    Queries are drawn again with replacement within each seed and split, the same ones for all methods and levels,
    as these were asked the same.

    Args:
        cells: a balanced grid with the untreated baseline at every level and seed, both splits.
        factor: the name of the second factor; the first is the method.
        level: the level of the second factor that a cell is at.
        how: the bootstrap.

    Shape: see `ScoreGrid`; methods, levels in the order of the cells, seeds ascending.
    Unit: K-Scores, fractions in [0, 1].
    Missing: nothing may be missing.
    Raises:
        KBookError: cells of several lanes, two cells at one place, a place without rows (named), or cells of one seed
            that were asked different queries.
    Source: protocol A §3, K-Score; §4.7.
    """
    placed = _placed(cells, level)
    methods, levels, seeds = _sides(placed)
    rates = np.stack([_rates(placed, seed, split, methods, levels, how) for seed in seeds for split in SPLITS])
    forget, retain = np.swapaxes(rates.reshape(len(seeds), len(SPLITS), *rates.shape[1:]), 0, 1)
    none, kept_none = forget[:, :1], retain[:, :1]
    method, kept = forget[:, 1:], retain[:, 1:]
    factors = k_factors(method[..., 0], (kept - kept_none)[..., 0], (method - none)[..., 1])
    scores = np.prod(factors, axis=0).transpose(3, 1, 2, 0)
    return ScoreGrid(("method", factor), methods[1:], levels, seeds, scores[0], scores[1:], how.level)


def _placed(cells: Iterable[CellScores], level: Callable[[CellKey], str]) -> dict[_Place, CellScores]:
    """Cells with rows by method, level, seed and split."""
    placed: dict[_Place, CellScores] = {}
    for cell in cells:
        place = (cell.key.method, level(cell.key), cell.key.seed, cell.key.split)
        if place in placed:
            raise KBookError(f"two cells at one place: {placed[place].key} and {cell.key}", "variance", "Give one")
        if cell.n:
            placed[place] = cell
    lanes = dict.fromkeys(cell.key.lane for cell in placed.values())
    if len(lanes) > 1:
        raise KBookError(f"cells of the lanes {', '.join(lanes)}", "variance", "K-Scores of two lanes do not compare")
    return placed


def _sides(placed: Mapping[_Place, CellScores]) -> tuple[tuple[str, ...], tuple[str, ...], tuple[int, ...]]:
    """Methods (the untreated first), levels and seeds.

    Raises:
        KBookError: there is no method, or not every combination has a cell.
    """
    methods = tuple(dict.fromkeys((BASELINE, *(place[0] for place in placed))))
    levels, seeds = tuple(dict.fromkeys(p[1] for p in placed)), tuple(sorted({p[2] for p in placed}))
    if len(methods) == 1:
        raise KBookError("no cell of a method", "variance", "Give a method beside the untreated agent")
    missing = [place for place in product(methods, levels, seeds, SPLITS) if place not in placed]
    if missing:
        names = "; ".join(
            f"{m} at {at or 'the plain setting'}, seed {s}, {split}" for m, at, s, split in missing[:_NAMED]
        )
        more = f" and {len(missing) - _NAMED} more" if len(missing) > _NAMED else ""
        remedy = "Run these cells, or leave out the method, level or seed"
        raise KBookError(f"the grid is not balanced, it has no cell of {names}{more}", "variance", remedy)
    return methods, levels, seeds


def _rates(
    placed: Mapping[_Place, CellScores],
    seed: int,
    split: str,
    methods: tuple[str, ...],
    levels: tuple[str, ...],
    how: Bootstrap,
) -> Floats:
    """Graded rate and degeneration of the cells of one seed and split: as measured, and then of each resample.

    Shape: (methods, levels, 1 + resamples, 2).
    """
    cells = [_by_query(placed[method, at, seed, split]) for method in methods for at in levels]
    _check_same(cells)
    own = np.random.SeedSequence([how.seed, seed, SPLITS.index(split)]).generate_state(1)
    draws = replace(how, seed=int(own[0]))
    columns = [np.column_stack([graded(cell.severity), cell.degenerate]) for cell in cells]
    rates = [np.vstack([each.mean(axis=0), resampled_sums(each, draws) / len(each)]) for each in columns]
    return np.stack(rates).reshape(len(methods), len(levels), how.resamples + 1, 2)


def _by_query(cell: CellScores) -> CellScores:
    order = np.argsort(cell.query_id)
    return replace(
        cell, query_id=cell.query_id[order], severity=cell.severity[order], degenerate=cell.degenerate[order]
    )


def _check_same(cells: list[CellScores]) -> None:
    for cell in cells[1:]:
        if not np.array_equal(cell.query_id, cells[0].query_id):
            what = f"{cell.key} was asked other queries than {cells[0].key}"
            raise KBookError(what, "variance", "Compare cells of one corpus, size and seed")
