"""What a model of protocol B is asked, batch by batch, and the rows that are kept of it.

Four kinds of rows, which `kbook.scoring.answered` turns into frames: answers in every language, evidence on expected
answers (membership), reading questions, and answers in a demanded language. Generation is batched over languages:
questions of like length are answered together, whatever language they are in.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kbook.corpora.belebele import ReadingQuestion
from kbook.corpora.multilingual import DEMANDS
from kbook.corpora.units import QA, Release
from kbook.models.bases import Base
from kbook.models.evidence import answer_evidence, label_log_probs
from kbook.models.questions import ask, exchange, prompt
from kbook.profiles import CLLPUSizes
from kbook.scoring.accessibility import EM, ROUGE_L, Encoder, answer_values, exact_match, rouge_l_f1
from kbook.scoring.answered import ANSWER, DEMAND, MEMBER, READING
from kbook.scoring.membership import attack_scores
from kbook.scoring.reading import LABELS, reading_text

DIGITS = 5
BATCHES_AT_ONCE = 4
"""Decoding batches in one batch of stored rows."""

Row = dict[str, Any]


@dataclass(frozen=True)
class Demand:
    """A question, and the same question in the language in which its answer is demanded."""

    asked: QA
    wanted: QA


@dataclass(frozen=True)
class Sheet:
    """All that one model is asked."""

    answers: tuple[QA, ...]
    members: tuple[QA, ...]
    reading: tuple[ReadingQuestion, ...]
    demands: tuple[Demand, ...]

    def batches(self, n: int) -> list[tuple[str, tuple[Any, ...]]]:
        """Kind and things to ask, ``n`` of them at most, of like length."""
        groups: list[tuple[str, Sequence[Any], Callable[[Any], str]]] = [
            (ANSWER, self.answers, lambda qa: qa.question),
            (MEMBER, self.members, lambda qa: qa.question),
            (READING, self.reading, lambda question: question.passage),
            (DEMAND, self.demands, lambda demand: demand.asked.question),
        ]
        return [(kind, part) for kind, things, text in groups for part in _parts(things, text, n)]


def sheet(
    release: Release,
    setting: str,
    languages: Sequence[str],
    reading: Mapping[str, Sequence[ReadingQuestion]],
    *,
    source: str = "",
    demands: bool = False,
) -> Sheet:
    """What a model is asked.

    Args:
        release: cut to its sizes.
        setting: whose units.
        languages: of the questions.
        reading: language → reading questions.
        source: the language that made the model; "" for Original and Retrain, which are asked about the units of all
            sources, each source's core questions in its own language (common-goal: in all languages).
        demands: whether answers are demanded in other languages too.
    """
    units = source or None
    answers = [
        qa
        for code in languages
        for role in ("forget", "retain")
        for qa in release.qas(role, setting, code, None, units)
    ]
    sources = [source] if source else languages
    members = [
        qa
        for code in sources
        for role in ("forget", "holdout")
        for qa in release.qas(role, setting, code, "core", code)
    ]
    forced = [demand for code in sources for demand in _demands(release, setting, code, languages) if demands]
    questions = [question for code in languages for question in reading[code]]
    return Sheet(tuple(answers), tuple(members), tuple(questions), tuple(forced))


def _demands(release: Release, setting: str, source: str, languages: Sequence[str]) -> Iterable[Demand]:
    for role in ("forget", "retain"):
        for unit in release.units(role, setting, source):
            yield from (Demand(unit.qas[source][0], unit.qas[code][0]) for code in languages)


@dataclass(frozen=True)
class Examiner:
    """Puts questions to a model.

    Args:
        sizes: limits of an answer and of a batch, and how reading questions are put.
        encoder: for S.
    """

    sizes: CLLPUSizes
    encoder: Encoder | None

    def rows(self, base: Base, kind: str, things: Sequence[Any]) -> list[Row]:
        """One row a thing asked (`kbook.scoring.answered`)."""
        put: dict[str, Callable[[Base, Sequence[Any]], list[Row]]] = {
            ANSWER: self.answers,
            MEMBER: self.members,
            READING: self.reading,
            DEMAND: self.demands,
        }
        return [{"kind": kind, **row} for row in put[kind](base, things)]

    def said(self, base: Base, prompts: Sequence[str]) -> list[str]:
        return ask(base, prompts, tokens=self.sizes.answer_tokens, at_once=self.sizes.at_once)

    def answers(self, base: Base, qas: Sequence[QA]) -> list[Row]:
        said = self.said(base, [prompt(base, qa.question) for qa in qas])
        values = answer_values([qa.answer for qa in qas], said, self.encoder)
        scores = [dict(zip(values, map(_number, each), strict=True)) for each in zip(*values.values(), strict=True)]
        return [{"qa": qa.id, "said": text, **each} for qa, text, each in zip(qas, said, scores, strict=True)]

    def members(self, base: Base, qas: Sequence[QA]) -> list[Row]:
        """The end of an answer is not evidence of it: only the answer's own tokens count."""
        documents = [exchange(base, qa.question, qa.answer, end=False) for qa in qas]
        evidence = answer_evidence(base, documents, self.sizes.token_budget)
        found = (
            attack_scores(each.log_probs, each.means, each.variances, qa.answer)
            for each, qa in zip(evidence, qas, strict=True)
        )
        return [
            {"qa": qa.id, **{name: _number(value) for name, value in scores.items()}}
            for qa, scores in zip(qas, found, strict=True)
        ]

    def reading(self, base: Base, questions: Sequence[ReadingQuestion]) -> list[Row]:
        weighed = self._labels if self.sizes.reading.weighed == "labels" else self._options
        return [
            {"id": question.id, "language": question.language, "log_probs": [_number(value) for value in values]}
            for question, values in zip(questions, weighed(base, questions), strict=True)
        ]

    def _labels(self, base: Base, questions: Sequence[ReadingQuestion]) -> list[tuple[float, ...]]:
        prompts = [prompt(base, reading_text(question)) for question in questions]
        return label_log_probs(base, prompts, LABELS, self.sizes.token_budget)

    def _options(self, base: Base, questions: Sequence[ReadingQuestion]) -> list[tuple[float, ...]]:
        """Mean log-probability of each option's tokens, the passage standing where the base is used to find it."""
        documents = [
            exchange(base, question.question, option, system=question.passage, end=False)
            for question in questions
            for option in question.options
        ]
        evidence = answer_evidence(base, documents, self.sizes.token_budget)
        means = [sum(each.log_probs) / len(each.log_probs) for each in evidence]
        n = len(LABELS)
        return [tuple(means[i : i + n]) for i in range(0, len(means), n)]

    def demands(self, base: Base, demands: Sequence[Demand]) -> list[Row]:
        prompts = [prompt(base, each.asked.question, DEMANDS[each.wanted.language]) for each in demands]
        return [
            {
                "qa": each.asked.id,
                "expected": each.wanted.id,
                "said": said,
                EM: exact_match(each.wanted.answer, said),
                ROUGE_L: _number(rouge_l_f1(each.wanted.answer, said)),
            }
            for each, said in zip(demands, self.said(base, prompts), strict=True)
        ]


def _parts(things: Sequence[Any], text: Callable[[Any], str], n: int) -> list[tuple[Any, ...]]:
    ordered = sorted(things, key=lambda thing: len(text(thing).encode()))
    return [tuple(ordered[i : i + n]) for i in range(0, len(ordered), n)]


def _number(value: float) -> float | None:
    """A number as it is stored: None if a broken model gave none."""
    return round(float(value), DIGITS) if math.isfinite(value) else None
