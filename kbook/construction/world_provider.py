"""A provider that needs no model: every answer comes from the tables of a fictional world.

Back-translation is blind all the same: it looks up what a text says in one language, whatever it was made from. With a
rate of faults it also plants, in its own extractions, questions and translations, errors such as models make.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial

from kbook.construction.candidates import Candidate
from kbook.construction.faults import Faults
from kbook.construction.providers import Comparison, Wording
from kbook.construction.topics import Topic
from kbook.corpora.languages import LANGUAGES
from kbook.corpora.units import N_SURFACE, QA, Card
from kbook.corpora.worlds import Fact, World
from kbook.digests import digest_of
from kbook.errors import KBookError
from kbook.text import folded

_N_WORDINGS = 1 + N_SURFACE


@dataclass(frozen=True)
class WorldProvider:
    """Answer from a world's tables.

    Args:
        world: the fictional world.
        faults: how often to plant an error; none by default.
    """

    world: World
    faults: Faults = field(default_factory=Faults)
    sources: tuple[str, ...] = ("kbook.construction.world_provider",)
    workers: int = 1

    @property
    def name(self) -> str:
        """``world-`` and the name of the world, with the rate of faults where there are any."""
        return f"world-{self.world.name}" + (f"-faults-{self.faults.rate:g}" if self.faults.rate else "")

    @cached_property
    def digest(self) -> str:
        """Digest of everything the world says in any language, and of the faults."""
        tables = (self._tables[language] for language in LANGUAGES)
        said = [[sorted(texts) for texts in (table.asked, table.said, table.stated)] for table in tables]
        return digest_of([self.world.name, said, self.faults.rate, self.faults.seed])

    # ---- English ------------------------------------------------------------------------------------------------

    def shared_relations(self, target: Topic, neighbour: Topic) -> tuple[str, ...]:
        """Relations of which both topics have a fact, in the order of the target's."""
        theirs = {fact.relation for fact in self._facts(neighbour)}
        return tuple(fact.relation for fact in self._facts(target) if fact.relation in theirs)

    def extract(self, topic: Topic, relations: Sequence[str], limit: int) -> tuple[Candidate, ...]:
        """A unit for each fact, supported by the sentence of the article that states it, and the planted ones."""
        cards: list[tuple[Card, str]] = []
        for fact in (fact for fact in self._facts(topic) if fact.relation in relations):
            card = self._card(fact)
            cards.append((card, ""))
            picked = self.faults.pick(f"extract/{fact.id}", partial(_faulty_cards, card))
            cards += [(picked[1], picked[0])] if picked else []
        return tuple(Candidate(card, n, fault) for n, (card, fault) in enumerate(cards[:limit]))

    def write_families(self, cards: Sequence[Card], n: int, attempt: int) -> tuple[tuple[Wording, ...], ...]:
        """The world's own wordings of each fact."""
        partners = [cards[1 - place] if len(cards) == 2 else None for place in range(len(cards))]
        both = zip(cards, partners, strict=True)
        return tuple(self._family(card, partner, n, attempt) for card, partner in both)

    def _family(self, card: Card, partner: Card | None, n: int, attempt: int) -> tuple[Wording, ...]:
        fact = self._fact(card)
        family = [self._wording(fact, "en", wording) for wording in range(n)]

        def faulty() -> dict[str, Wording | None]:
            elsewhere = self._elsewhere(fact, "en", family[-1], n - 1)
            return {**_faulty_questions(family[-1], family[0], card, partner), "another relation asked": elsewhere}

        picked = self.faults.pick(f"family/{card.id}/{attempt}", faulty)
        return (*family[:-1], replace(picked[1], fault=picked[0])) if picked else tuple(family)

    # ---- other languages ----------------------------------------------------------------------------------------

    def translate(self, card: Card, qa: QA, language: str, attempt: int) -> Wording:
        """The same wording of the same fact in another language."""
        fact, wording = self._fact(card), self._place(qa)
        sound = self._wording(fact, language, wording)
        faulty = partial(self._faulty_translations, fact, qa, language, sound, wording)
        picked = self.faults.pick(f"translate/{qa.id}/{language}/{attempt}", faulty)
        return replace(picked[1], fault=picked[0]) if picked else sound

    def _faulty_translations(
        self, fact: Fact, qa: QA, language: str, sound: Wording, wording: int
    ) -> dict[str, Wording | None]:
        swapped = self._wording(fact, language, 0 if wording else 1).question
        another = self._wording(self._other(fact), language, wording).answer
        return {
            "another relation asked": self._elsewhere(fact, language, sound, wording),
            "another answer": _unlike(sound, replace(sound, answer=another)),
            "answer widened": replace(sound, answer=self.world.statement(fact, language)),
            "core and surface swapped": replace(sound, question=swapped),
            "question untranslated": _unlike(sound, replace(sound, question=qa.question)),
            "answer untranslated": _unlike(sound, replace(sound, answer=qa.answer)),
        }

    def back_translate(self, wording: Wording, language: str) -> Wording:
        """What the texts say in English; a text that the world never says in this language comes back as it is."""
        tables, english = self._tables[language], self._tables["en"]
        asked = tables.asked.get(folded(wording.question))
        question = english.of[asked[0].id].questions[asked[1]] if asked else wording.question
        answer = folded(wording.answer)
        if asked and answer in tables.of[asked[0].id].forms:
            return Wording(question, english.of[asked[0].id].answer)
        if answer in tables.said:
            return Wording(question, english.of[tables.said[answer].id].answer)
        if answer in tables.stated:
            return Wording(question, self.world.statement(tables.stated[answer], "en"))
        return Wording(question, wording.answer)

    def compare(self, qa: QA, back: Wording) -> Comparison:
        """Compare by fact and wording; an answer that holds more than the right one, or less, lost its boundary."""
        asked = self._tables["en"].asked
        one, other = asked.get(folded(qa.question)), asked.get(folded(back.question))
        intent = one is not None and other is not None and one[0].id == other[0].id
        role = other is not None and (other[1] == 0) == (qa.layer == "core")
        right, given = folded(qa.answer), folded(back.answer)
        same = given in {right, *map(folded, qa.aliases)}
        near = bool(given) and (right in given or given in right)
        return Comparison(intent, same or near, same or not near, role)

    def review(self, card: Card, qa: QA, wording: Wording, language: str) -> str:
        """Compare with what the world itself says of the card's fact in this language."""
        fact = self._fact(card)
        layer = (0,) if qa.layer == "core" else range(1, _N_WORDINGS)
        tables = self._tables[language]
        asked = tables.asked.get(folded(wording.question))
        if asked is None or asked[0].id != fact.id:
            return "relation or slot not kept"
        if asked[1] not in layer:
            return "core or surface not kept"
        said = folded(wording.answer) in tables.of[fact.id].forms
        return "" if said else "answer not as the language says it"

    def judge(self, question: str, expected: str, answer: str, language: str) -> float:
        """1 for any of the forms in which the language writes the expected answer, else 0."""
        tables = self._tables[language]
        asked = tables.asked.get(folded(question))
        forms = tables.of[asked[0].id].forms if asked else {folded(expected)}
        return float(folded(answer) in forms)

    # ---- tables -------------------------------------------------------------------------------------------------

    @cached_property
    def _tables(self) -> Mapping[str, _Tables]:
        return {language: _tables_of(self.world, language) for language in LANGUAGES}

    def _facts(self, topic: Topic) -> tuple[Fact, ...]:
        return self.world.facts(self.world.topic(topic.id))

    def _fact(self, card: Card) -> Fact:
        found = self._tables["en"].stated.get(folded(card.statement))
        if found is None:
            raise KBookError(f"the world {self.world.name} has no such fact", card.id, "Give it its own units")
        return found

    def _place(self, qa: QA) -> int:
        """Which of the world's wordings an English question has."""
        asked = self._tables["en"].asked.get(folded(qa.question))
        if asked is None:
            raise KBookError(f"the world {self.world.name} never asks this", qa.id, "Give it its own questions")
        return asked[1]

    def _card(self, fact: Fact) -> Card:
        statement, aliases = self.world.statement(fact, "en"), self.world.aliases(fact, "en")
        what = (fact.relation, fact.slot, statement, self.world.answer(fact, "en"), fact.answer_type)
        return Card("", *what, span=statement, aliases=aliases)

    def _wording(self, fact: Fact, language: str, wording: int) -> Wording:
        said = self._tables[language].of[fact.id]
        return Wording(said.questions[wording], said.answer, said.aliases)

    def _other(self, fact: Fact) -> Fact:
        """The next fact of the same topic."""
        facts = self.world.facts(fact.topic)
        return facts[(facts.index(fact) + 1) % len(facts)]

    def _elsewhere(self, fact: Fact, language: str, sound: Wording, wording: int) -> Wording:
        return replace(sound, question=self._wording(self._other(fact), language, wording).question)


@dataclass(frozen=True)
class _Saying:
    """How a language asks for a fact, and how it writes the answer; ``forms`` are all its spellings, folded."""

    questions: tuple[str, ...]
    answer: str
    aliases: tuple[str, ...]
    forms: frozenset[str]


@dataclass(frozen=True)
class _Tables:
    """What a language says, by fact and, folded, by question (fact and wording), answer (a fact) and statement."""

    of: Mapping[str, _Saying]
    asked: Mapping[str, tuple[Fact, int]]
    said: Mapping[str, Fact]
    stated: Mapping[str, Fact]


def _tables_of(world: World, language: str) -> _Tables:
    facts = [fact for topic in world.topics for fact in world.facts(topic)]
    of = {fact.id: _saying(world, fact, language) for fact in facts}
    asked = {folded(text): (fact, place) for fact in facts for place, text in enumerate(of[fact.id].questions)}
    said = {form: fact for fact in reversed(facts) for form in of[fact.id].forms}
    return _Tables(of, asked, said, {folded(world.statement(fact, language)): fact for fact in facts})


def _saying(world: World, fact: Fact, language: str) -> _Saying:
    questions = tuple(world.question(fact, language, wording) for wording in range(_N_WORDINGS))
    answer, aliases = world.answer(fact, language), world.aliases(fact, language)
    return _Saying(questions, answer, aliases, frozenset(map(folded, (answer, *aliases))))


def _unlike(sound: Wording, other: Wording) -> Wording | None:
    """The other wording, where it differs."""
    same = all(folded(getattr(sound, part)) == folded(getattr(other, part)) for part in ("question", "answer"))
    return None if same else other


def _faulty_cards(card: Card) -> dict[str, Card | None]:
    hearsay = replace(card, statement=f"Some say that {card.statement}", answer=f"nearly {card.answer}", aliases=())
    return {
        "missing field": replace(card, slot=""),
        "span not in the article": replace(card, span=f"As is well known, {card.span}"),
        "duplicate statement": card,
        "duplicate relation and answer": replace(card, statement=f"It is on record that {card.statement}"),
        "answer not in its span": hearsay,
    }


def _faulty_questions(last: Wording, first: Wording, card: Card, partner: Card | None) -> dict[str, Wording | None]:
    stem = last.question.rstrip("?")
    other = f"{stem}, which is not {partner.answer}?" if partner else None
    return {
        "not a question": replace(last, question=card.statement),
        "another answer": replace(last, answer=partner.answer) if partner else None,
        "answer inside the question": replace(last, question=f"{stem}, is it {card.answer}?"),
        "answer of the other unit in the question": replace(last, question=other) if other else None,
        "two questions alike": replace(last, question=f"{first.question.upper()}") if last != first else None,
    }
