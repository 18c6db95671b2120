"""What a multilingual base can do: answer about what it knows, in each language, and take in what it is taught.

Seven tasks in each language, exact match of greedy answers. Three are about topics that the base knows by heart, one
about topics that stand in its prompt, one about the language of an answer, and two about topics of another background
after these were taught to it in the core wording alone: the base of protocol B must know all of what it was taught, and
some of it in wordings that it was not.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory

from kbook.corpora.languages import LANGUAGES
from kbook.corpora.multilingual import DEMANDS, WORDINGS, Asked, Library, Scribe, questions
from kbook.corpora.worlds import World, load_world
from kbook.models.ability import Ability
from kbook.models.bases import Base, load_base
from kbook.models.questions import ask, exchange, prompt
from kbook.models.teaching import teach
from kbook.profiles import Batches, Teaching

N = 40
"""Questions of a task in each language."""
FRESH_SEED, FRESH_TOPICS, TAUGHT_TOPICS = 11, 12, 2
"""Of another background than the base has read about; the first topics are taught, the others stand in prompts."""
TEACHING = Teaching(
    learning_rate=5e-4,
    epochs=20,
    warmup_epochs=1,
    weight_decay=0.01,
    batches=Batches(size=16, accumulation=1),
)
TOKENS, AT_ONCE = 28, 64
CORE, OTHERS = (0,), tuple(range(1, WORDINGS))


@dataclass(frozen=True)
class Put:
    """A question as it is put to a base: with a system message, and the answer that is expected."""

    question: str
    answer: str
    system: str = ""


@dataclass(frozen=True)
class Tasks:
    """The tasks of one base.

    Args:
        library: what the base was trained on.
        n: questions of a task in each language, at most.
        seed: of the draw of questions.
    """

    library: Library
    n: int = N
    seed: int = 0

    @cached_property
    def fresh(self) -> World:
        """Another background than the base's."""
        return load_world(self.library.authored).background(FRESH_SEED, FRESH_TOPICS)

    @property
    def taught(self) -> Library:
        """The topics that are taught to the base."""
        return replace(self.library, world=self.fresh, known=self.fresh.topics[:TAUGHT_TOPICS], core_only=())

    def of(self, code: str) -> Iterator[tuple[str, list[Put], dict[str, float]]]:
        """Name, questions and requirement of each task of the plain base in one language."""
        library = self.library
        yield "known, core wording", self._known(library, code, CORE), {"answer": 0.9}
        yield "known, other wordings", self._known(library, code, OTHERS), {}
        only = replace(library, known=library.core_only)
        yield "known from the core wording, other wordings", self._known(only, code, OTHERS), {}
        yield "read in the prompt", self._read(code), {}
        yield "known, answer demanded in another language", self._turned(code), {}

    def of_taught(self, code: str) -> Iterator[tuple[str, list[Put], dict[str, float]]]:
        """The tasks of the base that was taught."""
        yield "taught, core wording", self._known(self.taught, code, CORE), {"answer": 0.9}
        yield "taught, other wordings", self._known(self.taught, code, OTHERS), {"answer": 0.1}

    def lessons(self) -> list[Put]:
        """What is taught: the core question of each fact, in every language."""
        taught = self.taught
        return [self._put(taught, asked) for code in LANGUAGES for asked in questions(taught, taught.known, code, CORE)]

    def _known(self, library: Library, code: str, wordings: Sequence[int]) -> list[Put]:
        return [self._put(library, asked) for asked in self._drawn(questions(library, library.known, code, wordings))]

    def _read(self, code: str) -> list[Put]:
        shown = self.fresh.topics[TAUGHT_TOPICS:]
        library = replace(self.library, world=self.fresh, shown=shown)
        scribe = Scribe(library, random.Random(f"read/{code}/{self.seed}"))
        drawn = self._drawn(questions(library, shown, code, range(WORDINGS)))
        return [self._put(library, asked, scribe.shown_with(asked)) for asked in drawn]

    def _turned(self, code: str) -> list[Put]:
        """Questions in this language; the demanded languages take turns."""
        library, others = self.library, [other for other in LANGUAGES if other != code]
        drawn = self._drawn(questions(library, library.known, code, CORE))
        turned = [replace(asked, demanded=others[i % len(others)]) for i, asked in enumerate(drawn)]
        return [self._put(library, asked, DEMANDS[asked.demanded]) for asked in turned]

    def _drawn(self, found: Sequence[Asked]) -> list[Asked]:
        return random.Random(self.seed).sample(found, min(self.n, len(found)))

    def _put(self, library: Library, asked: Asked, system: str = "") -> Put:
        return Put(library.question(asked), library.answer(asked), system)


def measure(base: Base, library: Library, *, n: int = N, seed: int = 0) -> list[Ability]:
    """Put every task to a base in each language, and teach a copy of it what it does not know.

    Args:
        base: the model; it stays as it is.
        library: what it was trained on.
        n: questions of a task in each language, at most.
        seed: of the draw.
    """
    tasks = Tasks(library, n, seed)
    found = _measured(base, tasks.of)
    with TemporaryDirectory() as work:
        documents = [exchange(base, put.question, put.answer) for put in tasks.lessons()]
        teach(base, documents, TEACHING, Path(work), seed)
        return found + _measured(load_base(work), tasks.of_taught)


def _measured(base: Base, tasks: Callable[[str], Iterator[tuple[str, list[Put], dict[str, float]]]]) -> list[Ability]:
    """The tasks of all languages, answered together; a task of all languages stands together."""
    rows = [(name, code, put, need) for code in LANGUAGES for name, puts, need in tasks(code) for put in puts]
    prompts = [prompt(base, put.question, put.system) for _, _, put, _ in rows]
    said = ask(base, prompts, tokens=TOKENS, at_once=AT_ONCE)
    right: dict[tuple[str, str], list[bool]] = {}
    required: dict[str, dict[str, float]] = {}
    for (name, code, put, need), answer in zip(rows, said, strict=True):
        right.setdefault((name, code), []).append(answer == put.answer)
        required[name] = need
    order = sorted(right, key=lambda task: list(required).index(task[0]))
    return [
        Ability(
            f"{name}: {code}",
            len(right[name, code]),
            None,
            None,
            sum(right[name, code]) / len(right[name, code]),
            required[name],
        )
        for name, code in order
    ]
