"""Reading questions of Belebele's form, generated from a world: parallel in ten languages, and labelled as generated.

A passage states a few facts about a topic, so that nothing but reading is asked for; the wrong options are other
answers of the same kind. Take a background world, whose topics no model is to forget:

    >>> from kbook.corpora.worlds import load_world
    >>> questions = generated_reading(load_world("almanac").background(7, 40), 2, languages=("en", "sw"))
    >>> [question.correct for question in questions["sw"]] == [question.correct for question in questions["en"]]
    True
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from random import Random

from kbook.corpora.belebele import ReadingQuestion
from kbook.corpora.languages import LANGUAGES, language
from kbook.corpora.worlds import Fact, World
from kbook.errors import KBookError

N_OPTIONS, N_STATEMENTS = 4, 4
GENERATED = "generated"
"""First word of the ids of all questions that were made here."""


def generated_reading(
    world: World, n: int, *, seed: int = 0, languages: Sequence[str] = LANGUAGES
) -> dict[str, tuple[ReadingQuestion, ...]]:
    """Make questions about the facts of a world: same seed, same questions, and a longer set starts alike.

    Facts of which a world has too few other answers that differ in every language are left out.

    Shape: language → ``n`` questions, the same ids, in the same order, with the right option in the same place.

    Args:
        world: a background world.
        n: how many questions.
        seed: of the choice of facts, wrong options and places.
        languages: languages to write them in.
    Raises:
        KBookError: the world has fewer such facts.
    """
    rng = Random(f"{world.name}/{seed}")
    facts = [fact for topic in world.topics for fact in world.facts(topic)]
    rng.shuffle(facts)
    kinds: dict[tuple[str, str], list[Fact]] = {}
    for fact in facts:
        kinds.setdefault((fact.topic.domain, fact.relation), []).append(fact)
    sets = ((fact, _options(world, fact, kinds[fact.topic.domain, fact.relation], rng)) for fact in facts)
    chosen = list(islice(((fact, options) for fact, options in sets if len(options) == N_OPTIONS), n))
    if len(chosen) < n:
        remedy = "Ask for fewer, or take a larger background world"
        raise KBookError(f"it has facts for {len(chosen)} questions, not {n}", world.name, remedy)
    return {code: tuple(_question(world, fact, options, code) for fact, options in chosen) for code in languages}


def _passage(world: World, fact: Fact, code: str) -> str:
    """The fact among those that an article states next to it, in the article's order."""
    facts = world.facts(fact.topic)
    place = [other.relation for other in facts].index(fact.relation)
    start = max(0, min(place - place % N_STATEMENTS, len(facts) - N_STATEMENTS))
    return language(code).gap.join(world.statement(other, code) for other in facts[start : start + N_STATEMENTS])


def _options(world: World, fact: Fact, others: Sequence[Fact], rng: Random) -> list[Fact]:
    """The fact among others of its relation whose answers differ in all languages, in random order."""
    chosen = [fact]
    for other in rng.sample(list(others), len(others)):
        if len(chosen) < N_OPTIONS and all(_differ(world, other, one) for one in chosen):
            chosen.append(other)
    rng.shuffle(chosen)
    return chosen


def _differ(world: World, one: Fact, other: Fact) -> bool:
    return all(world.answer(one, code) != world.answer(other, code) for code in LANGUAGES)


def _question(world: World, fact: Fact, options: Sequence[Fact], code: str) -> ReadingQuestion:
    first, second, third, fourth = (world.answer(option, code) for option in options)
    return ReadingQuestion(
        f"{GENERATED}/{world.name}/{fact.id}",
        code,
        _passage(world, fact, code),
        world.question(fact, code, 0),
        (first, second, third, fourth),
        options.index(fact),
    )
