"""Topic pairs before anything is known about them but their articles: stage 1 of the construction.

A topic pair is a target, to be forgotten, and a neighbour of the same domain, to be kept. In the conditioned setting
it also has a source language and the reason why forgetting should stop there.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from kbook.corpora.units import SETTINGS, check_distinct, source_of
from kbook.corpora.worlds import Pairing, World
from kbook.errors import KBookError, unknown_name
from kbook.files import read_jsonl
from kbook.text import folded


@dataclass(frozen=True)
class Topic:
    """A topic by name, with its article in English."""

    id: str
    name: str
    article: str


@dataclass(frozen=True)
class Subject:
    """A target and its neighbour; ``source`` and ``rationale`` belong to the conditioned setting."""

    id: str
    setting: str
    domain: str
    target: Topic
    neighbour: Topic
    source: str | None = None
    rationale: str | None = None

    @property
    def sides(self) -> dict[str, Topic]:
        """``target`` and ``neighbour``, in this order."""
        return {"target": self.target, "neighbour": self.neighbour}


def world_subjects(world: World) -> tuple[Subject, ...]:
    """The designated topic pairs of a fictional world, with its articles."""
    return tuple(_subject(world, pair) for pair in world.topic_pairs)


def _subject(world: World, pair: Pairing) -> Subject:
    target, neighbour = (Topic(t.id, t.name["en"], world.article(t, "en")) for t in (pair.target, pair.neighbour))
    why = f"{pair.rationale.category}: {pair.rationale.evidence}" if pair.rationale else None
    return Subject(pair.id, pair.setting, pair.domain, target, neighbour, pair.source, why)


def read_subjects(path: Path | str) -> tuple[Subject, ...]:
    """Read topic pairs with their articles from a file of records, one pair a line, and check them.

    Fields of other names are not read.

    Example of a record::

        {"id": "de_two_lamps", "setting": "conditioned", "domain": "lamps", "source": "de", "rationale": "legal: ...",
         "target": {"id": "a", "name": "Lamp A", "article": "..."}, "neighbour": {"id": "b", ...}}

    Raises:
        KBookError: a line is no JSON object, or a field is missing or no text; as `check_subjects`.
    """
    subjects = []
    for number, row in enumerate(read_jsonl(Path(path)), 1):
        try:
            subjects.append(TypeAdapter(Subject).validate_python(row))
        except ValidationError as error:
            field = ".".join(map(str, error.errors()[0]["loc"]))
            remedy = "Give each pair id, setting, domain, target, neighbour, and source and rationale if conditioned"
            raise KBookError(f"is no topic pair, look at {field}", f"{path}, record {number}", remedy) from None
    check_subjects(subjects)
    return tuple(subjects)


def check_subjects(subjects: Iterable[Subject]) -> None:
    """Refuse topic pairs that break a rule of stage 1.

    Raises:
        KBookError: an id or a topic twice; a target that is its own neighbour; an empty article; an unknown setting;
            a conditioned pair whose id does not begin with its source language, or that has no rationale.
    """
    subjects = tuple(subjects)
    check_distinct("topic pair", (subject.id for subject in subjects), "topic pairs")
    topics = [topic for subject in subjects for topic in subject.sides.values()]
    check_distinct("topic", (topic.id for topic in topics), "topic pairs")
    check_distinct("topic", (folded(topic.name) for topic in topics), "topic pairs")
    for subject in subjects:
        _check_subject(subject)


def _check_subject(subject: Subject) -> None:
    if subject.setting not in SETTINGS:
        raise unknown_name("setting", subject.setting, SETTINGS, subject.id)
    if empty := [topic.name for topic in subject.sides.values() if not topic.article.strip()]:
        raise KBookError(f"the article on {empty[0]} is empty", subject.id, "Give each topic its article")
    if subject.source != source_of(subject.id, subject.setting):
        remedy = "Begin the id of a conditioned pair, and no other, with its source language and _"
        raise KBookError(f"its source language is {subject.source}", subject.id, remedy)
    if subject.setting == "conditioned" and not subject.rationale:
        remedy = "Say why forgetting should stop at this language"
        raise KBookError("a conditioned pair has no rationale", subject.id, remedy)
