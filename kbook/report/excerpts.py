"""Rows that leak, channel by channel: what each observer of a query would read."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kbook.keys import CHANNELS, CellKey
from kbook.scoring.cells import CellScores, leaks
from kbook.scoring.folder import Scored
from kbook.scoring.forms import Matcher
from kbook.scoring.matching import matcher
from kbook.scoring.panel import Panel, Subject, subject_of
from kbook.scoring.transcripts import Trace

PER_SUBJECT = 2
AT_MOST = 60
AROUND = 180
"""Characters that are kept before and after the first place at which a value stands."""
SEARCHED = 100_000
"""Characters of a channel in which places are looked for."""

_ANSWER = CHANNELS.index("answer")


@dataclass(frozen=True)
class Seen:
    """One channel of a query.

    Args:
        channel: its name.
        shows: whether the matcher finds the value; None where the channel was not observed.
        text: a part of what it says, around the value where it shows it; "" where no text was kept.
        spans: (start, end) of the places at which the value stands in `text`.
        cut: whether text was left out before and after.
    """

    channel: str
    shows: bool | None
    text: str
    spans: tuple[tuple[int, int], ...]
    cut: tuple[bool, bool]


@dataclass(frozen=True)
class Excerpt:
    """One query of one cell that leaks."""

    key: CellKey
    query: str
    field: str
    value: str
    health: str
    channels: tuple[Seen, ...]

    @property
    def hidden(self) -> bool:
        """Whether a reader of the answer alone would see nothing."""
        return not self.channels[_ANSWER].shows


def excerpts(scored: Scored, prefix: str) -> list[Excerpt]:
    """Take some leaking forget rows of every method and lane, first those whose answer does not show the leak."""
    panel, rule = scored.panels[prefix], matcher(scored.rule)
    readings = dict(zip(panel.cells, scored.readings[prefix], strict=True))
    return [_excerpt(cell, readings[cell].traces[row], row, rule) for cell, row in _chosen(panel)]


def _chosen(panel: Panel) -> list[tuple[CellScores, int]]:
    return [place for verdict in panel.verdicts for place in _of_subject(panel, verdict.subject)][:AT_MOST]


def _of_subject(panel: Panel, subject: Subject) -> list[tuple[CellScores, int]]:
    cells = [c for c in panel.cells if subject_of(c.key) == subject and c.key.split == "forget"]
    rows = [(cell.cer[row, _ANSWER] == 1, n, row) for n, cell in enumerate(cells) for row in _leaking(cell)]
    return [(cells[n], row) for _, n, row in sorted(rows)[:PER_SUBJECT]]


def _leaking(cell: CellScores) -> list[int]:
    return [int(row) for row in np.flatnonzero(leaks(cell.cer))]


def _excerpt(cell: CellScores, trace: Trace, row: int, rule: Matcher) -> Excerpt:
    return Excerpt(
        key=cell.key,
        query=trace.query_id,
        field=trace.field,
        value=trace.value or "",
        health=trace.reason,
        channels=tuple(_seen(name, cell.cer[row, i], trace, rule) for i, name in enumerate(CHANNELS)),
    )


def _seen(channel: str, cer: float, trace: Trace, rule: Matcher) -> Seen:
    said, shows = (trace.texts[channel] or "")[:SEARCHED], None if np.isnan(cer) else bool(cer == 1)
    spans = rule.spans(trace.field, trace.value, said) if shows and trace.value and said else ()
    first = spans[0] if spans else (0, 0)
    start, end = max(0, first[0] - AROUND), min(len(said), max(first[1], first[0] + AROUND) + AROUND)
    kept = tuple((max(a, start) - start, min(b, end) - start) for a, b in spans if a < end and b > start)
    return Seen(channel, shows, said[start:end], kept, (start > 0, end < len(said)))
