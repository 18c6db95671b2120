"""Background worlds: seeded, without end, and strangers to the authored one."""

from itertools import pairwise

import pytest

from kbook.corpora.backgrounds import words_of
from kbook.corpora.languages import LANGUAGES, language
from kbook.corpora.world_checks import check_world
from kbook.corpora.world_files import NAMED
from kbook.corpora.worlds import load_world

WORLD = load_world("almanac")
SIZE = 64
BACKGROUND = WORLD.background(1, SIZE)


def test_it_has_the_wanted_number_of_topics_spread_over_the_domains():
    counts = [sum(topic.domain == key for topic in BACKGROUND.topics) for key in WORLD.domains]
    assert sum(counts) == SIZE and max(counts) - min(counts) <= 1


def test_the_same_seed_draws_the_same_world_and_another_seed_another():
    assert WORLD.background(1, SIZE) == BACKGROUND
    assert {t.name["en"] for t in WORLD.background(2, SIZE).topics} != {t.name["en"] for t in BACKGROUND.topics}


def test_a_larger_background_begins_like_a_smaller_one():
    assert WORLD.background(1, SIZE // 2).topics == BACKGROUND.topics[: SIZE // 2]


@pytest.mark.parametrize("seed", range(3))
def test_no_name_of_it_is_a_name_of_the_authored_world_or_a_word_of_one(seed):
    background = WORLD.background(seed, SIZE)
    words = words_of([*WORLD.titles.words.values(), WORLD.titles.both])
    shared = words_of(background.all_names()) & (words_of(WORLD.all_names()) - words)
    assert not shared
    assert words_of(WORLD.all_names()), "the control: the authored world has names"


@pytest.mark.parametrize("seed", range(3))
def test_it_passes_the_checks_of_an_authored_world(seed):
    check_world(WORLD.background(seed, SIZE), "background")


def test_no_two_names_of_it_are_written_alike_in_any_language():
    for code in LANGUAGES:
        forms = [name[code].casefold() for name in BACKGROUND.all_names()]
        assert len(set(forms)) == len(forms)


def test_its_values_lie_in_the_ranges_of_their_relations():
    for topic in BACKGROUND.topics:
        for key, relation in WORLD.domains[topic.domain].relations.items():
            value = topic.values[key]
            if relation.range:
                assert relation.range[0] <= value <= relation.range[1]
            if relation.after:
                low, high = relation.after.days
                assert low <= (value - topic.values[relation.after.relation]).days <= high
            if relation.answer == "number" and isinstance(relation.step, int):
                assert value % relation.step == 0


def test_its_answers_are_written_in_every_language():
    for fact in (fact for topic in BACKGROUND.topics for fact in BACKGROUND.facts(topic)):
        for code in LANGUAGES:
            answer = BACKGROUND.answer(fact, code)
            assert answer in BACKGROUND.statement(fact, code)
            if fact.answer_type in NAMED:
                assert all(language(code).writes(c) for c in answer if c.isalpha() and c not in "ー々")


def test_values_differ_between_its_topics():
    names = [fact.value for topic in BACKGROUND.topics for fact in BACKGROUND.facts(topic) if fact.answer_type in NAMED]
    assert len(set(names)) == len(names) and all(a != b for a, b in pairwise(BACKGROUND.topics))
    assert not BACKGROUND.topic_pairs
