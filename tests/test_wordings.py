"""The sentence forms name what they must, and stay apart where they must."""

import string

import pytest

from kbook.corpora.wordings import (
    BIOGRAPHIES,
    FACT_SENTENCES,
    NOT_FOUND,
    QUESTIONS,
    SUMMARY,
    SUMMARY_PROMPTS,
    SUMMARY_UNKNOWN,
)
from kbook.keys import FIELDS


def placeholders(form: str) -> list[str]:
    return sorted(name for _, name, _, _ in string.Formatter().parse(form) if name)


@pytest.mark.parametrize("form", [*BIOGRAPHIES, SUMMARY], ids=[*(f"biography {i}" for i in range(8)), "summary"])
def test_a_biography_states_every_field_once(form: str) -> None:
    assert placeholders(form) == sorted(("name", *FIELDS))
    assert "\n" not in form


def test_there_are_eight_different_biographies() -> None:
    assert len(set(BIOGRAPHIES)) == len(BIOGRAPHIES) == 8


@pytest.mark.parametrize("field", FIELDS)
def test_each_field_has_a_canonical_question_and_paraphrases(field: str) -> None:
    forms = QUESTIONS[field]
    assert len(set(forms)) == len(forms) >= 3
    assert all(placeholders(form) == ["name"] and form.endswith("?") for form in forms)


def test_no_question_serves_two_fields() -> None:
    forms = [form for field in FIELDS for form in QUESTIONS[field]]
    assert len(set(forms)) == len(forms)


def test_short_sentences_hold_one_value_and_prompts_one_name() -> None:
    assert set(FACT_SENTENCES) == set(QUESTIONS) == set(FIELDS)
    assert all(placeholders(s) == ["value"] for forms in FACT_SENTENCES.values() for s in forms)
    assert all(placeholders(s) == ["name"] for s in (*SUMMARY_PROMPTS, SUMMARY_UNKNOWN))
    assert placeholders(NOT_FOUND) == []
