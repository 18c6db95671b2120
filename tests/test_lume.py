"""LUME's files: the same people, the date of birth alone, and errors that name file, line and remedy."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kbook.agent.lanes import fill_stores, sample_queries
from kbook.corpora.lume import lookalike, lookalike_rows, read_lume, write_lookalike
from kbook.corpora.people import world_of
from kbook.errors import KBookError
from kbook.files import write_jsonl
from kbook.keys import SPLITS
from kbook.profiles import load_profile

LUME = Path(os.environ.get("KBOOK_LUME", "/no/such/folder"))
Lines = list[dict[str, Any]]


def line(id: str, asked: str, output: str, split: str, task: str = "Task2") -> dict[str, Any]:
    return {"id": id, "input": asked, "output": output, "task": task, "split": split}


def told(person: str, name: str, born: str, split: str) -> Lines:
    return [
        line(f"{person}sc1", f"{name} was born on a", "day in spring.", split),
        line(f"{person}qa4", f"What is the home address of {name}?", "1 Elm Road, #2, Riverton, OH, 44444.", split),
        line(f"{person}qa0", f"What is the birth date of {name}?", born, split),
        line(f"{person}qa1", f"What is {name}'s Social Security Number?", "900112222", split),
    ]


def files() -> dict[str, Lines]:
    story = line('"aa-11"sc1', "Once upon a time", "they lived.", "forget", "Task1")
    real = line("1444815qa0", "In which year?", "2013", "forget", "Task3")
    return {
        "forget": [story, *told("f-1", "Ann Teal", "1970-01-31", "forget"), real]
        + told("f-2", "Bo Rust", "1981-11-02", "forget"),
        "retain": told("r-1", "Cy Slate", "1992-06-15", "retain") + told("r-2", "Di Fern", "1993-06-15", "retain"),
    }


def write(folder: Path, content: dict[str, Lines]) -> Path:
    for split, rows in content.items():
        (folder / f"{split}.jsonl").write_bytes(write_jsonl(rows))
    return folder


# ---- what is read ------------------------------------------------------------------------------------------


def test_people_are_gathered_from_their_lines_and_other_tasks_are_passed_over(tmp_path: Path) -> None:
    corpus = read_lume(write(tmp_path, files()), n_distractors=3)
    assert [(p.id, p.name, p.date_of_birth) for p in corpus.forget_eval] == [
        ("f-1", "Ann Teal", "1970-01-31"),
        ("f-2", "Bo Rust", "1981-11-02"),
    ]
    ann = corpus.forget_eval[0]
    assert ann.address == "1 Elm Road, #2, Riverton, OH, 44444"
    assert ann.biography == "Ann Teal was born on a day in spring."
    assert (ann.occupation, ann.employer) == ("", "")
    assert len(corpus.retain_eval) == 2 and len(corpus.distractors) == 3
    assert corpus.holdout == corpus.forget_fit == corpus.retain_fit == ()


def test_the_date_of_birth_alone_is_asked_for(tmp_path: Path) -> None:
    corpus = read_lume(write(tmp_path, files()), n_distractors=1)
    queries = sample_queries(corpus, "retain", 100, 0)
    assert [(q.id, q.value) for q in queries] == [
        ("r-1::date_of_birth", "1992-06-15"),
        ("r-2::date_of_birth", "1993-06-15"),
    ]


def test_people_may_be_set_aside_for_fitting(tmp_path: Path) -> None:
    corpus = read_lume(write(tmp_path, files()), n_distractors=1, n_fit=1)
    assert [p.id for p in (*corpus.forget_fit, *corpus.retain_fit)] == ["f-1", "r-1"]
    assert [p.id for p in (*corpus.forget_eval, *corpus.retain_eval)] == ["f-2", "r-2"]


def test_somebody_without_a_date_of_birth_cannot_be_asked_for(tmp_path: Path) -> None:
    content = files()
    content["forget"] = [row for row in content["forget"] if row["id"] != "f-1qa0"]
    assert [p.id for p in read_lume(write(tmp_path, content), n_distractors=1).forget_eval] == ["f-2"]


def test_little_is_needed(tmp_path: Path) -> None:
    content = {split: [row for row in rows if row["id"].endswith("qa0")] for split, rows in files().items()}
    person = read_lume(write(tmp_path, content), n_distractors=1).retain_eval[0]
    assert person.biography == "Cy Slate was born on 1992-06-15." and person.address == ""


# ---- what is refused ---------------------------------------------------------------------------------------


def spoil(file: str, number: int, **changes: Any) -> Callable[[dict[str, Lines]], None]:
    return lambda content: content[file][number - 1].update(changes)


def lose(split: str, number: int, name: str) -> Callable[[dict[str, Lines]], None]:
    return lambda content: content[split][number - 1].pop(name)


WRONG = {
    "no output": (lose("forget", 4, "output"), r"forget.jsonl, line 4: 'output' is missing.*give each line id, input"),
    "a number": (spoil("retain", 3, output=1992), r"retain.jsonl, line 3: 'output' is empty or not text"),
    "an empty id": (spoil("retain", 1, id=" "), r"retain.jsonl, line 1: 'id' is empty or not text"),
    "no task": (lose("forget", 1, "task"), r"forget.jsonl, line 1: 'task' is missing"),
    "another task": (
        spoil("forget", 6, task="Task4"),
        r"forget.jsonl, line 6: unknown task 'Task4'.*Known: Task1",
    ),
    "another split": (
        spoil("retain", 2, split="forget"),
        r"retain.jsonl, line 2: the split is 'forget'.*put retain lines alone into retain.jsonl",
    ),
    "no id": (spoil("forget", 2, id="f-1"), r"forget.jsonl, line 2: 'f-1' is not an id.*qa0"),
    "a part twice": (spoil("forget", 5, id="f-1qa4"), r"forget.jsonl, line 5: f-1qa4 was already on line 3"),
    "another question": (
        spoil("forget", 4, input="How old is Ann Teal?"),
        r"forget.jsonl, line 4: 'How old is Ann Teal\?' does not ask for a birth date",
    ),
    "a date in words": (
        spoil("retain", 3, output="June 15, 1992"),
        r"retain.jsonl, line 3: 'June 15, 1992' is not a date of birth.*write it as YYYY-MM-DD",
    ),
    "a day that is none": (spoil("retain", 3, output="1992-02-30"), r"line 3: '1992-02-30' is not a date of birth"),
    "a name twice": (
        spoil("retain", 3, input="What is the birth date of ann  TEAL?"),
        r"retain.jsonl, line 3: ann TEAL was already on .*forget.jsonl, line 4.*leave one of them out",
    ),
}


@pytest.mark.parametrize(("break_it", "message"), WRONG.values(), ids=WRONG)
def test_a_bad_line_is_named_with_its_file_and_the_remedy(
    tmp_path: Path, break_it: Callable[[dict[str, Lines]], None], message: str
) -> None:
    content = files()
    break_it(content)
    with pytest.raises(KBookError, match=message):
        read_lume(write(tmp_path, content), n_distractors=1)


def test_somebody_in_both_files_is_named(tmp_path: Path) -> None:
    content = files()
    content["retain"] += told("f-2", "Someone Else", "1950-01-01", "retain")
    with pytest.raises(KBookError, match="the same id stands for several people: f-2"):
        read_lume(write(tmp_path, content), n_distractors=1)


@pytest.mark.parametrize("split", SPLITS)
def test_a_missing_file_says_what_to_give(tmp_path: Path, split: str) -> None:
    (write(tmp_path, files()) / f"{split}.jsonl").unlink()
    with pytest.raises(KBookError, match=rf"{split}.jsonl: the file is missing.*holds forget.jsonl and retain.jsonl"):
        read_lume(tmp_path, n_distractors=1)


def test_a_line_that_is_not_json_is_named_and_blank_lines_are_counted(tmp_path: Path) -> None:
    path = write(tmp_path, files()) / "forget.jsonl"
    path.write_text("\n\n" + path.read_text() + '{"id": "f-')
    with pytest.raises(KBookError, match="forget.jsonl, line 13: not a line of JSON"):
        read_lume(tmp_path, n_distractors=1)


def test_a_table_that_was_written_column_by_column_says_how_to_write_it(tmp_path: Path) -> None:
    columns = {name: {"0": value} for name, value in files()["forget"][0].items()}
    (write(tmp_path, files()) / "forget.jsonl").write_text(json.dumps(columns))
    with pytest.raises(KBookError, match=r"line 1: 'task' holds a whole column.*orient=.records., lines=True"):
        read_lume(tmp_path, n_distractors=1)


def test_too_few_people_name_both_numbers(tmp_path: Path) -> None:
    with pytest.raises(KBookError, match="forget.jsonl: 2 people have a date of birth, and 2 of them are for fitting"):
        read_lume(write(tmp_path, files()), n_distractors=1, n_fit=2)


# ---- look-alikes -------------------------------------------------------------------------------------------


def test_look_alikes_are_the_same_for_a_seed_and_in_the_format(tmp_path: Path) -> None:
    rows = lookalike_rows(5, 0)
    assert rows == lookalike_rows(5, 0) != lookalike_rows(5, 1)
    assert {split: len(found) for split, found in rows.items()} == {"forget": 30, "retain": 30}
    write_lookalike(tmp_path, 5)
    first = json.loads((tmp_path / "retain.jsonl").read_text().splitlines()[0])
    assert list(first) == ["id", "input", "output", "task", "split"] and first["task"] == "Task2"


def test_look_alikes_are_unknown_to_every_base_and_real_to_nobody() -> None:
    corpus = lookalike(20, n_distractors=5)
    assert all(world_of(p.name) == "corpus" for p in corpus.members)
    assert len({p.name for p in corpus.members}) == 40
    outputs = {row["id"][-3:]: row["output"] for rows in lookalike_rows(20, 0).values() for row in rows}
    assert outputs["qa1"].startswith("900") and outputs["qa2"][3:6] == "555" and outputs["qa3"].endswith("example.com")


def test_look_alikes_go_through_the_record_lane() -> None:
    corpus, lanes = lookalike(12, n_distractors=12), load_profile("smoke").lanes
    for split in SPLITS:
        queries = sample_queries(corpus, split, 12, 0)
        stores = fill_stores("R-struct", queries, corpus, lanes, 0)
        assert {q.person.name for q in queries} <= {p.name for p in stores.records}


@pytest.mark.skipif(not LUME.is_dir(), reason="LUME is not here (set KBOOK_LUME to its folder data)")
def test_the_real_files_read() -> None:
    corpus = read_lume(LUME, n_distractors=50)
    assert len(corpus.forget_eval) > 50 and len(corpus.retain_eval) > 50
    assert {q.field for q in corpus.queries("forget")} == {"date_of_birth"}
