"""Knowledge units of protocol B: facts, the questions about them in each language, and what is forgotten with what.

A *unit* is one fact (its card, in English) with its questions: a core question and three surface variants in every
language. A *pair* of units has one unit to forget and one to retain, about the same relation of two topics. Holdout
units belong to the same topics, are in no pair, and have a core question only.

Source: protocol B, sections 1 and 2 (the paper on languages, section 3 and appendix A).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property

from kbook.corpora.languages import LANGUAGES
from kbook.digests import digest_of
from kbook.errors import KBookError, unknown_name

ROLES = ("forget", "retain", "holdout")
LAYERS = ("core", "surface")
SETTINGS = ("common-goal", "conditioned")
N_SURFACE = 3
FAMILY = ("core", *["surface"] * N_SURFACE)
"""The layers of the questions of a unit to forget or retain, in order; a holdout unit has the first alone."""


@dataclass(frozen=True)
class Card:
    """One fact, in English.

    Args:
        id: unlike any other card's.
        relation: kind of the fact, such as ``opening_date``; both units of a pair have the same.
        slot: which of the things that the relation may ask for.
        statement: the fact as a sentence.
        answer: what is asked for, as briefly as it can be said.
        answer_type: what kind of thing the answer is.
        span: words of the article that support the fact.
        aliases: other spellings of the answer.
    """

    id: str
    relation: str
    slot: str
    statement: str
    answer: str
    answer_type: str
    span: str
    aliases: tuple[str, ...] = ()


@dataclass(frozen=True)
class QA:
    """One question in one language with the answer that is expected; ``layer`` is core or surface."""

    id: str
    role: str
    layer: str
    language: str
    question: str
    answer: str
    aliases: tuple[str, ...] = ()


@dataclass(frozen=True)
class Unit:
    """A card and its questions: language → the core question, then the surface variants."""

    card: Card
    qas: Mapping[str, tuple[QA, ...]]


@dataclass(frozen=True)
class UnitPair:
    """A unit to forget and the matched unit to retain."""

    id: str
    relation: str
    forget: Unit
    retain: Unit


@dataclass(frozen=True)
class TopicPair:
    """A topic to forget beside a neighbour to keep.

    Args:
        id: in the conditioned setting it begins with the source language and ``_``.
        setting: one of `SETTINGS`.
        source: the language in which the target is to be forgotten; None in the common-goal setting, which means it
            for all.
        domain: what both topics are about.
        target_topic, neighbour_topic: their names.
        pairs: matched units.
        holdout: units of either topic that are in no pair.
        rationale: why forgetting should stop at the source language, if there is a reason on record.
    """

    id: str
    setting: str
    source: str | None
    domain: str
    target_topic: str
    neighbour_topic: str
    pairs: tuple[UnitPair, ...]
    holdout: tuple[Unit, ...]
    rationale: str | None = None

    def units(self, role: str) -> tuple[Unit, ...]:
        """The units of one of `ROLES`."""
        if role == "holdout":
            return self.holdout
        return tuple(pair.forget if role == "forget" else pair.retain for pair in self.pairs)


@dataclass(frozen=True)
class Place:
    """Where a question stands.

    Args:
        qa: the question.
        variant: 0 for the core question, 1 to 3 for the surface variants.
        unit: id of its card.
        topic: id of its topic pair.
        source: the language in which the topic is to be forgotten; "" where that is all.
    """

    qa: QA
    variant: int
    unit: str
    topic: str
    source: str


@dataclass(frozen=True)
class Release:
    """All topic pairs of a benchmark, checked on construction, and who made them.

    Raises:
        KBookError: as `check_topic_pair` and `check_distinct`; the offending id is named.
    """

    topic_pairs: tuple[TopicPair, ...]
    provenance: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for pair in self.topic_pairs:
            check_topic_pair(pair)
        check_distinct("topic pair", (pair.id for pair in self.topic_pairs))
        check_distinct("pair of units", (unit_pair.id for pair in self.topic_pairs for unit_pair in pair.pairs))
        check_pools(self.topic_pairs)
        check_distinct("question", (qa.id for unit in self._all_units() for qas in unit.qas.values() for qa in qas))

    @cached_property
    def digest(self) -> str:
        """Digest of the topic pairs; who made them does not count."""
        return digest_of([asdict(pair) for pair in self.topic_pairs])

    @cached_property
    def languages(self) -> tuple[str, ...]:
        """The languages that every unit has, in the order of `LANGUAGES`."""
        found = [set(unit.qas) for unit in self._all_units()]
        return tuple(language for language in LANGUAGES if found and all(language in each for each in found))

    def of_setting(self, setting: str, source: str | None = None) -> tuple[TopicPair, ...]:
        """Topic pairs of a setting; with a ``source``, those that are to be forgotten in that language.

        A pair of the common-goal setting is to be forgotten in every language.

        Raises:
            KBookError: unknown setting or language.
        """
        _known("setting", setting, SETTINGS)
        if source is not None:
            _known("language", source, LANGUAGES)
        of_setting = (pair for pair in self.topic_pairs if pair.setting == setting)
        return tuple(pair for pair in of_setting if source is None or pair.source in (None, source))

    def units(self, role: str, setting: str, source: str | None = None) -> tuple[Unit, ...]:
        """Units of a role, one of `ROLES`, in the order of the topic pairs.

        Raises:
            KBookError: unknown role, setting or language.
        """
        _known("role", role, ROLES)
        return tuple(unit for pair in self.of_setting(setting, source) for unit in pair.units(role))

    def qas(
        self, role: str, setting: str, language: str, layer: str | None = None, source: str | None = None
    ) -> tuple[QA, ...]:
        """Questions of a role in one language, unit by unit; of one of `LAYERS` or of both.

        Raises:
            KBookError: unknown role, setting, language or layer, or a language that the release lacks.
        """
        _known("layer", layer or "core", LAYERS)
        _known("language", language, self.languages)
        units = self.units(role, setting, source)
        return tuple(qa for unit in units for qa in unit.qas[language] if layer in (None, qa.layer))

    def cut(
        self, languages: Sequence[str], *, topic_pairs: int, conditioned: int, unit_pairs: int, holdout: int
    ) -> Release:
        """A smaller release: the first things of each kind, in some languages.

        Args:
            languages: to keep; also the source languages of the conditioned setting.
            topic_pairs: of the common-goal setting.
            conditioned: topic pairs of each source language.
            unit_pairs, holdout: of each topic pair.
        Raises:
            KBookError: the release lacks a language.
        """
        for language in languages:
            _known("language", language, self.languages)
        chosen = list(self.of_setting("common-goal")[:topic_pairs])
        chosen += (p for source in languages for p in self.of_setting("conditioned", source)[:conditioned])
        return replace(self, topic_pairs=tuple(_cut(pair, languages, unit_pairs, holdout) for pair in chosen))

    @cached_property
    def places(self) -> Mapping[str, Place]:
        """Where each question stands, by its id."""
        return {
            qa.id: Place(qa, number, unit.card.id, pair.id, pair.source or "")
            for pair in self.topic_pairs
            for role in ROLES
            for unit in pair.units(role)
            for qas in unit.qas.values()
            for number, qa in enumerate(qas)
        }

    def _all_units(self) -> Iterator[Unit]:
        for pair in self.topic_pairs:
            yield from (unit for role in ROLES for unit in pair.units(role))


def _cut(pair: TopicPair, languages: Sequence[str], unit_pairs: int, holdout: int) -> TopicPair:
    def told(unit: Unit) -> Unit:
        return replace(unit, qas={language: unit.qas[language] for language in languages})

    matched = (replace(each, forget=told(each.forget), retain=told(each.retain)) for each in pair.pairs[:unit_pairs])
    return replace(pair, pairs=tuple(matched), holdout=tuple(map(told, pair.holdout[:holdout])))


def source_of(pair_id: str, setting: str, where: str = "") -> str | None:
    """The source language of a topic pair, which begins its id in the conditioned setting.

    Example:
        >>> source_of("sw_two_lighthouses", "conditioned")
        'sw'

    Raises:
        KBookError: the id begins with no language.
    """
    if setting != "conditioned":
        return None
    return _known("source language of a conditioned topic pair", pair_id.split("_", 1)[0], LANGUAGES, where or pair_id)


def check_topic_pair(pair: TopicPair) -> None:
    """Refuse a topic pair with an unknown setting or source, and units that are not what their place says.

    Raises:
        KBookError: names the topic pair, unit or question.
    """
    _known("setting", pair.setting, SETTINGS, pair.id)
    if pair.source != source_of(pair.id, pair.setting):
        what = f"its source language is {pair.source}"
        raise KBookError(what, pair.id, "Begin the id of a conditioned pair, and no other, with its source language")
    languages: set[str] | None = None
    for role in ROLES:
        for unit in pair.units(role):
            for language, qas in unit.qas.items():
                check_family(qas, role, language, unit.card.id)
            missing = (languages or set(unit.qas)) ^ set(unit.qas)
            if missing or not unit.qas:
                what = f"it has questions in other languages than the rest ({', '.join(sorted(missing)) or 'none'})"
                raise KBookError(what, unit.card.id, "Give every unit the same languages")
            languages = set(unit.qas)


def check_family(qas: Iterable[QA], role: str, language: str, where: str) -> None:
    """Refuse questions that are not one family: core, then three surface variants (holdout: core alone).

    Raises:
        KBookError: wrong number, order, role or language, or an empty question or answer; names the question.
    """
    qas = tuple(qas)
    wanted = FAMILY[:1] if role == "holdout" else FAMILY
    layers = tuple(qa.layer for qa in qas)
    if layers != wanted:
        what = f"its questions in {language} are {', '.join(layers) or 'missing'}"
        raise KBookError(what, where, f"Give it {', '.join(wanted)}")
    for qa in qas:
        if (qa.role, qa.language) != (role, language):
            what = f"question {qa.id} is marked {qa.role}, {qa.language}"
            raise KBookError(what, where, f"Here belongs {role}, {language}")
        if not (qa.question.strip() and qa.answer.strip()):
            raise KBookError(f"question {qa.id} or its answer is empty", where, "Fill it, or leave the unit out")


def check_distinct(kind: str, ids: Iterable[str], where: str = "release") -> None:
    """Refuse an id that stands for two things of a kind.

    Raises:
        KBookError: names the id.
    """
    seen: set[str] = set()
    for id in ids:
        if id in seen:
            raise KBookError(f"id {id} stands for more than one {kind}", where, f"Give each {kind} an id of its own")
        seen.add(id)


def check_pools(pairs: Iterable[TopicPair], where: str = "release") -> None:
    """Refuse a unit that is used twice: in two pairs, on both sides, or in a pair and among the holdout units.

    Raises:
        KBookError: names the unit and both roles.
    """
    used: dict[str, str] = {}
    for id, role in ((unit.card.id, name) for pair in pairs for name in ROLES for unit in pair.units(name)):
        if id in used:
            remedy = "Use each unit once: members and non-members must not overlap"
            raise KBookError(f"unit {id} is used twice, as {used[id]} and {role}", where, remedy)
        used[id] = role


def _known(kind: str, name: str, known: tuple[str, ...], where: str = "release") -> str:
    if name not in known:
        raise unknown_name(kind, name, known, where)
    return name
