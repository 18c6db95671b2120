"""What the files of a world must say together, and what would make a measurement on it meaningless."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import date, timedelta
from typing import TYPE_CHECKING

from kbook.corpora.languages import LANGUAGES
from kbook.corpora.world_files import N_WORDINGS, NAMED, Domain, Relation, TopicEntry, Value, WorldFiles
from kbook.errors import KBookError
from kbook.text import folded

if TYPE_CHECKING:
    from kbook.corpora.worlds import Fact, World

_TYPES = {"date": (date,), "number": (int, float)}


def check_entries(files: WorldFiles, where: str) -> None:
    """Refuse a topic whose values are not those its domain asks for, and a pair of unknown topics.

    Raises:
        KBookError: a topic id in two domains; a relation without value or a value without relation; a value of
            another type, out of range, or not a known name or term; a pair of unknown topics, or a topic in two
            pairs.
    """
    _refuse(_twice([id for domain in files.domains.values() for id in domain.topics]), where, "give each topic one id")
    for key, domain in files.domains.items():
        place = f"{where}/domains/{key}.toml"
        _refuse(_wrong_relations(domain, files), place, "mend the relation")
        for id, topic in domain.topics.items():
            _refuse(_wrong_facts(domain, topic, files), f"{place}, topic {id}", "mend the facts of the topic")
        _refuse(_wrong_pairs(domain), place, "pair each topic once, with another topic of its domain")


def _refuse(problems: Iterator[str], where: str, remedy: str) -> None:
    for problem in problems:
        raise KBookError(problem, where, remedy)


def _twice(keys: list[str]) -> Iterator[str]:
    yield from (f"{key} stands for two things" for key, n in Counter(keys).items() if n > 1)


def _wrong_relations(domain: Domain, files: WorldFiles) -> Iterator[str]:
    seen: set[str] = set()
    for key, relation in domain.relations.items():
        if relation.terms and relation.terms not in domain.terms:
            yield f"{key} takes its terms from an unknown list {relation.terms}"
        if relation.after and relation.after.relation not in seen:
            yield f"{key} follows {relation.after.relation}, which does not stand before it"
        if relation.answer == "number" and "-" not in relation.measure and relation.measure not in files.measures:
            yield f"{key} has an unknown measure {relation.measure}"
        seen.add(key)


def _wrong_facts(domain: Domain, topic: TopicEntry, files: WorldFiles) -> Iterator[str]:
    yield from (f"lacks {key}" for key in domain.relations if key not in topic.facts)
    yield from (f"has an unknown relation {key}" for key in topic.facts if key not in domain.relations)
    for key, relation in domain.relations.items():
        if not _fits(relation, key, domain, topic, files):
            yield f"{key} = {topic.facts[key]} is no {relation.answer} of its range or list"


def _fits(relation: Relation, key: str, domain: Domain, topic: TopicEntry, files: WorldFiles) -> bool:
    value = topic.facts[key]
    if relation.answer in NAMED:
        return value in files.names[relation.answer]
    if relation.answer == "term":
        return value in domain.terms[relation.terms]
    if not isinstance(value, _TYPES[relation.answer]):
        return False
    low, high = _range(relation, topic)
    return bool(low <= value <= high)  # type: ignore[operator]


def _range(relation: Relation, topic: TopicEntry) -> tuple[object, object]:
    if relation.after is None:
        assert relation.range is not None
        return relation.range
    earlier = topic.facts[relation.after.relation]
    assert isinstance(earlier, date)
    low, high = relation.after.days
    return earlier + timedelta(days=low), earlier + timedelta(days=high)


def _wrong_pairs(domain: Domain) -> Iterator[str]:
    paired = [id for pair in domain.pairs for id in (pair.target, pair.neighbour)]
    yield from (f"unknown topic {id} in a pair" for id in paired if id not in domain.topics)
    yield from _twice(paired)


def check_world(world: World, where: str) -> None:
    """Refuse a world in which a question gives its answer away or two things cannot be told apart.

    Dates and numbers need no look here: no name and no question holds a digit (`kbook.corpora.world_files`), and
    two of them are written alike only if they are the same.

    Raises:
        KBookError: a name that stands for two things in some language; an answer inside one of its questions;
            two questions of a domain alike; a target and a neighbour with the same answer.
    """
    for code in LANGUAGES:
        place = f"{where}: {code}"
        for kind in NAMED:
            names = [folded(forms[code]) for forms in world.names[kind].values()]
            _refuse(_twice(names), f"{place}, {kind}", "give each name a form of its own in every language")
        topics = [folded(topic.name[code]) for topic in world.topics]
        _refuse(_twice(topics), f"{place}, topics", "give each topic a name of its own in every language")
        _refuse(_alike(world, code), place, "give each question words of its own")
        _refuse(_giveaways(world, code), place, "ask without saying the answer")
        _refuse(_same_answers(world, code), place, "let target and neighbour answer differently")


def _alike(world: World, code: str) -> Iterator[str]:
    for domain in world.domains.values():
        yield from _twice([folded(q) for relation in domain.relations.values() for q in relation.questions[code]])


def _giveaways(world: World, code: str) -> Iterator[str]:
    for fact in (fact for topic in world.topics for fact in world.facts(topic) if isinstance(fact.value, str)):
        answer = folded(world.forms(fact)[code])
        for wording in range(N_WORDINGS):
            if answer in folded(question := world.question(fact, code, wording)):
                yield f"{fact.id} is answered by its own question: {question}"


def _same_answers(world: World, code: str) -> Iterator[str]:
    for pair in world.topic_pairs:
        for one, other in zip(world.facts(pair.target), world.facts(pair.neighbour), strict=True):
            if _distinguishing(world, one, code) == _distinguishing(world, other, code):
                yield f"{one.id} and {other.id} have the same answer"


def _distinguishing(world: World, fact: Fact, code: str) -> Value:
    return folded(world.forms(fact)[code]) if isinstance(fact.value, str) else fact.value
