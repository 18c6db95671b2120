"""What somebody with a command of language must do for the construction, whoever does it.

Two providers answer: `WorldProvider` (`kbook.construction.world_provider`), deterministic, from the tables of a
fictional world, and `EndpointProvider` (`kbook.construction.endpoint`), which asks language models.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from kbook.construction.candidates import Candidate
from kbook.construction.topics import Topic
from kbook.corpora.units import QA, Card


@dataclass(frozen=True)
class Wording:
    """A question and its answer as somebody worded them: written, translated or translated back.

    ``fault`` says what was planted in it on purpose, "" if nothing; no check reads it.
    """

    question: str
    answer: str
    aliases: tuple[str, ...] = ()
    fault: str = ""


@dataclass(frozen=True)
class Comparison:
    """What a translation kept, judged by its back-translation: question intent, answer, its boundary, and its role.

    The boundary is kept when the answer is asked for as narrowly as before (a city, not a country); the role when a
    core question is still one and a surface variant likewise.
    """

    intent: bool
    answer: bool
    boundary: bool
    role: bool

    @property
    def lost(self) -> str:
        """The first thing that was lost; "" if nothing was."""
        return next((name for name in ("intent", "answer", "boundary", "role") if not getattr(self, name)), "")


class NoUsableReply(Exception):
    """A provider was asked and said nothing that could be used; the construction counts it and goes on."""


class Provider(Protocol):
    """Who does what needs language.

    Args:
        name: a segment of a key, which says in every table who made the data.
        digest: of all that decides the answers.
        sources: modules that do the work, for the digest of a run.
        workers: how many questions may be put at once.
    """

    @property
    def name(self) -> str: ...
    @property
    def digest(self) -> str: ...
    @property
    def sources(self) -> tuple[str, ...]: ...
    @property
    def workers(self) -> int: ...

    def shared_relations(self, target: Topic, neighbour: Topic) -> tuple[str, ...]:
        """Name the relations that both articles support."""

    def extract(self, topic: Topic, relations: Sequence[str], limit: int) -> tuple[Candidate, ...]:
        """Extract up to ``limit`` units of these relations from an article; ids are given later."""

    def write_families(self, cards: Sequence[Card], n: int, attempt: int) -> tuple[tuple[Wording, ...], ...]:
        """Write ``n`` English questions about each card, the core question first, from the cards alone.

        The two cards of a pair come together, so that their questions stay comparable. ``attempt`` counts from 1.
        """

    def translate(self, card: Card, qa: QA, language: str, attempt: int) -> Wording:
        """Translate an English question, bound to both anchors: the card (what is asked) and the question (how)."""

    def back_translate(self, wording: Wording, language: str) -> Wording:
        """Translate back into English, knowing nothing but the translation."""

    def compare(self, qa: QA, back: Wording) -> Comparison:
        """Compare an English question with the back-translation of its translation."""

    def review(self, card: Card, qa: QA, wording: Wording, language: str) -> str:
        """Review a wording against card and English question, independently; "" or what is wrong with it."""

    def judge(self, question: str, expected: str, answer: str, language: str) -> float:
        """Score how right an answer is, in [0, 1]."""
