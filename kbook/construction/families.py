"""English questions about the chosen units, and the checks that each family must pass.

A family is a core question and three surface variants (a holdout unit: the core question alone), with the same
relation, slot and answer. A family that fails is written again; one that keeps failing is given up.

Source: protocol B, section 2, stage 2 (the paper on languages, appendix A.2, English-QA review).
"""

from __future__ import annotations

from collections.abc import Sequence

from kbook.construction.candidates import answers_directly, normal_name
from kbook.construction.providers import Wording
from kbook.corpora.units import Card
from kbook.text import folded

MAX_CHARS = 300
_SHORT = 4


def why_not_family(card: Card, family: Sequence[Wording], n: int, partner: Card | None = None) -> str:
    """Say what is wrong with the questions about a card; "" if nothing is.

    Checked here: their number, that each is a question of bearable length, that its answer is the card's, that it
    shares a word with the fact, that no two are alike, that no question holds the answer, and that none holds the
    answer of the other unit of the pair. Whether relation and slot are kept is for a reviewer to say.

    Args:
        card: the unit.
        family: its questions, the core question first.
        n: how many there must be.
        partner: the other unit of the pair.
    """
    if len(family) != n:
        return "wrong number of questions"
    for wording in family:
        if reason := _why_not(card, wording, partner):
            return reason
    if len({normal_name(wording.question) for wording in family}) < n:
        return "two questions alike"
    return ""


def _why_not(card: Card, wording: Wording, partner: Card | None) -> str:
    question = folded(wording.question)
    reasons = {
        "not a question": not question.endswith("?") or not 1 < len(question) <= MAX_CHARS,
        "another answer": folded(wording.answer) != folded(card.answer),
        "answer inside the question": _holds(question, card),
        "answer of the other unit in the question": partner is not None and _holds(question, partner),
        "not grounded in the fact": not (_words(wording.question) & _words(f"{card.statement} {card.span}")),
        "answer not in the evidence": not answers_directly(card),
    }
    return next((reason for reason, holds in reasons.items() if holds), "")


def _holds(question: str, card: Card) -> bool:
    """Whether the answer stands in a question as words of its own."""
    plain = f"_{normal_name(question)}_"
    return any(f"_{normal_name(answer)}_" in plain for answer in (card.answer, *card.aliases) if normal_name(answer))


def _words(text: str) -> set[str]:
    return {word for word in normal_name(text).split("_") if len(word) >= _SHORT}
