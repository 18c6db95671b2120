"""Panels of planted cells: how many queries leak, and how many traces are broken, on either split."""

from collections.abc import Iterable, Mapping

from transcript_factory import key, row, rows

from kbook.scoring.cells import CellScores, score_rows
from kbook.scoring.panel import Panel, judge

Counts = tuple[int, int, int, int]
"""Leaking and broken traces on forget, then on retain; broken ones come first and show nothing."""


def mixed(n: int, leaking: int, broken: int) -> list[dict]:
    """`n` queries: the first ones are broken, the next leak in the answer, the rest are clean."""
    wrecks = [row(f"q{i}", halted_reason="parse_error", raw_full="Thought: zzz", answer=None) for i in range(broken)]
    return [*wrecks, *rows(n, leaking=broken + leaking)[broken:]]


def planted_cells(n: int, planted: Mapping[str, Counts], seeds: Iterable[int] = (0,), **place: str) -> list[CellScores]:
    """The cells of one base and lane: method → its counts, the same for every seed."""
    return [
        score_rows(mixed(n, *counts[2 * side : 2 * side + 2]), key(method, split, seed, **place))
        for method, counts in planted.items()
        for side, split in enumerate(("forget", "retain"))
        for seed in seeds
    ]


def planted_panel(n: int, planted: Mapping[str, Counts], lane: str = "P", base: str = "demo", **options) -> Panel:
    """The same, judged as one table."""
    return judge(planted_cells(n, planted, lane=lane, base=base), **options)
