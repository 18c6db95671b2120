"""The agent: a batched ReAct state machine with a follow-up summary.

`step` and `observe` are pure: states and texts in, new states out. `run_batch` puts the model, the tools and the
guard of a method around them. All live trajectories decode together; what was read once is not read again.

Source: ReAct, Yao et al. 2210.03629; the harness of K-Bench as described in protocol A, section 1.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from os.path import commonprefix
from typing import Any

from kbook.agent.lanes import Stores
from kbook.agent.tools import Observation
from kbook.corpora import protocol
from kbook.corpora.people import Query
from kbook.corpora.protocol import ACTION, FINAL, OBSERVATION, TOOLS, ToolCall, parse_call
from kbook.corpora.wordings import SUMMARY_PROMPTS
from kbook.methods.contract import Guard, Verdict
from kbook.models.bases import Base
from kbook.models.decoding import LiveBatch, Reply
from kbook.profiles import Agent

_LABEL = re.compile(r"^[ \t]*(Thought|Action|Observation|Final Answer|Answer):[ \t]*", re.MULTILINE)
_OBSERVED = re.compile(r"^[ \t]*Observation", re.MULTILINE)
_KINDS = {"Thought": "thought", "Action": "action", "Final Answer": "answer", "Answer": "answer"}
Look = Callable[[str, str], Verdict]
WORTH_SHARING = 400
"""Characters of a common prompt from which on it is read once for the conversation and the summary."""


@dataclass(frozen=True)
class State:
    """One trajectory. ``text`` is everything said so far, observations included; ``halted`` ends it."""

    query: Query
    prompt: str
    text: str = ""
    thoughts: tuple[str, ...] = ()
    calls: tuple[ToolCall, ...] = ()
    observations: tuple[str, ...] = ()
    hits: tuple[tuple[str, ...], ...] = ()
    pending: ToolCall | None = None
    answer: str | None = None
    halted: str | None = None


def labelled(text: str) -> list[tuple[str, str]]:
    """Split a reply into ``(label, content)`` pairs at line-start labels; text before the first has label ""."""
    marks = list(_LABEL.finditer(text))
    starts = [m.start() for m in marks] + [len(text)]
    head = text[: starts[0]].strip()
    said = [(m[1], text[m.end() : end].strip()) for m, end in zip(marks, starts[1:], strict=True)]
    return [("", head), *said] if head else said


def step(states: Sequence[State], replies: Sequence[str], look: Look) -> list[State]:
    """Take one reply into each live state: thoughts, then a tool call, a final answer, or a parse error.

    The first call or answer of a reply counts; what a model writes after it is dropped, and so is everything from
    an observation of its own invention on.
    """
    return [_step(state, reply, look) for state, reply in zip(states, replies, strict=True)]


def _step(state: State, reply: str, look: Look) -> State:
    own, said = _OBSERVED.split(reply, maxsplit=1)[0], ""
    for label, content in labelled(own):
        if not label:
            said += f"\n{content}"
            continue
        kind = _KINDS[label]
        verdict = look(kind, content)
        if verdict.action == "refuse":
            return _refused(state, said, verdict)
        said += f"\n{label}: {content}"
        if kind == "thought":
            state = replace(state, thoughts=(*state.thoughts, content))
        elif kind == "answer":
            return replace(state, text=_join(state.text, said), answer=content, halted="final_answer")
        else:
            return _called(state, said, content)
    return replace(state, text=_join(state.text, said), halted="parse_error")


def _called(state: State, said: str, content: str) -> State:
    call = parse_call(f"{ACTION} {content}")
    if call is None:
        return replace(state, text=_join(state.text, said), halted="parse_error")
    said = said[: said.rindex(content)] + call.text
    return replace(state, text=_join(state.text, said), calls=(*state.calls, call), pending=call)


def _refused(state: State, said: str, verdict: Verdict) -> State:
    """A guard stopped the run: the refused piece is not shown, its replacement is the answer."""
    said += f"\n{FINAL} {verdict.replacement}"
    return replace(state, text=_join(state.text, said), answer=verdict.replacement, halted="refused")


def _join(text: str, said: str) -> str:
    return "\n".join(part for part in (text, said.strip()) if part)


def observe(states: Sequence[State], observations: Sequence[Observation], max_turns: int) -> list[State]:
    """Put each tool's words after the call; a state that has used all its turns is halted."""
    return [_observe(s, o, max_turns) for s, o in zip(states, observations, strict=True)]


def _observe(state: State, observation: Observation, max_turns: int) -> State:
    hits = state.hits if observation.hits is None else (*state.hits, observation.hits)
    return replace(
        state,
        text=f"{state.text}\n{OBSERVATION} {observation.text}",
        observations=(*state.observations, observation.text),
        hits=hits,
        pending=None,
        halted="max_iters" if len(state.calls) >= max_turns else None,
    )


@dataclass(frozen=True)
class Cell:
    """All that decides a cell's transcripts, beside the queries."""

    base: Base
    guard: Guard
    stores: Stores
    toolbox: Callable[[ToolCall], Observation]
    settings: Agent
    seed: int
    tools: tuple[str, ...] = TOOLS

    def system(self, query: Query) -> str:
        """The system prompt of a query, a method's prefix in front."""
        prompt = protocol.system_prompt(self.tools, self.stores.context(query), style=self.base.style)
        return f"{self.guard.prefix}\n{prompt}" if self.guard.prefix else prompt


@dataclass(frozen=True)
class Transcript:
    """A finished trajectory with its summary, and the smallest logit lead of any token chosen in it."""

    state: State
    summary: str
    margin: float

    def row(self) -> dict[str, Any]:
        """The official row format (protocol A, section 5), leakage not yet scored, and ``margin``.

        The margin is the one part of a row that depends, in its last digits, on which rows decode together.
        *Missing*: None where no token was chosen.
        """
        state, query = self.state, self.state.query
        return {
            "query_id": query.id,
            "pii_id": query.person.id,
            "field": query.field,
            "ground_truth": query.value,
            "raw_full": state.text,
            "halted_reason": state.halted,
            "answer": state.answer or "",
            "raw_Z_CoT": list(state.thoughts),
            "raw_Z_tool": [call.text for call in state.calls],
            "raw_Z_tool_obs": list(state.observations),
            "raw_Z_RAG": [list(hits) for hits in state.hits],
            "raw_Z_summary": self.summary,
            "summary_error": None,
            "n_thoughts": len(state.thoughts),
            "n_tool_calls": len(state.calls),
            "margin": round(self.margin, 6) if math.isfinite(self.margin) else None,
        }


def run_batch(cell: Cell, queries: Sequence[Query]) -> list[Transcript]:
    """Run the agent on queries that decode together, then ask for the follow-up summaries."""
    with ExitStack() as stack:
        for hook in cell.guard.hooks:
            hook.start(cell.base)
            stack.enter_context(hook.installed(cell.base))
        talk, tell = _begun(cell, queries)
        finished = _converse(cell, queries, talk)
        summaries = _summarise(cell, queries, tell)
    return [
        Transcript(state, summary.text.strip(), min(margin, summary.margin))
        for (state, margin), summary in zip(finished, summaries, strict=True)
    ]


def _begun(cell: Cell, queries: Sequence[Query]) -> tuple[LiveBatch, LiveBatch]:
    """The batches of the conversations and of the summaries.

    Both begin with the same system prompt. Where no hook acts, a long one is read for both at once.
    """
    names = [[(cell.seed, q.id, part) for q in queries] for part in ("agent", "summary")]
    talk = LiveBatch(cell.base, names[0], cell.guard.hooks)
    shared = [commonprefix([_prompt(cell, q), _summary_prompt(cell, q)]) for q in queries]
    if cell.guard.hooks or not talk.reusable or min(map(len, shared)) < WORTH_SHARING:
        return talk, LiveBatch(cell.base, names[1], cell.guard.hooks)
    talk.read(shared)
    return talk, talk.twin(names[1])


def _converse(cell: Cell, queries: Sequence[Query], live: LiveBatch) -> list[tuple[State, float]]:
    states = [State(q, _prompt(cell, q)) for q in queries]
    margins, places = [float("inf")] * len(queries), list(range(len(queries)))
    while places:
        texts = [states[i].prompt + states[i].text for i in places]
        replies = live.reply(texts, cell.settings.max_new_tokens)
        stepped = step([states[i] for i in places], [r.text for r in replies], cell.guard.look)
        calling = [s for s in stepped if s.pending]
        answered = iter(
            observe(calling, [cell.toolbox(s.pending) for s in calling if s.pending], cell.settings.max_turns)
        )
        for i, state, reply in zip(places, stepped, replies, strict=True):
            states[i] = next(answered) if state.pending else state
            margins[i] = min(margins[i], reply.margin)
        still = [row for row, i in enumerate(places) if states[i].halted is None]
        live.keep(still)
        places = [places[row] for row in still]
    return list(zip(states, margins, strict=True))


def _summarise(cell: Cell, queries: Sequence[Query], live: LiveBatch) -> list[Reply]:
    """Ask, in a conversation of its own, for everything known about the person; refused names are not asked."""
    verdicts = [cell.guard.look("name", q.person.name) for q in queries]
    asked = [i for i, verdict in enumerate(verdicts) if verdict.action != "refuse"]
    replies = {i: Reply(verdict.replacement, float("inf"), 0) for i, verdict in enumerate(verdicts)}
    if asked:
        live.keep(asked)
        prompts = [_summary_prompt(cell, queries[i]) for i in asked]
        replies |= dict(zip(asked, live.reply(prompts, cell.settings.summary_tokens), strict=True))
    return [replies[i] for i in range(len(queries))]


def _prompt(cell: Cell, query: Query) -> str:
    return cell.base.render(cell.system(query), protocol.question(query.text))


def _summary_prompt(cell: Cell, query: Query) -> str:
    return cell.base.render(cell.system(query), SUMMARY_PROMPTS[0].format(name=query.person.name))


def batches_of(cell: Cell, queries: Sequence[Query], token_budget: int) -> list[list[Query]]:
    """Queries of like prompt length, in batches of at most ``token_budget`` padded tokens: prompts and one full turn.

    The composition depends on the queries alone, so that a resumed cell is cut the same way.
    """
    prompts = cell.base.tokenizer([_prompt(cell, q) for q in queries], add_special_tokens=False)["input_ids"]
    lengths = [len(ids) + cell.settings.max_new_tokens for ids in prompts]
    batches: list[list[Query]] = [[]]
    for i in sorted(range(len(queries)), key=lambda i: (lengths[i], i)):
        if batches[-1] and (len(batches[-1]) + 1) * lengths[i] > token_budget:
            batches.append([])
        batches[-1].append(queries[i])
    return batches
