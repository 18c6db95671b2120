"""ROUGE-L: how much of a reference text another text says in the same order.

What counts as a token is the caller's choice, since scripts differ in what separates words; the default is that of
the common scorer for English.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

Tokenizer = Callable[[str], Sequence[str]]

_WORDS = re.compile(r"[a-z0-9]+")


class Rouge(NamedTuple):
    """Precision, recall and F1 of one text against a reference. Unit: fractions in [0, 1]."""

    precision: float
    recall: float
    f1: float


def words(text: str) -> list[str]:
    """Runs of ASCII letters and digits in lower case, without stemming: the default of the package rouge-score."""
    return _WORDS.findall(text.lower())


def rouge_l(reference: str, text: str, tokenizer: Tokenizer = words) -> Rouge:
    """Compare a text with its reference by their longest common subsequence of tokens.

    Recall divides the length of the subsequence by the tokens of the reference, precision by those of the text.

    Shape: two texts → three numbers.
    Unit: fractions in [0, 1].
    Missing: 0 where either text has no token.
    Source: Lin (2004), ROUGE, section 3.1, equations 2 to 4 with beta = 1.

    Args:
        reference: what should be said.
        text: what was said.
        tokenizer: from a text to its tokens.
    """
    wanted, said = tokenizer(reference), tokenizer(text)
    common = lcs_length(wanted, said)
    if not common:
        return Rouge(0.0, 0.0, 0.0)
    precision, recall = common / len(said), common / len(wanted)
    return Rouge(precision, recall, 2 * precision * recall / (precision + recall))


def lcs_length(first: Sequence[str], second: Sequence[str]) -> int:
    """Length of the longest common subsequence.

    One bit a token of `first`: a bit that has become 0 marks a token that the subsequence has grown by.

    Source: Hyyrö (2004), bit-parallel LCS-length computation revisited.
    """
    places: dict[str, int] = {}
    for i, token in enumerate(first):
        places[token] = places.get(token, 0) | 1 << i
    full = (1 << len(first)) - 1
    open_bits = full
    for token in second:
        hit = open_bits & places.get(token, 0)
        open_bits = ((open_bits + hit) | (open_bits - hit)) & full
    return len(first) - open_bits.bit_count()
