"""Stored answers of one model as tidy frames: what was asked, what was said, and what it is worth.

A stored row names its question by id and holds no text that the release has; see `kbook.examining` for who writes it.

Example row:
    {"kind": "answer", "qa": "common_orvane__landfall_date__001__forget__core-0__de", "said": "14. September 2032",
     "em": 1.0, "rouge-l": 1.0, "s": 1.0}
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from kbook.corpora.units import Place, Release
from kbook.scoring.accessibility import COLUMNS, EM, JUDGE, ROUGE_L, SIMILARITY, Judge, judged
from kbook.scoring.membership import ATTACKS

ANSWER, MEMBER, READING, DEMAND = "answer", "member", "reading", "demand"
"""Kinds of rows: an answer, evidence on an expected answer, a reading question, an answer in a demanded language."""

ANSWER_COLUMNS = (
    *("method", "setting", "source", "language", "role", "layer", "variant", "topic", "unit"),
    *("qa", "question", "expected", "said", EM, ROUGE_L, SIMILARITY),
)
FORCED_COLUMNS = (
    *("method", "setting", "source", "language", "demanded", "role", "topic", "unit"),
    *("qa", "expected", "said", EM, ROUGE_L),
)
_NAN = float("nan")

Rows = Iterable[Mapping[str, Any]]


@dataclass(frozen=True)
class Examinee:
    """Which model was asked; ``source`` is "" if no language made it.

    In the conditioned setting such a model is scored by source: its units are those of one language each.
    """

    method: str
    setting: str
    source: str = ""

    def source_at(self, place: Place) -> str:
        return self.source or place.source


def answers_frame(rows: Rows, release: Release, who: Examinee) -> pd.DataFrame:
    """Answers with their questions.

    Shape: rows → one row an answer, columns `ANSWER_COLUMNS`.
    Unit: scores as `kbook.scoring.accessibility`; ``variant`` counts from the core question, 0.
    Missing: nothing said is ""; S is nan where it was not measured.
    Source: CLLPU, section 4.2.1.
    """

    def line(row: Mapping[str, Any]) -> tuple[Any, ...]:
        place = release.places[row["qa"]]
        qa = place.qa
        where = (who.method, who.setting, who.source_at(place), qa.language, qa.role, qa.layer, place.variant)
        told = (place.topic, place.unit, qa.id, qa.question, qa.answer, row["said"])
        return (*where, *told, row[EM], row[ROUGE_L], _number(row.get(SIMILARITY)))

    return _frame((line(row) for row in rows if row["kind"] == ANSWER), ANSWER_COLUMNS, (EM, ROUGE_L, SIMILARITY))


def scores_frame(answers: pd.DataFrame) -> pd.DataFrame:
    """The scores of answers, a measure a row.

    Shape: `answers_frame` → columns `kbook.scoring.accessibility.COLUMNS`.
    Unit: as the measure.
    Missing: there are no rows of S where it was not measured.
    Source: CLLPU, section 4.2.1.
    """
    names = [name for name in COLUMNS if name not in ("measure", "value")]
    long = answers.melt(names, [EM, ROUGE_L, SIMILARITY], "measure", "value")[list(COLUMNS)]
    return long[long["value"].notna()].reset_index(drop=True)


def judge_values(answers: pd.DataFrame, release: Release, judge: Judge) -> list[float]:
    """Let a judge score answers.

    Shape: `answers_frame` → (n,).
    Unit: fraction in [0, 1].
    Missing: nan where the judge gave no usable reply.
    Source: CLLPU, appendix C.3.
    """
    pairs = zip(answers["qa"], answers["said"], strict=True)
    return [judged(judge, release.places[id].qa, said) for id, said in pairs]


def judged_frame(answers: pd.DataFrame, values: Sequence[float]) -> pd.DataFrame:
    """A judge's score of each answer.

    Shape: `answers_frame` and (n,) scores → columns `kbook.scoring.accessibility.COLUMNS`.
    Unit: fraction in [0, 1].
    Missing: nan stays nan.
    Source: CLLPU, appendix C.3.
    """
    return answers.assign(measure=JUDGE, value=pd.Series(values, answers.index, float))[list(COLUMNS)]


def membership_frame(rows: Rows, release: Release, who: Examinee) -> pd.DataFrame:
    """Membership scores of core questions, members and holdout.

    Shape: rows → a row a question and attack, columns `kbook.scoring.accessibility.COLUMNS`.
    Unit: see `kbook.scoring.membership`.
    Missing: nan where a broken model gave no number.
    Source: CLLPU, appendix B.2.
    """
    lines = []
    for row in (row for row in rows if row["kind"] == MEMBER):
        place = release.places[row["qa"]]
        where = (who.method, who.setting, who.source_at(place), place.qa.language, place.qa.role, place.qa.layer)
        lines += [(*where, attack, place.topic, place.unit, _number(row[attack])) for attack in ATTACKS]
    return _frame(lines, COLUMNS, ("value",))


def forced_frame(rows: Rows, release: Release, who: Examinee) -> pd.DataFrame:
    """Answers that were demanded in a language, scored against the expected answer in that language.

    Shape: rows → one row an answer, columns `FORCED_COLUMNS`.
    Unit: as `kbook.scoring.accessibility`.
    Missing: nothing said is "".
    Source: CLLPU, section 5.6 (forced response-language switching).
    """

    def line(row: Mapping[str, Any]) -> tuple[Any, ...]:
        place, wanted = release.places[row["qa"]], release.places[row["expected"]].qa
        qa = place.qa
        where = (who.method, who.setting, who.source_at(place), qa.language, wanted.language, qa.role)
        return (*where, place.topic, place.unit, qa.id, wanted.answer, row["said"], row[EM], row[ROUGE_L])

    return _frame((line(row) for row in rows if row["kind"] == DEMAND), FORCED_COLUMNS, (EM, ROUGE_L))


def forced_cells(forced: pd.DataFrame) -> pd.DataFrame:
    """Means by the language of the question and the demanded language.

    Shape: `forced_frame` → one row a method, setting, source, demanded language, role and measure, with ``value`` and
        ``n`` units. Of a model that no language made, ``source`` is the language of the question.
    Unit: as the measure.
    Missing: a pair of languages that was not asked has no row.
    Source: CLLPU, section 5.6 and figure 5.
    """
    long = forced.assign(source=forced["language"]).melt(
        ["method", "setting", "source", "demanded", "role"], [EM, ROUGE_L], "measure", "value"
    )
    place = ["method", "setting", "source", "demanded", "role", "measure"]
    return long.groupby(place, sort=False)["value"].agg(value="mean", n="count").reset_index()


def _number(value: Any) -> float:
    """A stored number; None stands for one that a broken model gave."""
    return _NAN if value is None else float(value)


def _frame(lines: Iterable[tuple[Any, ...]], columns: Sequence[str], numbers: Sequence[str]) -> pd.DataFrame:
    frame = pd.DataFrame(list(lines), columns=list(columns))
    return frame.astype(dict.fromkeys(numbers, float))
