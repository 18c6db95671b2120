"""Frames of protocol B from a few words: one row an answer and measure, with values that a reader can add up."""

from collections.abc import Mapping, Sequence

import pandas as pd

from kbook.scoring.accessibility import COLUMNS, ROUGE_L, accessibility

CORE, SURFACE = "core", "surface"
Matrix = Mapping[tuple[str, str], float]


def rows(
    method: str,
    matrix: Matrix,
    *,
    setting: str = "common-goal",
    role: str = "forget",
    measure: str = ROUGE_L,
    layers: Mapping[str, float] | None = None,
    topic: str = "p",
    units: Sequence[str] = ("u",),
) -> pd.DataFrame:
    """A score for each cell (source, language) of a matrix; ``layers`` are added to it, by layer."""
    full = [
        (method, setting, source, language, role, layer, measure, topic, unit, value + extra)
        for (source, language), value in matrix.items()
        for layer, extra in (layers or {CORE: 0.0}).items()
        for unit in units
    ]
    return pd.DataFrame(full, columns=list(COLUMNS))


def scores(*parts: pd.DataFrame) -> pd.DataFrame:
    return pd.concat(parts, ignore_index=True)


def cells(*parts: pd.DataFrame) -> pd.DataFrame:
    return accessibility(scores(*parts))


def flat(own: float, others: float, languages: Sequence[str] = ("de", "en", "th")) -> dict[tuple[str, str], float]:
    """One value on the diagonal, another everywhere else."""
    return {(s, t): own if s == t else others for s in languages for t in languages}


def free(value: float, languages: Sequence[str] = ("de", "en", "th")) -> dict[tuple[str, str], float]:
    """A model that no language made."""
    return {("", t): value for t in languages}
