"""A fictional world in ten languages: topics, their facts, and how each language states and asks them.

Everything in such a world is invented for this project and dated after the release of any base model, so that
no model can know it. Target and neighbour of a topic pair are topics of one domain: they answer the same
relations differently. What a fact is (`Fact.value`: a day, a number, the key of a name) is kept apart from how a
language writes it.

Example:
    >>> world = load_world("almanac")
    >>> fact = world.facts(world.topic("orvane"))[1]
    >>> world.question(fact, "en", 0), world.answer(fact, "de")
    ('When did Storm Orvane make landfall?', '14. September 2032')
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date
from functools import cache, cached_property
from itertools import islice
from pathlib import Path
from random import Random
from typing import Literal

from kbook.corpora.backgrounds import Drawn, draw_topics
from kbook.corpora.coinage import Forms
from kbook.corpora.languages import language
from kbook.corpora.values import date_aliases, date_text, number_aliases, number_text
from kbook.corpora.world_checks import check_entries, check_world
from kbook.corpora.world_files import (
    NAMED,
    AnswerType,
    Domain,
    PairEntry,
    Relation,
    Titles,
    Value,
    WorldFiles,
    read_world_files,
)
from kbook.errors import unknown_name
from kbook.paths import data_folder

Setting = Literal["common-goal", "conditioned"]


@dataclass(frozen=True)
class Topic:
    """A topic: ``name`` in each language, ``values`` by relation."""

    id: str
    domain: str
    name: Forms = field(hash=False)
    values: Mapping[str, Value] = field(hash=False)


@dataclass(frozen=True)
class Fact:
    """One fact of a topic. ``value`` is a day, a number, or the key of a name or term."""

    topic: Topic
    relation: str
    slot: str
    answer_type: AnswerType
    value: Value

    @property
    def id(self) -> str:
        """``orvane/landfall-date``."""
        return f"{self.topic.id}/{self.relation}"


@dataclass(frozen=True)
class Rationale:
    """Why a topic would be forgotten in one language only: a category, and evidence, as fictional as the world."""

    category: str
    evidence: str


@dataclass(frozen=True)
class Pairing:
    """A target topic and its neighbour. ``source`` and ``rationale`` are None in the common-goal setting."""

    id: str
    setting: Setting
    source: str | None
    domain: str
    target: Topic
    neighbour: Topic
    rationale: Rationale | None = None


@dataclass(frozen=True)
class World:
    """Topics with everything that is needed to write them in ten languages.

    Args:
        name: the folder in ``data/worlds``; a background adds its seed.
        licence: SPDX identifier of the authored text.
        domains: templates by domain.
        measures: what numbers count, by key: a pattern for each language.
        names: forms of names by answer type and key.
        titles: words of which titles are coined.
        topics: all topics.
        topic_pairs: the designated pairs; none in a background.
    """

    name: str
    licence: str
    domains: Mapping[str, Domain] = field(repr=False)
    measures: Mapping[str, Forms] = field(repr=False)
    names: Mapping[str, Mapping[str, Forms]] = field(repr=False)
    titles: Titles = field(repr=False)
    topics: tuple[Topic, ...] = field(repr=False)
    topic_pairs: tuple[Pairing, ...] = field(repr=False, default=())

    def topic(self, id: str) -> Topic:
        """Look a topic up.

        Raises:
            KBookError: there is no such topic.
        """
        if id not in self._by_id:
            raise unknown_name("topic", id, self._by_id, f"world {self.name}")
        return self._by_id[id]

    @cached_property
    def _by_id(self) -> Mapping[str, Topic]:
        return {topic.id: topic for topic in self.topics}

    def facts(self, topic: Topic) -> tuple[Fact, ...]:
        """The facts of a topic, in the order of its domain's relations."""
        relations = self.domains[topic.domain].relations
        return tuple(Fact(topic, key, r.slot, r.answer, topic.values[key]) for key, r in relations.items())

    def article(self, topic: Topic, language_code: str = "en") -> str:
        """A short text on a topic: who or what it is, then each fact as a sentence, word for word as `statement`."""
        lead = self.domains[topic.domain].lead[language_code].format(topic=topic.name[language_code])
        statements = (self.statement(fact, language_code) for fact in self.facts(topic))
        return language(language_code).gap.join([lead, *statements])

    def statement(self, fact: Fact, language_code: str) -> str:
        """The fact as a sentence that holds the answer."""
        template = self._relation(fact).statement[language_code]
        return template.format(topic=fact.topic.name[language_code], answer=self.answer(fact, language_code))

    def question(self, fact: Fact, language_code: str, wording: int) -> str:
        """A question whose answer is the fact's. ``wording`` 0 is the core question, 1 to 3 are surface variants."""
        return self._relation(fact).questions[language_code][wording].format(topic=fact.topic.name[language_code])

    def answer(self, fact: Fact, language_code: str) -> str:
        """The answer as the language writes it."""
        if isinstance(fact.value, date):
            return date_text(fact.value, language_code)
        if isinstance(fact.value, str):
            return self.forms(fact)[language_code]
        return number_text(fact.value, self._measure(fact), language_code)

    def aliases(self, fact: Fact, language_code: str) -> tuple[str, ...]:
        """Other ways to write the answer in the same language; none for names and terms."""
        if isinstance(fact.value, date):
            return date_aliases(fact.value, language_code)
        if isinstance(fact.value, str):
            return ()
        return number_aliases(fact.value, self._measure(fact), language_code)

    def forms(self, fact: Fact) -> Forms:
        """The ten forms of a fact whose value is the key of a name or term."""
        if fact.answer_type in NAMED:
            return self.names[fact.answer_type][str(fact.value)]
        return self.domains[fact.topic.domain].terms[self._relation(fact).terms][str(fact.value)]

    def all_names(self) -> Iterator[Forms]:
        """The forms of every topic and every name."""
        yield from (topic.name for topic in self.topics)
        for names in self.names.values():
            yield from names.values()

    def background(self, seed: int, n_topics: int) -> World:
        """Draw a world of the same domains with coined names: same seed, same topics, and a longer one starts alike.

        No topic, person, place, organisation or own name of it occurs in this world; see
        `kbook.corpora.backgrounds`.
        """
        name = f"{self.name}-{seed}"
        topics = draw_topics(self.domains, self.titles, self.all_names(), Random(name))
        drawn = list(islice(topics, n_topics))
        names: dict[str, Mapping[str, Forms]] = {
            kind: {key: f for d in drawn for key, f in d.names[kind].items()} for kind in NAMED
        }
        numbered = tuple(_topic(i, d) for i, d in enumerate(drawn))
        return World(name, self.licence, self.domains, self.measures, names, self.titles, numbered)

    def _relation(self, fact: Fact) -> Relation:
        return self.domains[fact.topic.domain].relations[fact.relation]

    def _measure(self, fact: Fact) -> str | Forms:
        measure = self._relation(fact).measure
        return self.measures.get(measure, measure)


def _topic(number: int, drawn: Drawn) -> Topic:
    return Topic(f"{drawn.domain}-{number:05d}", drawn.domain, drawn.name, drawn.facts)


def world_names() -> list[str]:
    """The names of all authored worlds."""
    return sorted(path.parent.name for path in (data_folder() / "worlds").glob("*/world.toml"))


@cache
def load_world(name: str) -> World:
    """Load an authored world and check it.

    Raises:
        KBookError: there is no such world, or one of its files is wrong; file, field and remedy are named
            (`kbook.corpora.world_files`, `kbook.corpora.world_checks`).
    """
    if name not in (names := world_names()):
        raise unknown_name("world", name, names, str(data_folder() / "worlds"))
    return read_world(data_folder() / "worlds" / name)


def read_world(folder: Path) -> World:
    """Read and check a world from any folder.

    Raises:
        KBookError: as `load_world`.
    """
    files = read_world_files(folder)
    check_entries(files, str(folder))
    world = _built(files)
    check_world(world, str(folder))
    return world


def _built(files: WorldFiles) -> World:
    topics = {
        id: Topic(id, key, entry.name, entry.facts)
        for key, domain in files.domains.items()
        for id, entry in domain.topics.items()
    }
    pairs = tuple(_pairing(key, pair, topics) for key, domain in files.domains.items() for pair in domain.pairs)
    return World(
        files.name,
        files.licence,
        files.domains,
        files.measures,
        files.names,
        files.titles,
        tuple(topics.values()),
        pairs,
    )


def _pairing(domain: str, pair: PairEntry, topics: Mapping[str, Topic]) -> Pairing:
    setting: Setting = "conditioned" if pair.source else "common-goal"
    rationale = Rationale(pair.category, pair.evidence) if pair.source else None
    id = f"{pair.source or 'common'}_{pair.target}"
    return Pairing(id, setting, pair.source or None, domain, topics[pair.target], topics[pair.neighbour], rationale)
