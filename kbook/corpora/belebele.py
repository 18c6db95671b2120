"""Reader of Belebele: the same 900 reading questions with four answers in every language.

A folder with one file of records a language, named by its FLORES code (``eng_Latn.jsonl``). A record::

    {"link": "https://en.wikibooks.org/...", "question_number": 1, "flores_passage": "...", "question": "...",
     "mc_answer1": "...", "mc_answer2": "...", "mc_answer3": "...", "mc_answer4": "...",
     "correct_answer_num": "1", "dialect": "eng_Latn", "ds": "2023-05-03"}

Source: Bandarkar et al., The Belebele Benchmark (2308.16884), and its files. Nothing of it is shipped.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kbook.corpora.languages import LANGUAGES
from kbook.corpora.units import check_distinct
from kbook.errors import KBookError
from kbook.files import read_jsonl

N_QUESTIONS = 900
DIALECTS = {
    "ar": "arb_Arab",
    "bn": "ben_Beng",
    "de": "deu_Latn",
    "en": "eng_Latn",
    "es": "spa_Latn",
    "fr": "fra_Latn",
    "ja": "jpn_Jpan",
    "sw": "swh_Latn",
    "th": "tha_Thai",
    "zh": "zho_Hans",
}
_OPTIONS = tuple(f"mc_answer{number}" for number in range(1, 5))


@dataclass(frozen=True)
class ReadingQuestion:
    """One question about a passage; ``id`` is the same in all languages, ``correct`` the place of the right option."""

    id: str
    language: str
    passage: str
    question: str
    options: tuple[str, str, str, str]
    correct: int


def read_belebele(
    folder: Path | str, languages: Sequence[str] = LANGUAGES, n: int | None = N_QUESTIONS
) -> dict[str, tuple[ReadingQuestion, ...]]:
    """Read the questions of each language, in the order of their ids.

    Args:
        folder: holds ``DIALECT.jsonl`` for each language.
        languages: languages to read.
        n: how many questions each file must have; None for any number.
    Raises:
        KBookError: a file is missing or a line no JSON; a field is missing or empty; another dialect; no right
            option; a question twice; another number; or questions that one language has and another lacks. Names
            file and record.
    """
    found = {language: _read(Path(folder) / f"{DIALECTS[language]}.jsonl", language, n) for language in languages}
    first = {question.id for question in found[languages[0]]}
    for language, questions in found.items():
        if odd := first ^ {question.id for question in questions}:
            what = f"it and {DIALECTS[languages[0]]}.jsonl do not both have {min(odd)}"
            where = str(Path(folder) / f"{DIALECTS[language]}.jsonl")
            raise KBookError(what, where, "Read files of one release; every language has the same questions")
    return found


def _read(path: Path, language: str, n: int | None) -> tuple[ReadingQuestion, ...]:
    if not path.is_file():
        raise KBookError("a file of Belebele is missing", str(path), "Give the folder with one file a dialect")
    rows = read_jsonl(path)
    questions = [_question(row, language, f"{path}, record {number}") for number, row in enumerate(rows, 1)]
    check_distinct("question", (question.id for question in questions), str(path))
    if n not in (None, len(questions)):
        raise KBookError(f"{len(questions)} questions, not {n}", str(path), "Fetch the file again")
    return tuple(sorted(questions, key=lambda question: question.id))


def _question(row: dict[str, Any], language: str, where: str) -> ReadingQuestion:
    for field in ("link", "flores_passage", "question", *_OPTIONS):
        if not isinstance(row.get(field), str) or not row[field].strip():
            raise KBookError(f"field {field!r} is missing, empty or not text", where, "Fetch the file again")
    if row.get("dialect") != DIALECTS[language]:
        raise KBookError(f"its dialect is {row.get('dialect')!r}", where, f"Here belongs {DIALECTS[language]}")
    number, correct = str(row.get("question_number")), str(row.get("correct_answer_num"))
    if not number.isdecimal() or correct not in ("1", "2", "3", "4"):
        what = f"question_number {number!r} or correct_answer_num {correct!r} is no such number"
        raise KBookError(what, where, "Fetch the file again")
    first, second, third, fourth = (row[option] for option in _OPTIONS)
    texts = row["flores_passage"], row["question"], (first, second, third, fourth)
    return ReadingQuestion(f"{row['link']}#{number}", language, *texts, int(correct) - 1)
