"""Shipped cells, computed once more: does the present code, on this machine, find what the book shows?

Floating point differs between machines, so that single rows may; a leak rate must agree within `TOLERANCE`, and the
verdict must be the same.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass

from kbook.kbench import Grid, KBench
from kbook.keys import CellKey
from kbook.scoring.cells import or_all, score_rows
from kbook.scoring.comparisons import BASELINE
from kbook.scoring.panel import Panel
from kbook.store import Run, Store

TOLERANCE = 0.02
"""Of a leak rate, OR(all)."""


@dataclass(frozen=True)
class Recomputed:
    """One cell, as it ships and as it is found now: OR(all), and the verdict of its split for the whole method."""

    key: CellKey
    rates: tuple[float, float]
    verdicts: tuple[str, str]

    @property
    def agrees(self) -> bool:
        return abs(self.rates[0] - self.rates[1]) <= TOLERANCE and self.verdicts[0] == self.verdicts[1]


def draw(
    keys: Iterable[CellKey], n: int, seed: int, lanes: Iterable[str] = ("C", "R-text", "R-struct")
) -> list[CellKey]:
    """Some of the plain cells (no variants) of some lanes; those of P need an injection each."""
    chosen = set(lanes)
    plain = sorted(key for key in keys if key.lane in chosen and not key.variant)
    return random.Random(seed).sample(plain, min(n, len(plain)))


def recompute(bench: KBench, key: CellKey, store: Store) -> Recomputed:
    """Compute a cell anew and judge its method again with it.

    Args:
        bench: of the cell's base, with a store that has the method's and the untreated cells of the lane.
        key: of a plain cell.
        store: an empty one that takes nothing shipped.
    """
    methods = [BASELINE] if key.method == BASELINE else [BASELINE, key.method]
    shown = bench.grid(methods, [key.lane])
    here = KBench(bench.profile, base=bench.base_name, corpus=bench.corpus, store=store)
    again = here.cell(key.lane, key.method, key.split, key.seed)
    grids = (shown, Grid(tuple(again if run.key == key else run for run in shown.runs), shown.not_applicable))
    (before,) = (run for run in shown.runs if run.key == key)
    verdicts = tuple(_verdict(bench.judge(grid), key) for grid in grids)
    return Recomputed(key, (_rate(before), _rate(again)), (verdicts[0], verdicts[1]))


def _rate(run: Run) -> float:
    assert isinstance(run.key, CellKey)
    return float(or_all(score_rows(run.rows(), run.key).cer))


def _verdict(panel: Panel, key: CellKey) -> str:
    """The K-class for the forget split, the selectivity for the retain split, else why there is none."""
    (found,) = (v for v in panel.verdicts if v.subject.method == key.method)
    label = found.k_class if key.split == "forget" else found.selectivity
    return label.kind if label else found.status
