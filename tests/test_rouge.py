"""ROUGE-L: closed forms, order, and the tokenizer that the caller brings."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbook.scoring.rouge import Rouge, lcs_length, rouge_l, words


def table_lcs(first, second):
    """The textbook's table, cell by cell."""
    table = [[0] * (len(second) + 1) for _ in range(len(first) + 1)]
    for i, a in enumerate(first):
        for j, b in enumerate(second):
            table[i + 1][j + 1] = table[i][j] + 1 if a == b else max(table[i][j + 1], table[i + 1][j])
    return table[-1][-1]


@given(st.lists(st.sampled_from("abcd"), max_size=80), st.lists(st.sampled_from("abcd"), max_size=80))
def test_the_length_is_that_of_the_textbook(first, second):
    assert lcs_length(first, second) == lcs_length(second, first) == table_lcs(first, second)


@pytest.mark.parametrize(
    ("reference", "text", "expected"),
    [
        ("police killed the gunman", "police kill the gunman", Rouge(3 / 4, 3 / 4, 3 / 4)),
        ("police killed the gunman", "the gunman kill police", Rouge(2 / 4, 2 / 4, 2 / 4)),
        ("1983-07-14", "She was born on 1983-07-14.", Rouge(3 / 7, 1.0, 0.6)),
        ("a b c d", "a c", Rouge(1.0, 0.5, 2 / 3)),
        ("Alder Ltd", "ALDER, LTD.", Rouge(1.0, 1.0, 1.0)),
        ("Alder Ltd", "nothing of it", Rouge(0.0, 0.0, 0.0)),
        ("Alder Ltd", "", Rouge(0.0, 0.0, 0.0)),
        ("", "Alder Ltd", Rouge(0.0, 0.0, 0.0)),
        ("...", "...", Rouge(0.0, 0.0, 0.0)),
    ],
    ids=[
        "Lin's first candidate",
        "Lin's second candidate: the same words in another order",
        "a date in a sentence",
        "half of the reference",
        "case and punctuation do not count",
        "another text",
        "no text",
        "no reference",
        "no token at all",
    ],
)
def test_closed_forms(reference, text, expected):
    assert rouge_l(reference, text) == pytest.approx(expected)


def test_repeated_words_count_as_often_as_both_have_them():
    assert rouge_l("the the the", "the the") == pytest.approx(Rouge(1.0, 2 / 3, 0.8))


def test_a_script_without_spaces_needs_its_own_tokenizer():
    assert words("東京都") == [] and rouge_l("東京都", "東京").f1 == 0
    assert rouge_l("東京都", "東京", list) == pytest.approx(Rouge(1.0, 2 / 3, 0.8))
