"""Generated reading questions: parallel, answerable from the passage, the same for the same seed."""

import doctest

import pytest

from kbook.corpora import reading_sets
from kbook.corpora.languages import LANGUAGES
from kbook.corpora.reading_sets import GENERATED, generated_reading
from kbook.corpora.worlds import load_world
from kbook.errors import KBookError


@pytest.fixture(scope="module")
def background():
    return load_world("almanac").background(7, 40)


@pytest.fixture(scope="module")
def questions(background):
    return generated_reading(background, 30)


def test_languages_are_parallel(questions):
    assert set(questions) == set(LANGUAGES)
    places = {tuple((question.id, question.correct) for question in found) for found in questions.values()}
    assert len(places) == 1 and len(next(iter(places))) == 30
    assert all(question.id.startswith(f"{GENERATED}/") for question in questions["en"])


@pytest.mark.parametrize("code", LANGUAGES)
def test_the_passage_holds_the_right_option_and_options_differ(questions, code):
    for question in questions[code]:
        assert question.options[question.correct] in question.passage
        assert len(set(question.options)) == 4


def test_the_right_option_stands_in_every_place(questions):
    assert {question.correct for question in questions["en"]} == {0, 1, 2, 3}


def test_the_seed_decides_and_a_longer_set_starts_alike(background, questions):
    assert generated_reading(background, 10, languages=("sw",))["sw"] == questions["sw"][:10]
    assert generated_reading(background, 10, seed=1, languages=("sw",))["sw"] != questions["sw"][:10]


def test_a_world_too_small_is_refused():
    with pytest.raises(KBookError, match="not 500"):
        generated_reading(load_world("almanac").background(7, 3), 500)


def test_the_example_holds():
    assert doctest.testmod(reading_sets).failed == 0
