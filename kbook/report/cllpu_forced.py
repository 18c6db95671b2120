"""Figure 5 of CLLPU: the question stays in its language, the answer is demanded in another."""

from __future__ import annotations

import pandas as pd

from kbook.report.cllpu_words import ROLE_NAMES, worded
from kbook.scoring.accessibility import ROUGE_L
from kbook.scoring.answered import forced_cells

QUESTION, ANSWER = "language of the question", "language of the answer"


def forced_matrix(forced: pd.DataFrame, setting: str, measure: str = ROUGE_L) -> pd.DataFrame:
    """Accessibility by the language of the question and the language that is demanded, the target's matrices first.

    Shape: forced answers → one row a role, method, question and answer language, with ``value`` and ``n``.
    Unit: as the measure.
    Missing: what was not asked has no row.
    Source: CLLPU, Figure 5.
    """
    cells = forced_cells(forced[forced["setting"] == setting])
    named = worded(cells[cells["measure"] == measure]).rename(columns={"source": QUESTION, "demanded": ANSWER})
    columns = ["role", "method", QUESTION, ANSWER, "value", "n"]
    return pd.concat([named.loc[named["role"] == role, columns] for role in ROLE_NAMES], ignore_index=True)


def forced_means(matrix: pd.DataFrame) -> pd.DataFrame:
    """What is told where the language stays, and where it is switched.

    Shape: `forced_matrix` → one row a role and method: ``same``, ``switched`` and ``change``.
    Unit: as the measure.
    Missing: nan where there is no such pair of languages.
    """
    same = matrix[QUESTION] == matrix[ANSWER]
    place = [matrix["role"], matrix["method"]]
    means = {name: matrix["value"].where(rows).groupby(place, sort=False).mean() for name, rows in
             {"same": same, "switched": ~same}.items()}  # fmt: skip
    frame = pd.DataFrame(means).reset_index()
    return frame.assign(change=frame["switched"] - frame["same"])


def peaks(matrix: pd.DataFrame, most: int = 6) -> pd.DataFrame:
    """The switches of language under which most of the target is told.

    Shape: `forced_matrix` → at most so many rows, the highest first.
    Unit: as the measure.
    Missing: what was not asked is left out.
    """
    switched = matrix[(matrix["role"] == ROLE_NAMES[0]) & (matrix[QUESTION] != matrix[ANSWER])]
    top = switched.sort_values("value", ascending=False, kind="stable").head(most)
    return top[["method", QUESTION, ANSWER, "value", "n"]].reset_index(drop=True)
