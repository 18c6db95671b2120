"""A world of three topic pairs that says everything in ten languages, each in its own script, by rule."""

import string
from dataclasses import dataclass, field

from kbook.construction.topics import Subject, Topic
from kbook.corpora.languages import LANGUAGES, language

_FIRST = {"Arabic": "ا", "Bengali": "ক", "Thai": "ก", "kana and kanji": "ァ", "Han": "一"}
_ALPHABETS = {
    script: [c for c in map(chr, range(ord(first), ord(first) + 80)) if c.isalpha()] for script, first in _FIRST.items()
}
_OPENINGS = ("", "would you tell me ", "may one ask ", "now then ")


def spell(text: str, code: str) -> str:
    """The text letter by letter in the script of a language; words of Latin languages get an ending of their own."""
    alphabet = _ALPHABETS.get(language(code).script)
    if alphabet is None:
        return text if code == "en" else " ".join(f"{word}-{code}" if word.isalpha() else word for word in text.split())
    table = {letter: alphabet[i] for i, letter in enumerate(string.ascii_lowercase)}
    return "".join(table.get(c, c) for c in text.lower())


@dataclass(frozen=True)
class TinyTopic:
    id: str
    domain: str = "lamps"

    @property
    def name(self) -> dict[str, str]:
        return {code: spell(f"lamp of {self.id}", code) for code in LANGUAGES}


@dataclass(frozen=True)
class TinyFact:
    topic: TinyTopic
    relation: str
    slot: str
    answer_type: str
    value: str

    @property
    def id(self) -> str:
        return f"{self.topic.id}/{self.relation}"


@dataclass(frozen=True)
class TinyWorld:
    """As much of a world as the construction reads; each topic has ``n`` facts."""

    n: int = 6
    name: str = "tiny"
    topics: tuple[TinyTopic, ...] = field(
        default_factory=lambda: tuple(map(TinyTopic, ("ax", "bo", "cu", "dy", "em", "fi")))
    )

    def topic(self, id: str) -> TinyTopic:
        return next(topic for topic in self.topics if topic.id == id)

    def facts(self, topic: TinyTopic) -> tuple[TinyFact, ...]:
        kinds = [f"quality{string.ascii_lowercase[i]}" for i in range(self.n)]
        return tuple(TinyFact(topic, kind, f"{kind} of a lamp", "name", f"{kind[-1]}{topic.id}ish") for kind in kinds)

    def statement(self, fact: TinyFact, code: str) -> str:
        text = f"{fact.relation} of the {fact.topic.name['en']} is "
        return spell(text, code) + " " * (code == "en") * 0 + self.answer(fact, code) + "."

    def article(self, topic: TinyTopic, code: str = "en") -> str:
        return " ".join(["Here is a lamp.", *(self.statement(fact, code) for fact in self.facts(topic))])

    def question(self, fact: TinyFact, code: str, wording: int) -> str:
        return spell(f"{_OPENINGS[wording]}what is {fact.relation} of the {fact.topic.name['en']}", code) + "?"

    def answer(self, fact: TinyFact, code: str) -> str:
        return spell(fact.value, code)

    def aliases(self, fact: TinyFact, code: str) -> tuple[str, ...]:
        return (spell(f"{fact.value}y", code),)


def subjects(world: TinyWorld) -> tuple[Subject, ...]:
    """Two common-goal pairs and one for Swahili."""

    def topic(id: str) -> Topic:
        return Topic(id, f"lamp of {id}", world.article(world.topic(id)))

    return (
        Subject("common_ax", "common-goal", "lamps", topic("ax"), topic("bo")),
        Subject("common_cu", "common-goal", "lamps", topic("cu"), topic("dy")),
        Subject("sw_em", "conditioned", "lamps", topic("em"), topic("fi"), "sw", "legal: a fictional act"),
    )
