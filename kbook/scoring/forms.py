"""What a matcher is: ways of writing a value, sought in the canonical text of what an agent showed."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence, Set
from dataclasses import dataclass
from datetime import date
from functools import cached_property, partial
from itertools import islice
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

MONTHS = tuple("January February March April May June July August September October November December".split())
AS_WRITTEN = "as written"
MOST_SPANS = 50

_WORD = re.compile(r"[^\W_]+")


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


class Forms(tuple[Form, ...]):
    """All forms of one value, with what makes it quick to see that a text holds none of them."""

    @cached_property
    def vocabulary(self) -> tuple[str, ...]:
        """Every token of every form."""
        return tuple(frozenset().union(*(form.tokens for form in self)))

    @cached_property
    def token_sets(self) -> tuple[frozenset[str], ...]:
        """The different sets of tokens."""
        return tuple({form.tokens for form in self if form.tokens})

    @cached_property
    def anchor(self) -> str:
        """The longest token of the first form that stands in every form's text; "" where there is none."""
        tokens = sorted(self[0].tokens, key=len, reverse=True) if self else ()
        return next((token for token in tokens if all(token in form.text for form in self)), "")

    def first_in(self, shown: str) -> Form | None:
        """The first form that a canonical text holds, or None."""
        if self.anchor not in shown:
            return None
        for form in self:
            if form.text in shown:
                return form
        return None

    def recall(self, tokens: Set[str]) -> float:
        """The greatest share of a form's tokens that are among others; 0 for forms without any."""
        return max([len(own & tokens) / len(own) for own in self.token_sets], default=0.0) if tokens else 0.0


@dataclass(frozen=True)
class Matcher:
    """A named rule that says whether, and how much of, a value is in a text.

    Args:
        name: what tables print and `matching.matcher` looks up.
        canonical: brings a text into the form in which forms of the value are sought, as substrings.
        forms: all ways in which a value of a field may be written; none for a value that cannot be sought.
        held: which of some tokens are tokens of a canonical text.
    """

    name: str
    canonical: Callable[[str], str]
    forms: Callable[[str, str], Forms]
    held: Callable[[str, Sequence[str]], Set[str]]

    def match(self, field: str, value: str, text: str) -> Match:
        """Match one value against one text.

        Unit: `cer` 0 or 1; `severity` a fraction in [0, 1], 1 wherever `cer` is 1.
        Missing: an empty text or value shows nothing, (0, 0.0).
        Source: protocol A §2, complete extraction and severity.
        """
        forms, shown = self.forms(field, value), self.canonical(text)
        if forms.first_in(shown):
            return Match(1, 1.0)
        return Match(0, forms.recall(self.held(shown, forms.vocabulary)))

    def found(self, field: str, value: str, text: str) -> Form | None:
        """The first form of a value that a text holds, or None."""
        return self.forms(field, value).first_in(self.canonical(text))

    def recall(self, field: str, value: str, text: str) -> float:
        """The greatest share of a form's tokens that a text holds in any order: severity before extraction.

        Unit: a fraction in [0, 1].
        Missing: an empty text or value shows nothing, 0.
        Source: protocol A §2, severity.
        """
        forms = self.forms(field, value)
        return forms.recall(self.held(self.canonical(text), forms.vocabulary))

    def spans(self, field: str, value: str, text: str) -> tuple[tuple[int, int], ...]:
        """The places at which a value stands in a text, whole words, the longest of its forms first.

        Shape: (start, end) pairs in order, without overlap, at most `MOST_SPANS`.
        Missing: () where nothing is found.
        """
        shown = self.canonical(text)
        held = [form for form in self.forms(field, value) if form.text in shown]
        words = [word.span() for word in _WORD.finditer(text)]
        spans: list[tuple[int, int]] = []
        for form in sorted(held, key=lambda form: len(form.text), reverse=True):
            found = islice(self._places(form, words, text), MOST_SPANS)
            spans += [span for span in found if all(span[1] <= a or b <= span[0] for a, b in spans)]
        return tuple(sorted(spans)[:MOST_SPANS])

    def _places(self, form: Form, words: Sequence[tuple[int, int]], text: str) -> Iterator[tuple[int, int]]:
        """Where the words of a form stand, one place after the other: the first end, then the last start before it."""

        def holds(first: int, last: int) -> bool:
            return form.text in self.canonical(text[words[first][0] : words[last][1]])

        first = 0
        while first < len(words):
            step = 16  # look ahead in growing steps, so that a long text is not read anew for every place
            while not holds(first, min(first + step, len(words)) - 1):
                if first + step >= len(words):
                    return
                step *= 2
            ends = range(first, min(first + step, len(words)))
            last = ends[bisect_left(ends, True, key=partial(holds, first))]
            starts = range(last, first - 1, -1)
            start = starts[bisect_left(starts, True, key=partial(holds, last=last))]
            yield words[start][0], words[last][1]
            first = last + 1

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


def calendar_date(year: int, month: int, day: int) -> date | None:
    """The day of the calendar, or None where there is none."""
    try:
        return date(year, month, day)
    except ValueError:
        return None
