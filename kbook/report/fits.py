"""What a method's fit says of itself: that it found nothing, changed nothing, or did not reach its end.

A cell of such a method is measured like any other. But one that did nothing equals the untreated agent, and one whose
training broke off is not the method that its paper describes: whoever reads a verdict must be told.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from kbook.keys import LANES, CellKey
from kbook.report.artifacts import RunLike

NO_OP, STOPPED = "no-op", "stopped"
NOTHING_TO_SAY = "every fit found something and reached its end"


@dataclass(frozen=True)
class Note:
    """One thing to know about a method on one lane of one base.

    Args:
        base, lane, method: what it is about; an edited model answers in lane P.
        kind: `NO_OP` (nothing was changed) or `STOPPED` (training ended early, with the last good weights).
        text: the fit's own words.
    """

    base: str
    lane: str
    method: str
    kind: str
    text: str


def notes_of(runs: Iterable[RunLike]) -> list[Note]:
    """The notes of cells (hooks that were fitted for them) and of edited models, each once.

    A method counts as a no-op on a lane only if no seed of it is anything else.
    """
    fitted = [(run.key, told) for run in runs if (told := _told(run))]
    faults = [(key, list(_faults(told))) for key, told in fitted]
    acting = {_fit(key) for key, found in faults if NO_OP not in [kind for kind, _ in found]}
    notes = [
        Note(*_place(key), kind, text)
        for key, found in faults
        for kind, text in found
        if kind != NO_OP or _fit(key) not in acting
    ]
    return list(dict.fromkeys(notes))


def kinds_of(notes: Iterable[Note]) -> dict[tuple[str, str, str], str]:
    """(base, lane, method) → the kind of its note; of several, that nothing was changed."""
    ordered = sorted(notes, key=lambda note: note.kind == NO_OP)
    return {(note.base, note.lane, note.method): note.kind for note in ordered}


def note_frame(notes: Sequence[Note]) -> pd.DataFrame:
    """One row a method and note, with its lanes and bases; one row that says so where there is none."""
    columns = ["method", "bases", "lanes", "note", "in the fit's own words"]
    lanes: dict[tuple[str, str, str, str], set[str]] = {}
    for note in notes:
        lanes.setdefault((note.base, note.method, note.kind, note.text), set()).add(note.lane)
    bases: dict[tuple[str, str, str, str], list[str]] = {}
    for (base, method, kind, text), where in lanes.items():
        bases.setdefault((method, ", ".join(sorted(where, key=LANES.index)), kind, text), []).append(base)
    rows = [(method, ", ".join(names), where, kind, text) for (method, where, kind, text), names in bases.items()]
    return pd.DataFrame(rows or [("–", "–", "–", "–", NOTHING_TO_SAY)], columns=columns)


def _place(key: Any) -> tuple[str, str, str]:
    return (key.base, key.lane, key.method) if isinstance(key, CellKey) else (key.base, "P", key.recipe)


def _fit(key: Any) -> tuple[str, str, str, bool]:
    """What was fitted: the hooks of a cell, or a model; some methods have both."""
    return *_place(key), isinstance(key, CellKey)


def _told(run: RunLike) -> Any:
    """What a run's manifest tells of a fit; nothing for a cell that only asks an edited model."""
    extra = run.manifest.extra
    return extra.get("fit") if isinstance(run.key, CellKey) else extra


def _faults(told: Any) -> Iterator[tuple[str, str]]:
    """Kinds and words of what went wrong, found among JSON-able facts at any depth."""
    if isinstance(told, Mapping):
        yield from _faults_of(told)
    for inner in told.values() if isinstance(told, Mapping) else told if isinstance(told, list | tuple) else ():
        yield from _faults(inner)


def _faults_of(facts: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    stopped, loss = facts.get("stopped"), facts.get("nll")
    if facts.get("no_op"):
        yield NO_OP, "nothing to erase was found"
    if stopped:
        yield (STOPPED if facts.get("steps") else NO_OP), str(stopped)
    elif isinstance(loss, Mapping) and loss.get("before") == loss.get("after"):
        yield NO_OP, "the loss on its fitting documents is what it was"
