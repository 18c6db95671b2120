"""How far forgetting in one language takes knowledge away in another, and whether it does so both ways.

For the units u whose score was at least 0.1 before,

    T(s → t) = mean over u of (A_original(u, t) - A_s(u, t)) / A_original(u, t)

where A(u, t) is the mean score of the unit's realisations in language t. 1 is all gone, 0 nothing, below 0 more than
before. T(s → s) is how much forgetting took in its own language.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from kbook.scoring.accessibility import MATRIX, unit_means
from kbook.scoring.cells import Floats, mean

FLOOR = 0.1
ORIGINAL = "original"
_PLACE = [*MATRIX, "source", "language"]


def transfer_ratio(
    before: Sequence[float] | Floats, after: Sequence[float] | Floats, floor: float = FLOOR
) -> tuple[float, int]:
    """Mean relative drop over units that were accessible before.

    Shape: (units,) and (units,) → one number, and how many units it is a mean of.
    Unit: ratio of at most 1.
    Missing: nan where no unit scored at least the floor before; a unit of nan, before or after, is left out.
    Source: derived for this book; formula in the module's docstring.
    """
    old, new = np.asarray(before, dtype=float), np.asarray(after, dtype=float)
    counted = (old >= floor) & ~np.isnan(new)
    return mean((old[counted] - new[counted]) / old[counted]), int(counted.sum())


def transfer_frame(scores: pd.DataFrame, original: str = ORIGINAL, floor: float = FLOOR) -> pd.DataFrame:
    """Transfer ratio of every method from every source into every language, by setting, role and measure.

    A method's units are compared with the same units of the original model: those of the same source where it was
    scored by source (conditioned setting), else those of the one model that no language made.

    Shape: scores of `kbook.scoring.accessibility` → one row a method, setting, role, measure, source and language, with
        ``transfer`` and ``n``.
    Unit: ratio of at most 1.
    Missing: as `transfer_ratio`; units that only one of the models was asked about are left out.
    Source: derived for this book; formula in the module's docstring.
    """
    units = unit_means(scores)
    units = units[units["role"].isin(("forget", "retain"))]
    same = ["setting", "role", "measure", "language", "unit"]
    before, after = units[units["method"] == original], units[(units["method"] != original) & (units["source"] != "")]
    free, by_source = before[before["source"] == ""], before[before["source"] != ""]
    pairs = [
        after.merge(free[[*same, "value"]], on=same, suffixes=("", "_before")),
        after.merge(by_source[[*same, "source", "value"]], on=[*same, "source"], suffixes=("", "_before")),
    ]
    rows = []
    for names, part in pd.concat(pairs).groupby(_PLACE, sort=False):
        ratio, n = transfer_ratio(part["value_before"].to_numpy(), part["value"].to_numpy(), floor)
        rows.append({**dict(zip(_PLACE, names, strict=True)), "transfer": ratio, "n": n})
    return pd.DataFrame(rows, columns=[*_PLACE, "transfer", "n"])


def asymmetry_frame(transfers: pd.DataFrame) -> pd.DataFrame:
    """Both directions of each pair of languages, and by how much they differ.

    Shape: `transfer_frame` → one row a matrix and unordered pair, with ``there`` (source → language), ``back`` and
        ``asymmetry`` = there - back.
    Unit: ratios; their difference.
    Missing: a pair of which one direction was not measured is left out.
    Source: derived for this book.
    """
    turned = transfers.rename(columns={"source": "language", "language": "source", "transfer": "back"})
    both = transfers.merge(turned.drop(columns="n"), on=_PLACE)
    both = both[both["source"] < both["language"]].rename(columns={"transfer": "there"}).drop(columns="n")
    return both.assign(asymmetry=both["there"] - both["back"]).reset_index(drop=True)
