"""Belebele's files: the same questions in every language, and errors that name file and record."""

import json
from pathlib import Path

import pytest

from kbook.corpora.belebele import DIALECTS, read_belebele
from kbook.corpora.languages import LANGUAGES
from kbook.errors import KBookError


def record(number: int, dialect: str) -> dict[str, object]:
    return {
        "link": f"https://example.org/{number // 2}",
        "question_number": number % 2 + 1,
        "flores_passage": f"{dialect} passage {number}",
        "question": f"{dialect} question {number}?",
        **{f"mc_answer{option}": f"{dialect} option {option}" for option in range(1, 5)},
        "correct_answer_num": str(number % 4 + 1),
        "dialect": dialect,
        "ds": "2023-05-03",
    }


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for language in ("en", "th"):
        write(tmp_path, language, [record(number, DIALECTS[language]) for number in range(6)])
    return tmp_path


def write(folder: Path, language: str, rows: list[dict[str, object]]) -> None:
    (folder / f"{DIALECTS[language]}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def test_every_language_has_a_dialect():
    assert tuple(DIALECTS) == LANGUAGES


def test_questions_are_paired_over_languages_whatever_the_order_of_lines(folder):
    write(folder, "th", [record(number, DIALECTS["th"]) for number in reversed(range(6))])
    found = read_belebele(folder, ["en", "th"], n=6)
    assert [question.id for question in found["en"]] == [question.id for question in found["th"]]
    english, thai = (questions[3] for questions in found.values())
    assert (english.correct, english.question, thai.question) == (
        thai.correct,
        "eng_Latn question 3?",
        "tha_Thai question 3?",
    )
    assert english.options[english.correct] == "eng_Latn option 4"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"question": ""}, "record 3: field 'question' is missing, empty or not text"),
        ({"mc_answer4": None}, "record 3: field 'mc_answer4'"),
        ({"correct_answer_num": "5"}, "record 3: .*correct_answer_num '5' is no such number"),
        ({"dialect": "eng_Latn"}, "record 3: its dialect is 'eng_Latn'"),
        ({"question_number": 2}, "stands for more than one question"),
        ({"link": "https://example.org/9"}, "do not both have https://example.org/1#1"),
    ],
)
def test_a_wrong_record_is_named(folder, change, message):
    rows = [record(number, DIALECTS["th"]) for number in range(6)]
    write(folder, "th", [*rows[:2], rows[2] | change, *rows[3:]])
    with pytest.raises(KBookError, match=message) as caught:
        read_belebele(folder, ["en", "th"], n=None)
    assert "tha_Thai.jsonl" in str(caught.value)


def test_another_number_of_questions_and_a_missing_file_are_named(folder):
    with pytest.raises(KBookError, match="eng_Latn.jsonl: 6 questions, not 900"):
        read_belebele(folder, ["en", "th"])
    with pytest.raises(KBookError, match="arb_Arab.jsonl: a file of Belebele is missing"):
        read_belebele(folder, n=None)
