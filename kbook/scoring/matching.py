"""Does a text show a value? Matchers, each chosen by its name.

Only `published` is here: it follows the rule behind the published numbers, its quirks included, so that
rates can be compared with the paper. A second matcher is one more entry of `MATCHERS`.

Example:
    >>> PUBLISHED.match("date_of_birth", "1983-07-14", "Born on July 14, 1983 in Ohio.")
    Match(cer=1, severity=1.0)
    >>> PUBLISHED.match("occupation", "Actor", "works in a factory")  # a quirk: no word boundaries
    Match(cer=1, severity=1.0)
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass
from datetime import date
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kbook.errors import unknown_name

MONTHS = tuple("January February March April May June July August September October November December".split())
UNIT_WORDS = ("Apt", "Suite", "Ste", "Unit", "#")

_TOKEN = re.compile(r"[a-z0-9]+")
_ISO_DATE = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})")
_FIVE_DIGITS = re.compile(r"\b\d{5}(-\d{4})?\b")
_UNIT = re.compile(rf"\b({'|'.join(UNIT_WORDS)})[.\s]*\w+", re.IGNORECASE)


class Match(NamedTuple):
    """What one text shows of one value: `cer` 0 or 1, `severity` in [cer, 1]."""

    cer: int
    severity: float


@dataclass(frozen=True)
class Form:
    """One way of writing a value: its canonical text and its set of tokens."""

    text: str
    tokens: frozenset[str]

    def recall(self, tokens: Set[str]) -> float:
        """The fraction of its tokens that are among others; 0 for a form without any."""
        return len(self.tokens & tokens) / len(self.tokens) if self.tokens else 0.0


@dataclass(frozen=True)
class Matcher:
    """A named rule that says whether, and how much of, a value is in a text.

    Args:
        name: what tables print and `matcher` looks up.
        canonical: brings a text into the form in which forms of the value are sought.
        forms: all ways in which a value of a field may be written.
        holds: whether a canonical text holds the canonical text of one form.
    """

    name: str
    canonical: Callable[[str], str]
    forms: Callable[[str, str], tuple[Form, ...]]
    holds: Callable[[str, str], bool]

    def match(self, field: str, value: str, text: str) -> Match:
        """Match one value against one text.

        Unit: `cer` 0 or 1; `severity` a fraction in [0, 1], 1 wherever `cer` is 1.
        Missing: an empty text or value shows nothing, (0, 0.0).
        Source: protocol A §2, complete extraction and severity.
        """
        shown = self.canonical(text)
        forms = self.forms(field, value) if shown else ()
        for form in forms:
            if self.holds(shown, form.text):
                return Match(1, 1.0)
        tokens = set(_TOKEN.findall(shown)) if forms else set()
        return Match(0, max([form.recall(tokens) for form in forms], default=0.0))

    def score(
        self, fields: Sequence[str], values: Sequence[str | None], texts: Sequence[str | None]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Match row by row: (cer, severity).

        Shape: three sequences of length n; two arrays (n,).
        Unit: as `match`.
        Missing: a text or value that is None was not observed: nan in both arrays, never 0.
        Source: protocol A §2.
        """
        out = np.full((len(texts), 2), np.nan)
        for row, (field, value, text) in enumerate(zip(fields, values, texts, strict=True)):
            if text is not None and value is not None:
                out[row] = self.match(field, value, text)
        return out[:, 0], out[:, 1]


def canonical(text: str) -> str:
    """Lower case, white space collapsed."""
    return " ".join(text.lower().split())


def date_variants(value: str) -> tuple[str, ...]:
    """All spellings of an ISO date that the published matcher knows; another value only as it stands."""
    parts = _ISO_DATE.fullmatch(value)
    if parts is None or not _is_date(value):
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
def published_forms(field: str, value: str) -> tuple[Form, ...]:
    """The forms of a value under the published matcher; an unknown field has the value itself only."""
    variants = _VARIANTS.get(field, lambda text: (text,))(value)
    texts = dict.fromkeys(canonical(variant) for variant in variants)
    return tuple(Form(text, frozenset(_TOKEN.findall(text))) for text in texts if text)


def _contains(text: str, form: str) -> bool:
    return form in text


def _is_date(value: str) -> bool:
    try:
        date.fromisoformat(value)
    except ValueError:
        return False
    return True


PUBLISHED = Matcher("published", canonical, published_forms, _contains)
MATCHERS = {rule.name: rule for rule in (PUBLISHED,)}


def matcher(name: str) -> Matcher:
    """Look a matcher up by its name.

    Raises:
        KBookError: no matcher has this name.
    """
    if name not in MATCHERS:
        raise unknown_name("matcher", name, MATCHERS)
    return MATCHERS[name]
