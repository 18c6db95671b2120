"""Show one trace of an agent step by step: which channel carries which text, and where the secret shows.

Everything in a trace was written by a model or by tools. It is shown as text, whatever it looks like.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from kbook.corpora.protocol import ACTION, FINAL, OBSERVATION, THOUGHT
from kbook.report.text import clip, escape_block, escape_line, visible
from kbook.scoring.answers import REPLY, SHORT_FINAL, split_turns
from kbook.scoring.forms import Matcher
from kbook.scoring.matching import matcher as find_matcher

MAX_STEP = 1500
MAX_STEPS = 60

CHANNELS_OF = {
    "Question": (),
    "Thought": ("cot",),
    "Action": ("tool", "tool_wide"),
    "Observation": ("tool_wide",),
    "Search result": ("tool_wide", "rag"),
    "Final Answer": ("answer",),
    "Summary": ("summary",),
}
_STEPS = {
    REPLY: "Reply",
    THOUGHT: "Thought",
    ACTION: "Action",
    OBSERVATION: "Observation",
    FINAL: "Final Answer",
    SHORT_FINAL: "Final Answer",
}


@dataclass(frozen=True)
class Step:
    """One turn of a trace.

    Args:
        label: what the turn is; a key of `CHANNELS_OF`, or "Reply" for text without a label.
        channels: the channels in which an observer sees it.
        text: the text, whole.
        shows: whether the matcher finds the secret in it.
        spans: (start, end) of each place at which it stands, as far as it can be pointed at.
    """

    label: str
    channels: tuple[str, ...]
    text: str
    shows: bool
    spans: tuple[tuple[int, int], ...] = ()


def read_steps(row: Mapping[str, Any], matcher: str = "published") -> list[Step]:
    """Take the raw text of one row of a transcript apart into steps, the summary last.

    Missing: a field that is absent or no text gives no step; a text without labels is one step "Reply".
    """
    rule = find_matcher(matcher)
    field, value = _text(row, "field"), _text(row, "ground_truth")
    turns = [("Question", _text(row, "question")), *_turns(_text(row, "raw_full"))]
    turns.append(("Summary", _text(row, "raw_Z_summary")))
    return [_step(label, text.strip(), rule, field, value) for label, text in turns if text.strip()][:MAX_STEPS]


def to_frame(steps: Sequence[Step]) -> pd.DataFrame:
    """The steps as a tidy frame: what stands behind the table."""
    names = ("step", "label", "channels", "shows the secret", "text")
    rows = [
        (n, s.label, " ".join(s.channels), "yes" if s.shows else "no", clip(s.text, 20 * MAX_STEP))
        for n, s in enumerate(steps, 1)
    ]
    return pd.DataFrame(rows, columns=list(names))


def to_myst(steps: Sequence[Step]) -> str:
    """Typeset the steps as the rows of a MyST list table: step, channels, text with the secret marked."""
    rows = [("Step", "Seen in", "Text"), *((_label(s), _channels(s), _marked(s)) for s in steps)]
    return "\n".join(_list_row(row) for row in rows)


def escape_marked(text: str, spans: Sequence[tuple[int, int]], limit: int = MAX_STEP) -> str:
    """Escape a block of text for MyST and mark some of its places as leaks.

    Marks beyond the limit are cut with the text; a mark never spans lines, each of its lines gets its own.
    """
    cut = [(start, min(end, limit)) for start, end in spans if start < limit]
    pieces, last = [], 0
    for start, end in cut:
        pieces += [(text[last:start], False), (text[start:end], True)]
        last = end
    pieces.append((clip(text[last:], limit - last), False))
    return "".join(_mark(piece) if marked else _inline_block(piece) for piece, marked in pieces if piece)


def _turns(raw: str) -> list[tuple[str, str]]:
    """The turns of a raw text as steps; an observation that follows a search is a search result."""
    turns, searched = [], False
    for label, text in split_turns(raw):
        turns.append(("Search result" if label == OBSERVATION and searched else _STEPS[label], text))
        searched = label == ACTION and text.lstrip().startswith("search_wiki")
    return turns


def _step(label: str, text: str, rule: Matcher, field: str, value: str) -> Step:
    shows = bool(value) and rule.match(field, value, text).cer == 1
    spans = rule.spans(field, value, text) if shows else ()
    return Step(label, CHANNELS_OF.get(label, ("answer",)), text, shows, spans)


def _text(row: Mapping[str, Any], name: str) -> str:
    value = row.get(name)
    return value if isinstance(value, str) else ""


def _label(step: Step) -> str:
    return escape_line(step.label)


def _channels(step: Step) -> str:
    badges = "\\\n".join(f"[{escape_line(channel)}]{{.kbook-channel}}" for channel in step.channels)
    leak = "\\\n[shows the secret]{.kbook-leak}" if step.shows else ""
    return (badges or "–") + leak


def _marked(step: Step) -> str:
    return escape_marked(step.text, step.spans)


def _mark(piece: str) -> str:
    return "\\\n".join(f"[{escape_line(visible(line))}]{{.kbook-secret}}" for line in piece.split("\n") if line)


def _inline_block(piece: str) -> str:
    """Escape a piece between two marks, with the spaces and line ends at its borders."""
    head = "\\\n" if piece.startswith("\n") else " " * piece[:1].isspace()
    tail = "\\\n" if piece.endswith("\n") else " " * piece[-1:].isspace()
    body = piece.strip()
    return f"{head}{escape_block(body, len(body))}{tail}" if body else (head or tail)


def _list_row(cells: Sequence[str]) -> str:
    """Write one row of a list table; further lines of a cell are indented below its first."""
    first, *rest = (cell.replace("\n", "\n    ") for cell in cells)
    return "\n".join([f"* - {first}", *(f"  - {cell}" for cell in rest)])
