"""Coined names: every syllable in every script, and the same words for the same seed."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbook.corpora.coinage import CODAS, ONSETS, VOWELS, coin_person, coin_word, joined, spell
from kbook.corpora.languages import LANGUAGES, language

SYLLABLES = [onset + vowel for onset in ONSETS for vowel in VOWELS]
WORDS = st.lists(st.sampled_from(SYLLABLES), min_size=1, max_size=4)


@given(syllables=WORDS, coda=st.sampled_from(CODAS))
def test_each_word_is_written_in_the_letters_of_each_language(syllables, coda):
    for code, form in spell(syllables, coda).items():
        assert all(language(code).writes(letter) for letter in form)


@pytest.mark.parametrize("code", ["bn", "en", "th"])
def test_scripts_that_tell_all_syllables_apart_do_so(code):
    words = {spell([syllable], coda)[code] for syllable in SYLLABLES for coda in CODAS}
    assert len(words) == len(SYLLABLES) * len(CODAS)


@pytest.mark.parametrize(
    "code, one, other", [("ar", "ko", "ku"), ("ar", "be", "bi"), ("ja", "la", "ra"), ("zh", "la", "ra")]
)
def test_scripts_that_tell_less_apart_write_some_syllables_alike(code, one, other):
    assert spell([one])[code] == spell([other])[code] and spell([one])["en"] != spell([other])["en"]


def test_the_same_seed_coins_the_same_words_and_another_seed_others():
    one, again, other = ([coin_word(Random(seed), 3) for _ in range(2)] for seed in (1, 1, 2))
    assert one == again != other


def test_a_person_has_two_names_joined_as_each_language_does():
    person = coin_person(Random(3))
    assert len(person["en"].split(" ")) == len(person["ja"].split("・")) == len(person["zh"].split("·")) == 2


def test_parts_of_a_name_are_joined_in_order():
    name = joined([spell(["ka", "mi"]), spell(["to", "re"], "n")])
    assert name["en"] == "Kami Toren" and name["ja"] == "カミ・トレン" and list(name) == list(LANGUAGES)
