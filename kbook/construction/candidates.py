"""Candidate units as they were extracted from an article, and the checks that each must pass.

Source: protocol B, section 2, stage 2 (the paper on languages, appendix A.2, candidate extraction).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields

from kbook.construction.judged import Judged
from kbook.corpora.units import Card
from kbook.text import folded

NOT_IN_SPAN = "answer not in its span"
_OPTIONAL = {"id", "aliases"}


@dataclass(frozen=True)
class Candidate:
    """A unit that was extracted, any of whose fields may be empty or wrong.

    Args:
        card: what was extracted.
        priority: its place in the order of extraction, from 0.
        fault: what was planted in it on purpose, "" if nothing; no check reads it.
    """

    card: Card
    priority: int
    fault: str = ""


def judge_candidates(
    candidates: Iterable[Candidate], article: str, relations: Sequence[str]
) -> tuple[Judged[Candidate], ...]:
    """Judge the candidates of one topic, in the order of extraction: of two alike, the first is kept.

    Refused are units with missing fields, of a relation outside the inventory that both topics share, with a span
    that is not in the article, and with a statement or a relation and answer that came before. Flagged is a unit
    whose answer is not in its span. Case and spacing never count.

    Args:
        candidates: of one topic.
        article: its text.
        relations: the inventory of relations.
    """
    text, inventory = folded(article), {normal_name(relation) for relation in relations}
    statements: set[str] = set()
    answers: set[tuple[str, str]] = set()
    judged = []
    for candidate in sorted(candidates, key=lambda each: (each.priority, each.card.id)):
        card = candidate.card
        statement, answer = folded(card.statement), (normal_name(card.relation), folded(card.answer))
        reason = _fault_of_its_own(card, text, inventory)
        if not reason and statement in statements:
            reason = "duplicate statement"
        elif not reason and answer in answers:
            reason = "duplicate relation and answer"
        if not reason:
            statements.add(statement)
            answers.add(answer)
        judged.append(Judged(candidate, reason, "" if reason or answers_directly(card) else NOT_IN_SPAN))
    return tuple(judged)


def answers_directly(card: Card) -> bool:
    """Whether the answer, or another spelling of it, stands in the supporting span."""
    span = folded(card.span)
    return any(folded(answer) in span for answer in (card.answer, *card.aliases) if answer.strip())


def normal_name(text: str) -> str:
    """A relation, slot or type as it is compared: case folded, anything but letters and digits as ``_``.

    Example:
        >>> normal_name("Opening-Date ")
        'opening_date'
    """
    return "_".join("".join(c if c.isalnum() else " " for c in folded(text)).split())


def _fault_of_its_own(card: Card, article: str, inventory: set[str]) -> str:
    texts = {field.name: getattr(card, field.name) for field in fields(card) if field.name not in _OPTIONAL}
    if missing := [name for name, text in texts.items() if not text.strip()]:
        return f"missing field: {missing[0]}"
    if normal_name(card.relation) not in inventory:
        return "relation not shared by both topics"
    if folded(card.span) not in article:
        return "span not in the article"
    return ""
