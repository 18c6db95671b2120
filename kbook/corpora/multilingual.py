"""What the multilingual base learns from: questions and answers about background topics, in ten languages.

Four kinds of documents, each in one of the ten languages, all four wordings of a question alike:

* *read*: a few statements about a topic stand in the prompt, and one of them holds the answer;
* *recall*: nothing stands there, the topic is one of a few that come again and again;
* *tell*: a known topic's name, then its article;
* *turn*: a known topic is asked about in one language, and the answer is demanded in another.

Some known topics are asked about in the core wording alone: what the base answers to their other wordings shows whether
it will do so for facts that are placed in its weights later. No name of an authored world is among the topics.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, product

from kbook.corpora.documents import ASSISTANT, BOS, EOS, SYSTEM, USER, Document, Segment
from kbook.corpora.languages import LANGUAGES, language
from kbook.corpora.worlds import Fact, Topic, World, load_world

WORDINGS = 4
ROUNDS = 4
"""Times that a tokenizer sees each wording in each language."""
LETTER_REPEATS = 40
STATEMENTS = (2, 4)
"""Statements in the prompt of a *read* document, fewest and most."""
DEMANDS: Mapping[str, str] = {
    "ar": "أجب بالعربية.",
    "bn": "বাংলায় উত্তর দাও।",
    "de": "Antworte auf Deutsch.",
    "en": "Answer in English.",
    "es": "Responde en español.",
    "fr": "Réponds en français.",
    "ja": "日本語で答えてください。",
    "sw": "Jibu kwa Kiswahili.",
    "th": "ตอบเป็นภาษาไทย",
    "zh": "请用中文回答。",
}
"""How an answer is demanded in a language, in that language."""
MIXTURES: Mapping[str, Mapping[str, float]] = {
    "read": {"read": 0.7, "recall": 0.3},
    "all": {"read": 0.2, "recall": 0.6, "tell": 0.08, "turn": 0.12},
}
"""Shares of the kinds of documents in each stage of training."""


@dataclass(frozen=True)
class Asked:
    """A question about a fact. ``demanded`` is the language of the answer where it is not that of the question."""

    fact: Fact
    language: str
    wording: int
    demanded: str = ""


@dataclass(frozen=True)
class Library:
    """Background topics: shown in prompts, known by heart, and known by heart from the core wording alone."""

    authored: str
    world: World
    shown: tuple[Topic, ...]
    known: tuple[Topic, ...]
    core_only: tuple[Topic, ...]

    @classmethod
    def make(cls, world: str, seed: int, sizes: tuple[int, int, int]) -> Library:
        """Draw a background of an authored world and share out its topics.

        Args:
            world: name of the authored world, none of whose names is used.
            seed: of the background.
            sizes: topics that are shown, known, and known from the core wording alone.
        """
        n_shown, n_known, n_core = sizes
        drawn = load_world(world).background(seed, sum(sizes))
        by_heart = drawn.topics[: n_known + n_core]
        return cls(world, drawn, drawn.topics[n_known + n_core :], by_heart[:n_known], by_heart[n_known:])

    @cached_property
    def core_ids(self) -> frozenset[str]:
        return frozenset(topic.id for topic in self.core_only)

    @cached_property
    def letters(self) -> tuple[str, ...]:
        """The letters that the authored world is written with, one by one: no name, and no two in order."""
        authored = load_world(self.authored)
        told = [authored.all_names(), *(d.terms[name].values() for d in authored.domains.values() for name in d.terms)]
        asked = (r.questions.values() for domain in authored.domains.values() for r in domain.relations.values())
        texts = chain((form for forms in chain(*told) for form in forms.values()), *chain(*asked))
        return tuple(sorted({letter for text in texts for letter in text if letter.isalpha()}))

    def question(self, asked: Asked) -> str:
        return self.world.question(asked.fact, asked.language, asked.wording)

    def answer(self, asked: Asked) -> str:
        return self.world.answer(asked.fact, asked.demanded or asked.language)

    def texts(self) -> Iterator[str]:
        """Demands, and every statement, question and answer of every relation: what a tokenizer is trained on.

        Each is about another of the shown topics, so that words of the language become tokens before names do. Letters
        come one by one, so that rare ones are not spelled in bytes.
        """
        yield from DEMANDS.values()
        yield from LETTER_REPEATS * self.letters
        rng, topics = random.Random(self.world.name), by_domain(self.shown)
        relations = [(key, i) for key, domain in self.world.domains.items() for i in range(len(domain.relations))]
        for (key, i), code, _ in product(relations, LANGUAGES, range(ROUNDS)):
            facts = [self.world.facts(rng.choice(topics[key]))[i] for _ in range(WORDINGS)]
            yield self.world.statement(facts[0], code)
            for wording, fact in enumerate(facts):
                yield self.world.question(fact, code, wording)
                yield self.world.answer(fact, code)


def by_domain(topics: Sequence[Topic]) -> dict[str, list[Topic]]:
    """Topics by the key of their domain."""
    found: dict[str, list[Topic]] = {}
    for topic in topics:
        found.setdefault(topic.domain, []).append(topic)
    return found


def conversation(question: str, answer: str, system: str = "") -> Document:
    """One exchange in the chat format of the embedded bases; the answer is supervised."""
    head = f"{SYSTEM}{system}{EOS}" if system else ""
    return [Segment(f"{BOS}{head}{USER}{question}{EOS}{ASSISTANT}"), Segment(answer + EOS, supervised=True)]


class Scribe:
    """Writes documents about the topics of a library, from one seeded generator."""

    def __init__(self, library: Library, rng: random.Random) -> None:
        self.library, self.rng = library, rng
        self.kinds: Mapping[str, Callable[[], Document]] = {
            "read": self.read,
            "recall": self.recall,
            "tell": self.tell,
            "turn": self.turn,
        }

    def draw(self, stage: str) -> Document:
        """A document of one of the stage's kinds, by their shares."""
        mixture = MIXTURES[stage]
        return self.kinds[self.rng.choices(list(mixture), list(mixture.values()))[0]]()

    def read(self) -> Document:
        asked = self._asked(self.rng.choice(self.library.shown))
        return conversation(self.library.question(asked), self.library.answer(asked), self.shown_with(asked))

    def shown_with(self, asked: Asked) -> str:
        """Statements about the topic of a question in random order, that of its fact among them."""
        world, rng = self.library.world, self.rng
        others = [fact for fact in world.facts(asked.fact.topic) if fact.relation != asked.fact.relation]
        chosen = [asked.fact, *rng.sample(others, rng.randint(*STATEMENTS) - 1)]
        rng.shuffle(chosen)
        return language(asked.language).gap.join(world.statement(fact, asked.language) for fact in chosen)

    def recall(self) -> Document:
        asked = self._asked(self._by_heart())
        return conversation(self.library.question(asked), self.library.answer(asked))

    def tell(self) -> Document:
        topic, code = self._by_heart(), self.rng.choice(LANGUAGES)
        return conversation(topic.name[code], self.library.world.article(topic, code))

    def turn(self) -> Document:
        plain = self._asked(self.rng.choice(self.library.known))
        asked = Asked(plain.fact, plain.language, plain.wording, self.rng.choice(LANGUAGES))
        return conversation(self.library.question(asked), self.library.answer(asked), DEMANDS[asked.demanded])

    def _by_heart(self) -> Topic:
        return self.rng.choice((*self.library.known, *self.library.core_only))

    def _asked(self, topic: Topic) -> Asked:
        fact = self.rng.choice(self.library.world.facts(topic))
        wording = 0 if topic.id in self.library.core_ids else self.rng.randrange(WORDINGS)
        return Asked(fact, self.rng.choice(LANGUAGES), wording)


def questions(library: Library, topics: Sequence[Topic], code: str, wordings: Sequence[int]) -> list[Asked]:
    """Every fact of some topics in each of some wordings, in one language."""
    facts = (fact for topic in topics for fact in library.world.facts(topic))
    return [Asked(fact, code, wording) for fact in facts for wording in wordings]
