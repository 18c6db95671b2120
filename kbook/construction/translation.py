"""Translation with two anchors, a blind back-translation as its check, and an independent review.

One anchor is the card: what is asked. The other is the English question: how it is asked, as a core question or a
surface variant. What fails is translated again, up to a number of attempts.

Source: protocol B, section 2, stage 3 (the paper on languages, section 3.3 and appendix A.3).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

from kbook.construction.families import MAX_CHARS
from kbook.construction.providers import NoUsableReply, Provider, Wording
from kbook.corpora.languages import language as language_of
from kbook.corpora.units import QA, Card
from kbook.text import folded

_SHARE_OF_SCRIPT = 0.5


@dataclass(frozen=True)
class Attempt:
    """One try at a translation: its wording, the back-translation where there was one, and why it was refused."""

    number: int
    wording: Wording
    back: Wording | None
    reason: str = ""


def translate(
    provider: Provider, card: Card, qa: QA, language: str, *, attempts: int, taken: Collection[str] = ()
) -> tuple[Attempt, ...]:
    """Translate one English question until a translation passes all checks, or the attempts are used up.

    Args:
        provider: who translates, translates back, compares and reviews.
        card: the unit: the first anchor.
        qa: the English question: the second anchor.
        language: to translate into.
        attempts: how often to try, at most.
        taken: questions of the same family that were accepted before.
    Returns:
        all attempts in order; only the last can have passed (its reason is "").
    """
    made: list[Attempt] = []
    while len(made) < attempts and not (made and not made[-1].reason):
        made.append(_attempt(provider, card, qa, language, len(made) + 1, {folded(text) for text in taken}))
    return tuple(made)


def _attempt(provider: Provider, card: Card, qa: QA, language: str, number: int, taken: set[str]) -> Attempt:
    wording, back = Wording("", ""), None
    try:
        wording = provider.translate(card, qa, language, number)
        if reason := why_not_wording(wording, language, taken):
            return Attempt(number, wording, None, reason)
        back = provider.back_translate(replace(wording, fault=""), language)
        if lost := provider.compare(qa, back).lost:
            return Attempt(number, wording, back, f"back-translation: {lost} not kept")
        finding = provider.review(card, qa, replace(wording, fault=""), language)
    except NoUsableReply:
        return Attempt(number, wording, back, "no usable reply")
    return Attempt(number, wording, back, f"review: {finding}" if finding else "")


def why_not_wording(wording: Wording, language: str, taken: Collection[str] = ()) -> str:
    """Say what can be seen to be wrong with a wording without understanding it; "" if nothing is."""
    texts = (wording.question, wording.answer)
    if not all(text.strip() for text in texts) or any(len(text) > MAX_CHARS for text in texts):
        return "empty or overlong"
    if not _in_script(wording.question, language):
        return "question in another script"
    return "another question of the family has these words" if folded(wording.question) in taken else ""


def _in_script(text: str, language: str) -> bool:
    letters = [c for c in text if c.isalpha()]
    own = sum(map(language_of(language).writes, letters))
    return bool(letters) and own >= _SHARE_OF_SCRIPT * len(letters)
