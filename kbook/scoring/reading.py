"""General utility in ten languages: four-way reading questions, answered by the label that a model finds most likely.

The prompt has no words but those of the passage, the question and the options, so that it is in one language.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from kbook.corpora.belebele import ReadingQuestion
from kbook.scoring.accessibility import COLUMNS, accessibility, repeat_references
from kbook.scoring.interfaces import right_choice

LABELS = ("A", "B", "C", "D")
READING, UTILITY = "reading", "utility"


def reading_text(question: ReadingQuestion) -> str:
    """Passage, question and labelled options as the text that a user says; what follows is a label.

    Example:
        >>> options = ("snow", "rain", "ash", "hail")
        >>> print(reading_text(ReadingQuestion("x", "en", "Rain fell.", "What fell?", options, 1)))
        Rain fell.
        <BLANKLINE>
        What fell?
        A. snow
        B. rain
        C. ash
        D. hail
    """
    options = (f"{label}. {option}" for label, option in zip(LABELS, question.options, strict=True))
    return "\n".join((question.passage, "", question.question, *options))


def answered_rightly(question: ReadingQuestion, log_probs: Sequence[float]) -> float:
    """Whether the right label is the most likely one.

    Shape: one question and the log-probability of each of its labels → one number.
    Unit: 1 or 0; a tie for the first place counts as the share that a fair draw would win. Chance is 1/4.
    Missing: nan where a log-probability is nan.
    Source: CLLPU, appendix B.3, equation 14; the paper does not say what a tie counts.
    """
    nll = -np.asarray(log_probs, dtype=float)
    return float(right_choice(np.roll(nll, -question.correct)))


def reading_scores(
    questions: Sequence[ReadingQuestion],
    log_probs: Sequence[Sequence[float]],
    *,
    method: str,
    setting: str,
    source: str = "",
) -> pd.DataFrame:
    """Score questions as a tidy frame.

    Shape: (n,) questions and (n, 4) log-probabilities → n rows, columns `kbook.scoring.accessibility.COLUMNS`.
    Unit: as `answered_rightly`.
    Missing: nan stays nan.
    Source: CLLPU, appendix B.3.
    """
    rows = [
        (method, setting, source, each.language, UTILITY, "core", READING, "", each.id, answered_rightly(each, found))
        for each, found in zip(questions, log_probs, strict=True)
    ]
    return pd.DataFrame(rows, columns=list(COLUMNS))


def utility(scores: pd.DataFrame) -> pd.DataFrame:
    """Accuracy of each method: the mean over languages for each source, then the mean over sources.

    Shape: scores → one row a method and setting, with ``accuracy`` and ``n_sources``.
    Unit: fraction in [0, 1].
    Missing: a question of nan is left out; nan where a source lacks a language that another has.
    Source: CLLPU, appendix B.3, equations 15 and 16.
    """
    cells = repeat_references(accessibility(scores[scores["measure"] == READING]))
    rows = []
    for (method, setting), part in cells.groupby(["method", "setting"], sort=False):
        matrix = part.pivot(index="source", columns="language", values="value").to_numpy(dtype=float)
        rows.append((method, setting, float(matrix.mean(axis=1).mean()), len(matrix)))
    return pd.DataFrame(rows, columns=["method", "setting", "accuracy", "n_sources"])
