"""From the raw text of a trace to its answer: turns by their labels, and the health of what stands in the answer slot.

Two dialects are read. In ReAct a turn begins with a label at the start of a line; the first answer counts. In the
two-stage dialect the text begins with `[stage1]` and one JSON object, and may go on after a line `[stage2]`:

    [stage1] {"decision": "tool_call", "final_answer": "", "tool_name": "lookup_record", "tool_args": "name=…"}
    [stage2]
    {"final_answer": "154 Oak Street"}

A stage that is no JSON is read as prose, and so is one that begins like JSON and is none; a note says so.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

from kbook.corpora.protocol import ACTION, FINAL, OBSERVATION, THOUGHT

SHORT_FINAL = "Answer:"
REPLY = ""

_TURNS, _ANSWERS = (THOUGHT, ACTION), (FINAL, SHORT_FINAL)
_SPELLED = (label.replace(" ", r"[ \t]+").replace(":", r"[ \t]*:") for label in (*_TURNS, OBSERVATION, *_ANSWERS))
_LABELS = "|".join(_SPELLED)
_LABEL = re.compile(rf"^[ \t]*({_LABELS})[ \t]*", re.M)
_STAGE_1 = re.compile(r"\s*\[stage1\]")
_STAGE_2 = re.compile(r"^[ \t]*\[stage2\][ \t]*$", re.M)


class Turn(NamedTuple):
    """One turn of a raw text: its label as the protocol spells it, or `REPLY` for text before the first label."""

    label: str
    text: str


@dataclass(frozen=True)
class FinalAnswer:
    """The answer of one trace and whether the agent ended in good health.

    Args:
        text: what stands in the answer slot, or None when the trace has none.
        reason: "ok", or in words why the trace is degenerate.
        later_turns: labels of the turns after the answer, own observations aside.
        acted: whether the raw text itself holds a thought or a tool call.
        notes: keys of `transcripts.NOTES`.
    """

    text: str | None
    reason: str
    later_turns: tuple[str, ...] = ()
    acted: bool = False
    notes: tuple[str, ...] = ()

    @property
    def healthy(self) -> bool:
        """Whether the trace ended with a usable final answer."""
        return self.reason == "ok"


def split_turns(raw: str) -> list[Turn]:
    """Split a raw text at the labels that begin a line, whatever blanks they are written with.

    Shape: the text before the first label comes first, as a `REPLY` that may be empty.
    """
    found = list(_LABEL.finditer(raw))
    ends = [*(match.start() for match in found[1:]), len(raw)]
    turns = [Turn(_name(match[1]), raw[match.end() : end]) for match, end in zip(found, ends, strict=False)]
    return [Turn(REPLY, raw[: found[0].start()] if found else raw), *turns]


def final_answer(raw: str, halted: str) -> FinalAnswer:
    """Find the answer in the raw text of a trace and judge the trace's health.

    In ReAct the first `Final Answer:` or `Answer:` that begins a line counts, up to the next label that begins a
    line. In the two-stage dialect the answer of the stage that decided counts. An empty payload, one that is
    itself a turn of the protocol, a trace without an answer and one that halted otherwise are unhealthy; the
    payload is returned all the same.

    Missing: a raw text without an answer gives text None.
    Source: protocol A §2, health of a trace.
    """
    return _staged_answer(raw, halted) if _STAGE_1.match(raw) else _react_answer(raw, halted)


def _react_answer(raw: str, halted: str) -> FinalAnswer:
    turns = split_turns(raw)
    acted = any(turn.label in _TURNS for turn in turns)
    first = next((i for i, turn in enumerate(turns) if turn.label in _ANSWERS), None)
    if first is None:
        return FinalAnswer(None, "no final answer" if halted == "final_answer" else f"halted: {halted}", acted=acted)
    payload = turns[first].text.strip()
    later = tuple(turn.label for turn in turns[first + 1 :] if turn.label != OBSERVATION)
    return FinalAnswer(payload or None, _health(payload, halted), later, acted)


@lru_cache(maxsize=1024)
def _name(label: str) -> str:
    """A label as the protocol spells it, whatever blanks it was written with."""
    return " ".join(label.replace(":", " ").split()) + ":"


def _health(payload: str, halted: str) -> str:
    if not payload:
        return "empty answer"
    if _LABEL.match(payload):
        return "nested protocol turn"
    return "ok" if halted == "final_answer" else f"halted: {halted}"


def _staged_answer(raw: str, halted: str) -> FinalAnswer:
    first, second = _stages(raw)
    stage, notes = _read_stage(first)
    if stage is None:
        if second is not None and not notes:
            return FinalAnswer(None, "second stage without a first")
        return _prose(first, halted, notes)
    decision, answer, *call = (_word(stage, key) for key in ("decision", "final_answer", "tool_name", "tool_args"))
    if decision == "final_answer":
        reason = "final answer with a tool call" if any(call) and answer else _health(answer, halted)
        return FinalAnswer(answer or None, reason, acted=any(call))
    if decision != "tool_call":
        return FinalAnswer(answer or None, "unknown decision")
    if answer or not all(call):
        return FinalAnswer(answer or None, "malformed tool call", acted=True)
    return _second_answer(second, halted)


def _stages(raw: str) -> tuple[str, str | None]:
    """The text of the first stage, and of the second where there is one."""
    body = _STAGE_1.sub("", raw, count=1)
    mark = _STAGE_2.search(body)
    return (body[: mark.start()].strip(), body[mark.end() :].strip()) if mark else (body.strip(), None)


def _second_answer(text: str | None, halted: str) -> FinalAnswer:
    if text is None:
        return FinalAnswer(None, "no second stage", acted=True)
    stage, notes = _read_stage(text)
    answer = _word(stage, "final_answer") if stage else ""
    if not answer:
        return _prose(text, halted, notes, acted=True)
    return FinalAnswer(answer, _health(answer, halted), acted=True)


def _read_stage(text: str) -> tuple[dict[str, Any] | None, tuple[str, ...]]:
    """The JSON object at the start of a stage, text after it left aside; a note where it only looks like one."""
    if not text.startswith("{"):
        return None, ()
    try:
        stage, _ = json.JSONDecoder().raw_decode(text)
    except (ValueError, RecursionError):
        return None, ("malformed_json",)
    return stage, ()


def _prose(text: str, halted: str, notes: tuple[str, ...], acted: bool = False) -> FinalAnswer:
    """A stage that is no JSON is the answer, with or without `Answer:` before it."""
    label = _LABEL.match(text)
    plain = label is None or _name(label[1]) == SHORT_FINAL
    reason = "nested protocol turn" if text and not plain else _health(text[label.end() :] if label else text, halted)
    return FinalAnswer(text or None, reason, acted=acted, notes=notes or (("two_stage_prose",) if text else ()))


def _word(stage: dict[str, Any], key: str) -> str:
    """A field of a stage as text, "" where it is absent or null."""
    value = stage.get(key)
    if value is None or isinstance(value, str):
        return (value or "").strip()
    try:
        return json.dumps(value, ensure_ascii=False)
    except (ValueError, RecursionError):
        return "?"
