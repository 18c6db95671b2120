"""Dates and numbers as ten languages write them.

A value is kept once (a date, a number) and written with Babel's CLDR tables where it is shown. What CLDR leaves
open is settled here: Bengali has its own digits, French says *1er*, and Japanese puts no space before a unit.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from functools import cache

from babel import Locale
from babel.dates import format_date
from babel.numbers import format_decimal
from babel.units import format_unit

Number = int | float

_BENGALI = {ord("0") + i: chr(ord("০") + i) for i in range(10)}
_BUDDHIST_YEARS = 543
_DIRECTION_MARKS = dict.fromkeys(map(ord, "\u200e\u200f\u061c"))


def date_text(day: date, language: str) -> str:
    """Write a day out in full.

    Example:
        >>> date_text(date(2032, 3, 1), "fr"), date_text(date(2032, 3, 7), "bn")
        ('1er mars 2032', '৭ মার্চ, ২০৩২')
    """
    text = format_date(day, "long", locale=_locale(language))
    if language == "fr" and day.day == 1:
        text = f"1er{text.removeprefix('1')}"
    return _own_digits(text, language)


def date_aliases(day: date, language: str) -> tuple[str, ...]:
    """Other ways to write the same day in a language: short, ISO, in ASCII digits, in the Buddhist era (Thai)."""
    long = format_date(day, "long", locale=_locale(language))
    short = format_date(day, "medium", locale=_locale(language)).translate(_DIRECTION_MARKS)
    forms = [long, short, _own_digits(short, language), day.isoformat()]
    if language == "th":
        forms.append(long.replace(f"ค.ศ. {day.year}", f"พ.ศ. {day.year + _BUDDHIST_YEARS}"))
    return _others(forms, date_text(day, language))


def number_text(value: Number, measure: str | Mapping[str, str], language: str) -> str:
    """Write a number with what it counts.

    Args:
        value: the number.
        measure: a CLDR unit as in ``length-kilometer``, or a pattern with ``{n}`` for each language.
        language: one of `kbook.corpora.languages.LANGUAGES`.

    Example:
        >>> number_text(7, "duration-day", "ar"), number_text(48213, {"ja": "{n}人"}, "ja")
        ('7 أيام', '48,213人')
    """
    if isinstance(measure, str):
        text = format_unit(value, measure, length="long", locale=_locale(language))
        text = text.replace(" ", "") if language in ("ja", "zh") else text
    else:
        text = measure[language].format(n=format_decimal(value, locale=_locale(language)))
    return _own_digits(_plain_spaces(text), language)


def number_aliases(value: Number, measure: str | Mapping[str, str], language: str) -> tuple[str, ...]:
    """Other ways to write the same number in a language: without its unit, ungrouped, in ASCII digits."""
    bare = _plain_spaces(format_decimal(value, locale=_locale(language)))
    ungrouped = format_decimal(value, locale=_locale(language), group_separator=False)
    forms = [bare, _own_digits(bare, language), ungrouped, _own_digits(ungrouped, language)]
    return _others(forms, number_text(value, measure, language))


@cache
def _locale(language: str) -> Locale:
    return Locale(language)


def _own_digits(text: str, language: str) -> str:
    return text.translate(_BENGALI) if language == "bn" else text


def _plain_spaces(text: str) -> str:
    return text.replace("\u00a0", " ").replace("\u202f", " ")


def _others(forms: list[str], text: str) -> tuple[str, ...]:
    return tuple(form for form in dict.fromkeys(forms) if form != text)
