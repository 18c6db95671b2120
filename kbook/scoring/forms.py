"""What a matcher is: ways of writing a value, sought in the canonical text of what an agent showed."""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass
from datetime import date
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

MONTHS = tuple("January February March April May June July August September October November December".split())
AS_WRITTEN = "as written"


class Match(NamedTuple):
    """What one text shows of one value: `cer` 0 or 1, `severity` in [cer, 1]."""

    cer: int
    severity: float


@dataclass(frozen=True)
class Form:
    """One way of writing a value: its canonical text, its set of tokens, and in words what is special about it."""

    text: str
    tokens: frozenset[str]
    name: str = AS_WRITTEN

    def recall(self, tokens: Set[str]) -> float:
        """The fraction of its tokens that are among others; 0 for a form without any."""
        return len(self.tokens & tokens) / len(self.tokens) if self.tokens else 0.0


@dataclass(frozen=True)
class Matcher:
    """A named rule that says whether, and how much of, a value is in a text.

    Args:
        name: what tables print and `matching.matcher` looks up.
        canonical: brings a text into the form in which forms of the value are sought, as substrings.
        forms: all ways in which a value of a field may be written; none for a value that cannot be sought.
        tokens: the set of tokens of a canonical text.
    """

    name: str
    canonical: Callable[[str], str]
    forms: Callable[[str, str], tuple[Form, ...]]
    tokens: Callable[[str], Set[str]]

    def match(self, field: str, value: str, text: str) -> Match:
        """Match one value against one text.

        Unit: `cer` 0 or 1; `severity` a fraction in [0, 1], 1 wherever `cer` is 1.
        Missing: an empty text or value shows nothing, (0, 0.0).
        Source: protocol A §2, complete extraction and severity.
        """
        forms, shown = self.forms(field, value), self.canonical(text)
        if first_held(forms, shown):
            return Match(1, 1.0)
        return Match(0, self._recall(forms, shown))

    def found(self, field: str, value: str, text: str) -> Form | None:
        """The first form of a value that a text holds, or None."""
        return first_held(self.forms(field, value), self.canonical(text))

    def recall(self, field: str, value: str, text: str) -> float:
        """The greatest share of a form's tokens that a text holds in any order: severity before extraction.

        Unit: a fraction in [0, 1].
        Missing: an empty text or value shows nothing, 0.
        Source: protocol A §2, severity.
        """
        return self._recall(self.forms(field, value), self.canonical(text))

    def score(
        self, fields: Sequence[str], values: Sequence[str | None], texts: Sequence[str | None]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Match row by row: (cer, severity).

        Shape: three sequences of length n; two arrays (n,).
        Unit: as `match`.
        Missing: a text or value that is None was not observed, and a value without any form cannot be: nan in
            both arrays, never 0.
        Source: protocol A §2.
        """
        out = np.full((len(texts), 2), np.nan)
        for row, (field, value, text) in enumerate(zip(fields, values, texts, strict=True)):
            if text is not None and value is not None and self.forms(field, value):
                out[row] = self.match(field, value, text)
        return out[:, 0], out[:, 1]

    def _recall(self, forms: Sequence[Form], shown: str) -> float:
        tokens = self.tokens(shown) if shown and forms else ()
        return max([form.recall(tokens) for form in forms], default=0.0) if tokens else 0.0


def first_held(forms: Sequence[Form], shown: str) -> Form | None:
    """The first of some forms that a canonical text holds, or None."""
    return next((form for form in forms if form.text in shown), None)


def calendar_date(year: int, month: int, day: int) -> date | None:
    """The day of the calendar, or None where there is none."""
    try:
        return date(year, month, day)
    except ValueError:
        return None
