"""The ten languages: the table, and which letters belong to which."""

import pytest

from kbook.corpora.languages import LANGUAGES, language
from kbook.errors import KBookError


def test_the_ten_languages_stand_in_alphabetical_order():
    assert LANGUAGES == ("ar", "bn", "de", "en", "es", "fr", "ja", "sw", "th", "zh")


def test_an_unknown_language_is_named_with_those_that_are_known():
    with pytest.raises(KBookError, match="unknown language 'pt'.*ar, bn, de"):
        language("pt")


@pytest.mark.parametrize("code", LANGUAGES)
def test_a_language_writes_its_own_name(code):
    own = language(code)
    assert all(own.writes(letter) for letter in own.own_name if letter.isalpha())


@pytest.mark.parametrize("code", [code for code in LANGUAGES if language(code).script != "Latin"])
def test_only_languages_in_latin_script_write_latin_letters(code):
    assert not language(code).writes("k") and language("sw").writes("k")


def test_japanese_and_chinese_share_han_but_not_kana():
    assert language("ja").writes("山") and language("zh").writes("山")
    assert language("ja").writes("か") and not language("zh").writes("か")


def test_arabic_alone_runs_from_right_to_left_and_three_languages_use_no_spaces():
    assert [code for code in LANGUAGES if language(code).direction == "rtl"] == ["ar"]
    assert [code for code in LANGUAGES if not language(code).spaced] == ["ja", "th", "zh"]
