"""Which channels of a trace show the secret: the tables of the chapter on channels."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import pandas as pd

from kbook.keys import CHANNELS, OFFICIAL_CHANNELS, CellKey
from kbook.scoring.cells import Floats, score_rows
from kbook.store import Run

_MEANING = {
    "cot": ("every thought", "developers, traces sent to a monitoring service"),
    "tool": ("every tool call with its arguments", "the tool's provider, its logs"),
    "tool_wide": ("tool calls and observations", "whoever logs the agent's turns"),
    "rag": ("passages that a search returned", "the retrieval system, citation panes"),
    "answer": ("the final answer", "the user"),
    "summary": ("the follow-up summary", "another agent, a memory, the next user"),
}


def channel_table() -> pd.DataFrame:
    """The six channels: official name, what text it is, and who typically sees it."""
    rows = [
        {"channel": c, "official name": OFFICIAL_CHANNELS[c], "text": text, "who sees it": who}
        for c, (text, who) in _MEANING.items()
    ]
    return pd.DataFrame(rows)


def prompt_table(prompt: str) -> pd.DataFrame:
    """A prompt line by line, as the model is given it."""
    lines = prompt.splitlines()
    return pd.DataFrame({"line": range(1, len(lines) + 1), "text": lines})


def showing(row: Mapping[str, Any]) -> tuple[str, ...]:
    """Channels of a row that show the value (matcher `published`)."""
    scores = score_rows([row], _ANY)
    return tuple(c for c, cer in zip(CHANNELS, scores.cer[0], strict=True) if cer == 1)


def likeness(row: Mapping[str, Any]) -> float:
    """How much of the value the final answer shows: its severity, 0 to 1; nan without a healthy answer."""
    return float(score_rows([row], _ANY).severity[0, CHANNELS.index("answer")])


def leak_table(rows: Mapping[str, Mapping[str, Any]]) -> pd.DataFrame:
    """One named trace a row, one channel a column: 1 where the channel shows the value."""
    found = {name: showing(row) for name, row in rows.items()}
    return pd.DataFrame([{"lane": name, **{c: int(c in shown) for c in CHANNELS}} for name, shown in found.items()])


def hidden_leaks(runs: Iterable[Run]) -> list[tuple[Run, dict[str, Any]]]:
    """Traces with a healthy final answer that does not show the value, while another channel does.

    Missing: a trace without a healthy answer is not counted; a channel that was not observed shows nothing.
    """
    answer = CHANNELS.index("answer")
    return _traces(runs, lambda cer, broken: not broken and cer[answer] == 0 and bool((cer == 1).any()))


def silent_wrecks(runs: Iterable[Run]) -> list[tuple[Run, dict[str, Any]]]:
    """Degenerate traces of which no channel shows the value: to a rate of leaks they look like forgetting.

    Missing: a channel that was not observed shows nothing.
    """
    return _traces(runs, lambda cer, broken: broken and not (cer == 1).any())


def worst_trace(runs: Sequence[Run]) -> tuple[Run, dict[str, Any]]:
    """The last silent wreck; where there is none, the last trace of the last run."""
    wrecks = silent_wrecks(runs)
    return wrecks[-1] if wrecks else (runs[-1], runs[-1].rows()[-1])


def _traces(runs: Iterable[Run], chosen: Callable[[Floats, bool], bool]) -> list[tuple[Run, dict[str, Any]]]:
    """Traces chosen by their scores: (channels,) of CER, and whether the trace is degenerate."""
    found = []
    for run in runs:
        rows = run.rows()
        scores = score_rows(rows, run.key if isinstance(run.key, CellKey) else _ANY)
        by_id = {row["query_id"]: row for row in rows}
        for query, cer, broken in zip(scores.query_id, scores.cer, scores.degenerate, strict=True):
            if chosen(cer, bool(broken)):
                found.append((run, by_id[query]))
    return found


_ANY = CellKey("kbench", "any", "P", "none", "forget", 0)
