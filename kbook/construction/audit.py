"""The sheet of the human audit: rounds of translated questions, drawn over all languages, settings, roles and layers.

An auditor who reads English and the language fills in the last columns; `audit_result` counts them.

Source: protocol B, section 2, stage 3 (the paper on languages, section 3.3.2): twenty rounds of a hundred.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any

from kbook.corpora.units import QA, ROLES, SETTINGS, Card, Release
from kbook.errors import KBookError

CRITERIA = ("fact", "intent", "boundary", "role", "fluent")
"""What an auditor answers with ``yes`` or ``no``: the fact, the intent of the question, the boundary of the answer and
core or surface are kept, and the language is natural."""


@dataclass(frozen=True)
class AuditResult:
    """A filled sheet: answers of either kind by criterion, and rows in which every criterion is met."""

    n_rows: int
    n_filled: int
    n_accepted: int
    refused: Mapping[str, int]


def audit_rows(release: Release, rounds: int = 20, per_round: int = 100, seed: int = 0) -> list[dict[str, Any]]:
    """Draw the translated questions to audit, without replacement; fewer where the release has fewer.

    The strata are language x setting x role x layer, taken in turn, so that each round of a hundred has nearly all.

    Returns:
        one row a question: what it is, its English anchors, the translation, and empty cells for `CRITERIA`.
    """
    random = Random(seed)
    strata: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    for names, row in _translated(release):
        strata.setdefault(names, []).append(row)
    columns = [random.sample(rows, len(rows)) for _, rows in sorted(strata.items())]
    random.shuffle(columns)
    deepest = max(map(len, columns), default=0)
    drawn = [column[depth] for depth in range(deepest) for column in columns if depth < len(column)]
    blank = {**dict.fromkeys(CRITERIA, ""), "note": ""}
    return [
        {"round": place // per_round + 1, "place": place % per_round + 1, **row, **blank}
        for place, row in enumerate(drawn[: rounds * per_round])
    ]


def audit_result(rows: Iterable[Mapping[str, Any]]) -> AuditResult:
    """Count a filled sheet; rows in which a criterion is still empty are not filled.

    Raises:
        KBookError: a cell of a criterion holds something other than yes, no or nothing; its question is named.
    """
    rows = list(rows)
    filled = []
    for row in rows:
        answers = {criterion: str(row.get(criterion) or "").strip().casefold() for criterion in CRITERIA}
        if unknown := sorted(set(answers.values()) - {"yes", "no", ""}):
            remedy = "Answer each criterion with yes or no"
            raise KBookError(f"the answer {unknown[0]!r}", f"audit sheet, {row.get('question_id')}", remedy)
        if all(answers.values()):
            filled.append(answers)
    refused = {criterion: sum(answers[criterion] == "no" for answers in filled) for criterion in CRITERIA}
    n_accepted = sum("no" not in answers.values() for answers in filled)
    return AuditResult(len(rows), len(filled), n_accepted, refused)


def _translated(release: Release) -> Iterator[tuple[tuple[str, ...], dict[str, Any]]]:
    """Every question that is not English beside its English anchors, with the names of its stratum."""
    for setting in SETTINGS:
        for role in ROLES:
            for unit in release.units(role, setting):
                for language in release.languages:
                    if language != "en":
                        for english, qa in zip(unit.qas["en"], unit.qas[language], strict=True):
                            yield (language, setting, role, qa.layer), _row(setting, unit.card, english, qa)


def _row(setting: str, card: Card, english: QA, qa: QA) -> dict[str, Any]:
    return {
        "question_id": qa.id,
        "language": qa.language,
        "setting": setting,
        "role of the unit": qa.role,
        "layer": qa.layer,
        "statement": card.statement,
        "English question": english.question,
        "English answer": english.answer,
        "question": qa.question,
        "answer": qa.answer,
    }
