"""Dates and numbers as ten languages write them."""

import re
import unicodedata
from datetime import date

import pytest
from babel import Locale
from hypothesis import given
from hypothesis import strategies as st

from kbook.corpora.languages import LANGUAGES, language
from kbook.corpora.values import date_aliases, date_text, number_aliases, number_text

DAYS = st.dates(date(2031, 1, 1), date(2036, 12, 31))
PEOPLE = {code: "{n}" for code in LANGUAGES}


def read_date(text: str, code: str) -> date:
    """Read back what `date_text` wrote: the month by its name or place, day and year by their size."""
    digits = "".join(str(unicodedata.decimal(c, c)) for c in text)
    if code in ("ja", "zh"):
        return date(*map(int, re.findall(r"\d+", digits)))
    months = Locale(code).months["format"]["wide"]
    month = max((number for number, name in months.items() if name in text), key=lambda n: len(months[n]))
    day, year = sorted(map(int, re.findall(r"\d+", digits)))
    return date(year, month, day)


@pytest.mark.parametrize("code", LANGUAGES)
@given(day=DAYS)
def test_a_date_can_be_read_back_from_what_is_written(code, day):
    assert read_date(date_text(day, code), code) == day


@pytest.mark.parametrize(
    "code, text",
    [
        ("ar", "1 مارس 2032"),
        ("bn", "১ মার্চ, ২০৩২"),
        ("de", "1. März 2032"),
        ("en", "March 1, 2032"),
        ("es", "1 de marzo de 2032"),
        ("fr", "1er mars 2032"),
        ("ja", "2032年3月1日"),
        ("sw", "1 Machi 2032"),
        ("th", "1 มีนาคม ค.ศ. 2032"),
        ("zh", "2032年3月1日"),
    ],
)
def test_the_first_of_march_in_each_language(code, text):
    assert date_text(date(2032, 3, 1), code) == text


def test_only_the_first_of_a_month_is_an_ordinal_in_french():
    assert [date_text(date(2032, 3, day), "fr").split()[0] for day in (1, 2, 11, 21, 31)] == "1er 2 11 21 31".split()


@pytest.mark.parametrize("code", LANGUAGES)
@given(day=DAYS)
def test_other_ways_to_write_a_date_differ_from_the_usual_one_and_have_no_invisible_marks(code, day):
    aliases = date_aliases(day, code)
    assert day.isoformat() in aliases and date_text(day, code) not in aliases
    assert len(set(aliases)) == len(aliases)
    assert not any(unicodedata.category(c) == "Cf" for alias in aliases for c in alias)


def test_thai_dates_may_also_be_given_in_the_buddhist_era():
    assert "7 มีนาคม พ.ศ. 2575" in date_aliases(date(2032, 3, 7), "th")


@pytest.mark.parametrize("code", LANGUAGES)
@given(value=st.integers(2, 900_000))
def test_a_number_can_be_read_back_from_what_is_written(code, value):
    for text in (number_text(value, PEOPLE, code), *number_aliases(value, PEOPLE, code)):
        assert int("".join(str(unicodedata.decimal(c)) for c in text if c.isdecimal())) == value


def test_units_agree_with_their_number_in_arabic():
    assert [number_text(n, "duration-day", "ar") for n in (3, 14, 200)] == ["3 أيام", "14 يومًا", "200 يوم"]


def test_units_stand_where_the_language_puts_them():
    speed = {code: number_text(187, "speed-kilometer-per-hour", code) for code in ("de", "ja", "sw", "zh")}
    assert speed["de"] == "187 Kilometer pro Stunde" and speed["ja"] == "時速187キロメートル"
    assert speed["sw"] == "kilomita 187 kwa saa" and speed["zh"] == "每小时187公里"


@pytest.mark.parametrize("code", LANGUAGES)
def test_digits_are_bengali_in_bengali_alone(code):
    texts = date_text(date(2032, 3, 7), code), number_text(48213, PEOPLE, code), number_text(8, "mass-kilogram", code)
    digits = {c for text in texts for c in text if c.isdecimal()}
    assert all(language("bn").writes(c) if code == "bn" else c.isascii() for c in digits)


def test_spaces_in_numbers_are_plain():
    assert number_text(48213, {"fr": "{n} personnes"}, "fr") == "48 213 personnes"
