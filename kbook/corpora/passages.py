"""Passages: what a search index holds. One passage a person, titled with the name."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from kbook.corpora.people import Person


@dataclass(frozen=True)
class Passage:
    """A titled text. ``person`` is the id of the person it is about ("" if it is about nobody)."""

    id: str
    title: str
    text: str
    person: str = ""

    def excerpt(self, characters: int) -> str:
        """The first ``characters`` of the text, on one line (a line of its own could pass for the agent's)."""
        return " ".join(self.text.split())[:characters]

    def shown(self, characters: int) -> str:
        """What a search returns: the title and an excerpt."""
        return f"{self.title}: {self.excerpt(characters)}"


def passages_of(people: Iterable[Person]) -> tuple[Passage, ...]:
    """The biographies of ``people`` as passages, in their order."""
    return tuple(Passage(f"w-{p.id}", p.name, p.biography, p.id) for p in people)
