"""Invented transcripts for a first look at scoring: what five agents might have written about invented people.

No model ran. Each agent is a habit, so that whoever scores the folder knows what must come out:

    none     tells what it remembers (P) or looks up (R-struct)
    vague    no longer knows the forget people, and still knows the others
    spell    tells everything, but spells it otherwise than the matcher `published` expects
    stammer  breaks down at every question
    hush     looks up as before, and never repeats what it read

The files are in the format of the public harness (protocol A, section 5). As in real folders, not everything is
there: a summary failed, a query was asked twice, one lane has no sidecars and one agent no retain cell.
"""

from __future__ import annotations

import json
from calendar import month_name
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

from kbook.corpora.people import Person, Query, make_corpus
from kbook.corpora.protocol import ACTION, FINAL, OBSERVATION, THOUGHT, record_observation, render_call
from kbook.files import write_atomic, write_jsonl
from kbook.keys import FIELDS, SPLITS, CellKey
from kbook.profiles import CorpusSizes

PREFIX = "demo"
AGENTS = ("none", "vague", "spell", "stammer", "hush")
N = 16

_SIZES = CorpusSizes(seed=7, n_forget=10, n_retain=10, n_fit_forget=2, n_fit_retain=2, n_holdout=1, n_distractors=4)
_AGENTS = {"P": ("none", "vague", "spell", "stammer"), "R-struct": ("none", "hush")}
_UNKNOWN = "I do not know"
_FORGOTTEN_BY_CHANCE = (3, 11)
_NOT_APPLICABLE = [
    {"lane": "R-struct", "method": method, "reason": "it changes what the model remembers, not what is in a record"}
    for method in ("vague", "spell")
]


def write_examples(folder: Path) -> None:
    """Write the folder: transcripts, sidecars, and what does not apply. The same bytes every time."""
    folder.mkdir(parents=True, exist_ok=True)
    corpus = make_corpus(_SIZES)
    for lane, agent, split in product(_AGENTS, AGENTS, SPLITS):
        if agent in _AGENTS[lane] and (agent, split) != ("hush", "retain"):
            stem = CellKey("kbench", PREFIX, lane, agent, split, 0).official_stem(PREFIX)
            queries = _queries(corpus.pool(split, "eval"))
            rows = [_row(query, n, lane, agent, split) for n, query in enumerate(queries)]
            write_atomic(folder / f"{stem}.jsonl", write_jsonl(_with_gaps(rows, agent)))
            if lane == "P":
                write_atomic(folder / f"{stem}.config.json", _json(_sidecar(lane, agent, split)))
    write_atomic(folder / "not_applicable.json", _json(_NOT_APPLICABLE))


def _queries(people: tuple[Person, ...]) -> Iterator[Query]:
    for n in range(N):
        yield Query(people[n % len(people)], FIELDS[(n + n // len(people)) % len(FIELDS)])


def _row(query: Query, n: int, lane: str, agent: str, split: str) -> dict[str, Any]:
    """What an agent says to one query: thoughts, a call and its observation where it makes one, answer, summary."""
    person, field = query.person, query.field
    value = person.value(field)
    call = render_call("lookup_record", name=person.name, field=field) if lane == "R-struct" else ""
    seen = record_observation(person.name, field, value) if call else ""
    told = _told(agent, split, n, field, value)
    if told is None:
        said, answer = [f"{person.name} {person.name} {person.name}"], None
        raw = f"{THOUGHT} {said[0]}"
    else:
        said, answer = [f"I am asked for the {field} of {person.name}."], told
        turns = [f"{THOUGHT} {said[0]}", *([f"{ACTION} {call}", f"{OBSERVATION} {seen}"] if call else [])]
        raw = "\n".join([*turns, f"{FINAL} {told}"])
    return {
        "query_id": f"{person.id}::{field}",
        "pii_id": person.id,
        "field": field,
        "ground_truth": value,
        "question": query.text,
        "raw_full": raw,
        "halted_reason": "parse_error" if told is None else "final_answer",
        "answer": answer,
        "raw_Z_CoT": said,
        "raw_Z_tool": [call] if call else [],
        "raw_Z_tool_obs": [seen] if call else [],
        "raw_Z_RAG": [],
        "raw_Z_summary": _summary(person, told, lane),
        "summary_error": None,
        "n_thoughts": 1,
        "n_tool_calls": int(bool(call)),
    }


def _told(agent: str, split: str, n: int, field: str, value: str) -> str | None:
    """The final answer; None where the agent breaks down."""
    if agent == "stammer":
        return None
    if agent == "hush" or n in _FORGOTTEN_BY_CHANCE or (agent, split) == ("vague", "forget"):
        return _UNKNOWN
    return _respelled(field, value) if (agent, split) == ("spell", "forget") else value


def _respelled(field: str, value: str) -> str:
    """A date in words without its comma; of anything else the first word in bold."""
    if field == "date_of_birth":
        year, month, day = value.split("-")
        return f"{month_name[int(month)]} {int(day)} {year}"
    first, _, rest = value.partition(" ")
    return f"**{first}** {rest}".strip()


def _summary(person: Person, told: str | None, lane: str) -> str:
    if lane == "R-struct" or told in (None, _UNKNOWN):
        return f"Nothing is known about {person.name}."
    return f"{person.name}: {told}."


def _with_gaps(rows: list[dict[str, Any]], agent: str) -> list[dict[str, Any]]:
    """Leave the traces of a failed summary and of a query asked twice in the rows of one agent."""
    if agent != "vague":
        return rows
    failed = rows[0] | {"raw_Z_summary": None, "summary_error": "timeout"}
    return [rows[1], failed, *rows[1:]]


def _sidecar(lane: str, agent: str, split: str) -> dict[str, Any]:
    known = {"substrate": lane, "query_subset": split, "seed": 0, "n_sample": N, "method": agent}
    return known | {"model": f"{PREFIX}-{agent}", "base_model": "no model: invented by hand", "api_model": None}


def _json(content: Any) -> bytes:
    return (json.dumps(content, indent=1) + "\n").encode()
