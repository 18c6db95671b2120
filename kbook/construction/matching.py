"""The schema-aware matcher: which unit of the neighbour is like which unit of the target.

Deterministic, and the same for any order of its input. Two units can be matched when they have the same relation,
slots that overlap, answers of one type or family, and answers that stand in their spans. Eligible pairs are ranked by
agreement of answer types, then overlap of slots, support by spans and priority of extraction, and taken greedily, no
unit and no statement twice.

Source: protocol B, section 2, stage 2 (the paper on languages, section 3.2.1 and appendix A.2). The paper names the
criteria and their order; the thresholds here are ours.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from kbook.construction.candidates import Candidate, answers_directly, normal_name
from kbook.construction.judged import Judged
from kbook.corpora.units import Card
from kbook.profiles import Count, Section
from kbook.text import folded

Fraction = Annotated[float, Field(ge=0, le=1)]

FAMILIES = {
    "time": ("date", "day", "month", "year", "time", "date_range", "period"),
    "quantity": ("number", "quantity", "quantity_statistic", "measurement", "percentage", "amount", "money"),
    "place": ("place", "location", "city", "country", "region", "venue", "facility"),
    "agent": ("person", "person_name", "organisation", "organization", "organization_name", "group"),
    "name": ("name", "title", "work", "product", "event"),
    "concept": ("term", "concept", "category", "role", "cause"),
}
"""Families of answer types that may be matched with one another."""

WEIGHTS = {"agreement": 0.4, "slots": 0.3, "support": 0.2, "priority": 0.1}


class MatchRule(Section):
    """Limits of the matcher.

    Args:
        min_slots: smallest overlap of the words of two slots (Jaccard).
        min_score: smallest score of a pair.
        strong: from this score on, a pair is strong.
        max_words: words in an answer, at most.
        families: family → answer types that may be matched with one another.
    """

    min_slots: Fraction = 0.5
    min_score: Fraction = 0.6
    strong: Fraction = 0.8
    max_words: Count = 12
    families: dict[str, tuple[str, ...]] = FAMILIES


@dataclass(frozen=True)
class Match:
    """Two units beside each other, with what speaks for the pair.

    *Unit*: all parts are in [0, 1]: ``agreement`` is 1 for equal answer types and 0.5 within a family, ``slots``
    the overlap of the slots, ``support`` the share of the statements' words found in their spans, ``priority``
    1 for the first units that were extracted.
    """

    target: Card
    neighbour: Card
    agreement: float
    slots: float
    support: float
    priority: float

    @property
    def score(self) -> float:
        """Weighted mean of the four parts."""
        return sum(weight * getattr(self, part) for part, weight in WEIGHTS.items())

    @property
    def relation(self) -> str:
        return normal_name(self.target.relation)

    @property
    def rank(self) -> tuple[float, float, float, float, str, str]:
        """What pairs are sorted by, the best first; ids break ties."""
        return (-self.agreement, -self.slots, -self.support, -self.priority, self.target.id, self.neighbour.id)


def match_units(
    targets: Iterable[Candidate], neighbours: Iterable[Candidate], rule: MatchRule
) -> tuple[Judged[Match], ...]:
    """Judge every pair of a target unit and a neighbour unit that have the same relation, best first.

    Kept pairs are one to one: no unit and no statement is in two of them.
    """
    found = [_match(one, other) for one in targets for other in neighbours if _same_relation(one.card, other.card)]
    used: set[str] = set()
    judged = []
    for match in sorted(found, key=lambda match: match.rank):
        reason = _why_not(match, rule)
        names = {name for card in (match.target, match.neighbour) for name in (card.id, folded(card.statement))}
        if not reason and used & names:
            reason = "a unit or statement of it is matched already"
        if not reason:
            used |= names
        judged.append(Judged(match, reason))
    return tuple(judged)


def _same_relation(one: Card, other: Card) -> bool:
    return normal_name(one.relation) == normal_name(other.relation)


def _match(one: Candidate, other: Candidate) -> Match:
    both = (one.card, other.card)
    types = {normal_name(card.answer_type) for card in both}
    support = sum(map(_support, both)) / 2
    priority = sum(1 / (1 + each.priority) for each in (one, other)) / 2
    return Match(*both, 1.0 if len(types) == 1 else 0.5, _overlap(one.card.slot, other.card.slot), support, priority)


def _why_not(match: Match, rule: MatchRule) -> str:
    both = (match.target, match.neighbour)
    answers = [folded(card.answer) for card in both]
    reasons = {
        "answer types of different families": match.agreement < 1 and not _one_family(both, rule),
        "weak: slots differ": match.slots < rule.min_slots,
        "no direct support in a span": not all(map(answers_directly, both)),
        "identical answers": answers[0] == answers[1],
        "overlong answer": any(len(answer.split()) > rule.max_words for answer in answers),
        "low score": match.score < rule.min_score,
    }
    return next((reason for reason, holds in reasons.items() if holds), "")


def _one_family(cards: Iterable[Card], rule: MatchRule) -> bool:
    types = {normal_name(card.answer_type) for card in cards}
    return any(types <= set(family) for family in rule.families.values())


def _overlap(one: str, other: str) -> float:
    words, others = (set(normal_name(text).split("_")) for text in (one, other))
    return len(words & others) / len(words | others)


def _support(card: Card) -> float:
    """The share of a statement's words that its span holds."""
    words, span = set(normal_name(card.statement).split("_")), set(normal_name(card.span).split("_"))
    return len(words & span) / len(words)
