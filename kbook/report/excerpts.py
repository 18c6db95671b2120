"""Rows that leak, channel by channel: what each observer of a query would read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kbook.keys import CHANNELS, CellKey
from kbook.scoring.cells import CellScores, leaks
from kbook.scoring.folder import Scored
from kbook.scoring.forms import Matcher
from kbook.scoring.matching import matcher
from kbook.scoring.panel import Panel, subject_of
from kbook.scoring.transcripts import Trace, read_trace

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
    question: str
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
    sources = {source.key: source for source in scored.found.of(prefix)}
    chosen: dict[CellKey, list[int]] = {}
    for key, row in _chosen(panel):
        chosen.setdefault(key, []).append(row)
    cells = {cell.key: cell for cell in panel.cells}
    return [
        excerpt for key, places in chosen.items() for excerpt in _read(cells[key], places, sources[key].rows(), rule)
    ]


def _chosen(panel: Panel) -> Iterator[tuple[CellKey, int]]:
    found = [place for verdict in panel.verdicts for place in _of_subject(panel, verdict.subject)]
    yield from found[:AT_MOST]


def _of_subject(panel: Panel, subject: Any) -> list[tuple[CellKey, int]]:
    cells = [c for c in panel.cells if subject_of(c.key) == subject and c.key.split == "forget"]
    rows = [(cell.cer[row, _ANSWER] == 1, n, row) for n, cell in enumerate(cells) for row in _leaking(cell)]
    return [(cells[n].key, row) for _, n, row in sorted(rows)[:PER_SUBJECT]]


def _leaking(cell: CellScores) -> list[int]:
    return [int(row) for row in np.flatnonzero(leaks(cell.cer))]


def _read(
    cell: CellScores, places: Sequence[int], rows: Sequence[Mapping[str, Any]], rule: Matcher
) -> Iterator[Excerpt]:
    """Find the rows again by their query, the last of each."""
    traces = {trace.query_id: (trace, row) for place, row in enumerate(rows, 1) if (trace := read_trace(row, place))}
    for place in places:
        trace, row = traces[str(cell.query_id[place])]
        question = row.get("question")
        yield Excerpt(
            key=cell.key,
            query=trace.query_id,
            question=question if isinstance(question, str) else "",
            field=trace.field,
            value=trace.value or "",
            health=trace.reason,
            channels=tuple(_seen(name, cell.cer[place, i], trace, rule) for i, name in enumerate(CHANNELS)),
        )


def _seen(channel: str, cer: float, trace: Trace, rule: Matcher) -> Seen:
    said, shows = (trace.texts[channel] or "")[:SEARCHED], None if np.isnan(cer) else bool(cer == 1)
    spans = rule.spans(trace.field, trace.value, said) if shows and trace.value and said else ()
    first = spans[0] if spans else (0, 0)
    start, end = max(0, first[0] - AROUND), min(len(said), max(first[1], first[0] + AROUND) + AROUND)
    kept = tuple((max(a, start) - start, min(b, end) - start) for a, b in spans if a < end and b > start)
    return Seen(channel, shows, said[start:end], kept, (start > 0, end < len(said)))
