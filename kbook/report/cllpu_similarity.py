"""Figure 10 of CLLPU, and what it means for S: how alike are answers that are both plausible and not the same?"""

from __future__ import annotations

import numpy as np
import pandas as pd

from kbook.report import fonts
from kbook.report.cllpu_words import worded


def paired_frame(paired: pd.DataFrame) -> pd.DataFrame:
    """Cosine of the expected answers of paired units, by setting and language.

    Shape: pairs of units and languages → one row a setting and language: ``mean``, ``low`` and ``high`` (quartiles)
        and ``n``; languages are labelled as figures name them.
    Unit: cosine in [-1, 1].
    Missing: pairs of nan are left out.
    Source: CLLPU, Figure 10.
    """
    grouped = worded(paired).groupby(["setting", "language"], sort=False)["s"]
    ends = {"low": lambda values: values.quantile(0.25), "high": lambda values: values.quantile(0.75)}
    frame = grouped.agg(mean="mean", **ends, n="count").reset_index()
    return frame.assign(language=frame["language"].map(fonts.label))


def span(paired: pd.DataFrame, setting: str) -> tuple[float, float]:
    """The lowest and highest mean of a language in one setting.

    Unit: cosine.
    Missing: nan where nothing was encoded.
    """
    means = paired[paired["setting"] == setting].groupby("language")["s"].mean()
    return float(means.min()), float(means.max())


def wrong_frame(answers: pd.DataFrame) -> pd.DataFrame:
    """What S gives to answers that are wrong, by the model that gave them.

    Shape: answers → one row a setting and method: ``answers`` to forget questions, the share that is ``wrong`` (no
        exact match), the mean ``S of right`` and ``S of wrong`` ones.
    Unit: shares; cosines.
    Missing: nan where a model has no such answer, or nothing was encoded.
    """
    asked = worded(answers[answers["role"] == "forget"])
    rows = []
    for (setting, method), part in asked.groupby(["setting", "method"], sort=False):
        right = part["em"].to_numpy(dtype=float) == 1
        means = {name: _mean(part["s"], rows_) for name, rows_ in {"S of right": right, "S of wrong": ~right}.items()}
        rows.append({"setting": setting, "method": method, "answers": len(part), "wrong": 1 - right.mean(), **means})
    return pd.DataFrame(rows, columns=["setting", "method", "answers", "wrong", "S of right", "S of wrong"])


def _mean(values: pd.Series, rows: np.ndarray) -> float:
    return float(values[rows].mean())
