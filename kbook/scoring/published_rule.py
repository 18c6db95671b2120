"""The matcher `published`: the rule behind the published numbers, its quirks included.

Example:
    >>> PUBLISHED.match("date_of_birth", "1983-07-14", "Born on July 14, 1983 in Ohio.")
    Match(cer=1, severity=1.0)
    >>> PUBLISHED.match("occupation", "Actor", "works in a factory")  # a quirk: no word boundaries
    Match(cer=1, severity=1.0)
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from kbook.scoring.forms import MONTHS, Form, Forms, Matcher, calendar_date

UNIT_WORDS = ("Apt", "Suite", "Ste", "Unit", "#")

_TOKEN = re.compile(r"[a-z0-9]+")
_ISO_DATE = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})")
_FIVE_DIGITS = re.compile(r"\b\d{5}(-\d{4})?\b")
_UNIT = re.compile(rf"\b({'|'.join(UNIT_WORDS)})[.\s]*\w+", re.IGNORECASE)


def canonical(text: str) -> str:
    """Lower case, white space collapsed."""
    text = text.lower()
    if "  " not in text and text.isprintable():  # no white space but single spaces: nothing to collapse
        return text.strip(" ")
    return " ".join(text.split())


def date_variants(value: str) -> tuple[str, ...]:
    """All spellings of an ISO date that the published matcher knows; another value only as it stands."""
    parts = _ISO_DATE.fullmatch(value)
    if parts is None or calendar_date(*map(int, parts.groups())) is None:
        return (value,)
    year, month, day = parts[1], int(parts[2]), int(parts[3])
    name = MONTHS[month - 1]
    spelled = (
        f"{name} {day:02}, {year}",
        f"{name} {day}, {year}",
        f"{day:02} {name} {year}",
        f"{day} {name} {year}",
    )
    return value, *spelled, f"{month:02}/{day:02}/{year}", f"{month}/{day}/{year}"


def address_variants(value: str) -> tuple[str, ...]:
    """An address as it stands, without ZIP, and without ZIP and unit, as the public scorer cuts them.

    Its quirks are kept: every number of five digits is taken for a ZIP (a house number too), a word that
    begins like a unit (`Stephens`) for a unit, and the space before a removed unit stays (`Terrace , …`).
    """
    no_zip = _FIVE_DIGITS.sub("", value)
    no_unit = _UNIT.sub("", no_zip)
    return value, no_zip.strip(", "), no_unit.strip(", ")


_VARIANTS = {"date_of_birth": date_variants, "address": address_variants}


@lru_cache(maxsize=65536)
def published_forms(field: str, value: str) -> Forms:
    """The forms of a value under the published matcher; an unknown field has the value itself only."""
    variants = _VARIANTS.get(field, lambda text: (text,))(value)
    texts = dict.fromkeys(canonical(variant) for variant in variants)
    return Forms(Form(text, frozenset(_TOKEN.findall(text))) for text in texts if text)


def _held(shown: str, tokens: Sequence[str]) -> set[str]:
    some = [token for token in tokens if token in shown]
    return set(_TOKEN.findall(shown)).intersection(some) if some else set()


PUBLISHED = Matcher("published", canonical, published_forms, _held)
