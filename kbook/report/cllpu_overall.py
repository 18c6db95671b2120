"""Tables 1 and 2 of CLLPU: what is left of target and neighbour, in the source language and in all others.

Everything starts from the cells A(s, t) of `kbook.scoring.accessibility.accessibility`. Measured and published numbers
stand in tables of the same form, never in one column.
"""

from __future__ import annotations

from itertools import product

import numpy as np
import pandas as pd

from kbook.report.cllpu_words import (
    MEASURE_NAMES,
    SCOPES,
    TARGET,
    TITLES,
    published_part,
    unlearned,
    worded,
)
from kbook.report.published import MARK, Published
from kbook.scoring.accessibility import EM, ROUGE_L, SIMILARITY, source_and_cross

_PAPER_TABLES = {"common-goal": "cllpu_table1_common_goal", "conditioned": "cllpu_table2_language_conditioned"}
_PAPER_MEASURES = {EM: "em", ROUGE_L: "rl", SIMILARITY: "s"}
ORIGINAL = TITLES["original"]


def overall_frame(cells: pd.DataFrame, setting: str, role: str) -> pd.DataFrame:
    """Source and Cross of each measure for every model, in the columns of the paper's tables.

    Shape: cells → one row a method; ``EM source``, ``EM cross``, ``ROUGE-L source`` and so on.
    Unit: as the measures; S is a cosine.
    Missing: nan for a measure that was not taken, or a matrix that lacks a cell.
    Source: CLLPU, Tables 1 and 2.
    """
    part = cells[(cells["setting"] == setting) & (cells["role"] == role)]
    means = source_and_cross(part)
    rows = []
    for method, found in means.groupby("method", sort=False):
        by_measure = found.set_index("measure")
        rows.append({"method": method, **{_column(m, s): _number(by_measure, m, s) for m, s in _columns()}})
    return worded(pd.DataFrame(rows, columns=["method", *(_column(m, s) for m, s in _columns())]))


def published_overall(setting: str, role: str) -> Published:
    """The paper's numbers in the same columns."""
    names = {f"{role}_{_PAPER_MEASURES[m]}_{s}": _column(m, s) for m, s in _columns()}
    return published_part(_PAPER_TABLES[setting], names)


def both_frame(cells: pd.DataFrame, measure: str = ROUGE_L) -> pd.DataFrame:
    """Source and Cross by one measure, ours and the paper's in columns of their own; settings that cells have.

    Shape: cells → one row a setting, role and method: ``source``, ``cross``, ``source (published)``, ``cross
        (published)``.
    Unit: as the measure.
    Missing: nan for a model that the paper does not have.
    """
    means = worded(source_and_cross(cells[cells["measure"] == measure]))
    theirs = pd.concat(
        _paper_rows(setting, role, measure) for setting, role in product(_PAPER_TABLES, ("forget", "retain"))
    )
    both = means[["setting", "method", "role", *SCOPES]]
    return worded(both.merge(worded(theirs), on=["setting", "method", "role"], how="left"))


def kept_frame(both: pd.DataFrame) -> pd.DataFrame:
    """What share of the original model's accessibility each model keeps, ours and the paper's.

    Shape: `both_frame` → one row a setting, method and role, its columns as before.
    Unit: ratio; 1 is as accessible as before, above 1 more.
    Missing: nan where the original model has nothing or was not scored; it is itself left out.
    """
    columns, place = [*SCOPES, *(f"{scope}{MARK}" for scope in SCOPES)], ["setting", "role"]
    before = both.loc[both["method"] == ORIGINAL, [*place, *columns]]
    after = both[both["method"] != ORIGINAL].merge(before, on=place, how="left", suffixes=("", " before"))
    shares = {c: after[c] / after[f"{c} before"].replace(0, np.nan) for c in columns}
    return after[["setting", "method", "role"]].assign(**shares)


def weakening_frame(both: pd.DataFrame) -> pd.DataFrame:
    """Whether forgetting weakens on its way: Cross minus Source of the target, ours and the paper's.

    Shape: `both_frame` → one row a setting and unlearned method with ``cross − source`` and the same of the paper.
    Unit: as the measure; above 0: more is left in other languages than in the source language.
    Missing: nan where a side is.
    """
    part = unlearned(both[both["role"] == TARGET])
    ours, theirs = part["cross"] - part["source"], part[f"cross{MARK}"] - part[f"source{MARK}"]
    return part[["setting", "method"]].assign(**{"cross − source": ours, f"cross − source{MARK}": theirs})


def _paper_rows(setting: str, role: str, measure: str) -> pd.DataFrame:
    table = published_overall(setting, role).frame
    columns = {f"{_column(measure, scope)}{MARK}": f"{scope}{MARK}" for scope in SCOPES}
    return table[["method", *columns]].rename(columns=columns).assign(setting=setting, role=role)


def _columns() -> list[tuple[str, str]]:
    return list(product(_PAPER_MEASURES, SCOPES))


def _column(measure: str, scope: str) -> str:
    return f"{MEASURE_NAMES[measure]} {scope}"


def _number(by_measure: pd.DataFrame, measure: str, scope: str) -> float:
    return float(by_measure.at[measure, scope]) if measure in by_measure.index else float("nan")
