"""Tokens by script: identical texts score 1 in every language, where the common scorer sees nothing."""

import doctest
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbook.corpora.languages import LANGUAGES, language
from kbook.corpora.worlds import load_world
from kbook.scoring import script_tokens as module
from kbook.scoring.rouge import rouge_l, words
from kbook.scoring.script_tokens import script_tokens

SCRIPTLESS = ("ar", "bn", "ja", "th", "zh")
"""Languages of which the common scorer sees no letter."""


@pytest.fixture(scope="module")
def world():
    return load_world("almanac")


@pytest.mark.parametrize("code", LANGUAGES)
def test_what_a_language_says_is_itself(world, code):
    facts = [fact for topic in world.topics[:6] for fact in world.facts(topic)]
    texts = [text for fact in facts for text in (world.answer(fact, code), world.statement(fact, code))]
    assert {rouge_l(text, text, script_tokens).f1 for text in texts} == {1.0}


@pytest.mark.parametrize("code", SCRIPTLESS)
def test_the_common_scorer_gives_identical_names_nothing(world, code):
    names = [topic.name[code] for topic in world.topics if not words(topic.name[code])]
    assert names
    assert {rouge_l(name, name).f1 for name in names} == {0.0}
    assert {rouge_l(name, name, script_tokens).f1 for name in names} == {1.0}


@pytest.mark.parametrize("code", LANGUAGES)
def test_words_stay_whole_where_spaces_separate_them_and_nowhere_else(world, code):
    tokens = {token for topic in world.topics for token in script_tokens(topic.name[code])}
    longest = max(map(len, (token for token in tokens if not token.isascii())), default=2)
    assert (longest > 1) == language(code).spaced


@given(st.text())
def test_any_text_with_a_letter_is_itself(text):
    f1 = rouge_l(text, text, script_tokens).f1
    assert f1 == float(any(unicodedata.category(c)[0] in "LNM" for c in unicodedata.normalize("NFKC", text).casefold()))


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("ＡＢＣ①", ["abc1"]),
        ("Straße", ["strasse"]),
        ("১৪ সেপ্টেম্বর", ["১৪", "সেপ্টেম্বর"]),
        ("กำ", ["ก", "ํ", "า"]),
        ("Mwaka wa 2033/34", ["mwaka", "wa", "2033", "34"]),
        ("第3回", ["第", "3", "回"]),
        ("ｶﾀｶﾅ", ["カ", "タ", "カ", "ナ"]),
        ("人々・〇", ["人", "々", "〇"]),
        ("l'été", ["l", "été"]),
        ("،؟", []),
        ("", []),
    ],
    ids=[
        "compatibility forms",
        "folded case",
        "Bengali marks stay with their letters",
        "Thai marks are characters",
        "punctuation separates",
        "digits stay together between Han",
        "half-width kana",
        "iteration mark and zero",
        "an apostrophe separates",
        "no letter",
        "nothing",
    ],
)
def test_tokens(text, tokens):
    assert script_tokens(text) == tokens


def test_the_example_holds():
    assert doctest.testmod(module).failed == 0
