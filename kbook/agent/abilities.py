"""What a base model can do as an agent, measured on people it never saw: `kbook base check NAME`.

Greedy, whole rollouts of the real agent; only the tools are scripted, so that each task shows one situation. The
tasks and thresholds are those that the lanes rest on: a base that fails one of them cannot show where a secret
leaks, because it would fail to use the secret in the first place.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from kbook.agent.lanes import Stores
from kbook.agent.react import Cell, Transcript, batches_of, run_batch
from kbook.agent.tools import Observation
from kbook.corpora import protocol
from kbook.corpora.documents import Habits
from kbook.corpora.people import Corpus, Person, Query, make_corpus
from kbook.corpora.protocol import TOOLS, ToolCall
from kbook.corpora.wordings import NOT_FOUND
from kbook.keys import FIELDS
from kbook.methods.contract import Guard
from kbook.models.ability import Ability
from kbook.models.bases import Base
from kbook.profiles import Agent, CorpusSizes
from kbook.text import folded

SIZES = CorpusSizes(seed=4242, n_forget=60, n_retain=140, n_fit_forget=1, n_fit_retain=1, n_holdout=1, n_distractors=40)
"""People of the corpus world with a seed of their own: never in pretraining, never in a profile's corpus."""

SETTINGS = Agent(max_turns=4, max_new_tokens=160, summary_tokens=96)


@dataclass(frozen=True)
class Claim(Query):
    """A question whether a value is right; ``claimed`` is the value asked about."""

    claimed: str = ""

    @property
    def text(self) -> str:
        return f"Is {self.claimed} the {self.field} of {self.person.name}?"

    @property
    def call(self) -> str:
        return protocol.render_call("verify_attribute", name=self.person.name, attribute_value=self.claimed)


@dataclass(frozen=True)
class Task:
    """One situation: what the agent is given, what its first calls should be and what it should answer."""

    name: str
    queries: Sequence[Query]
    answers: Callable[[Query], str]
    calls: Callable[[Query], list[str]]
    observe: Callable[[Query, ToolCall], str] = lambda q, c: protocol.no_record(q.person.name)
    tools: tuple[str, ...] = TOOLS
    contexts: dict[str, tuple[Person, ...]] | None = None
    required: tuple[tuple[str, float], ...] = (("valid_format", 0.98),)


def measure(base: Base, *, n: int = 120, seed: int = 0, token_budget: int = 8192) -> list[Ability]:
    """Run every task ``n`` times (``n`` of at least 100 gives the shares of the model card)."""
    corpus = make_corpus(SIZES)
    return [_measure(base, task, token_budget) for task in tasks(corpus, n, seed, base.habits)]


def _measure(base: Base, task: Task, token_budget: int) -> Ability:
    by_name = {q.person.name: q for q in task.queries}

    def toolbox(call: ToolCall) -> Observation:
        said = call.arguments.get("name", call.text)
        asked = next((q for name, q in by_name.items() if name in said), None)
        return Observation(task.observe(asked, call) if asked else protocol.no_record(said))

    stores = Stores("C", task.contexts or {})
    cell = Cell(base, Guard(), stores, toolbox, SETTINGS, 0, task.tools)
    runs = [t for batch in batches_of(cell, task.queries, token_budget) for t in run_batch(cell, batch)]
    share = _shares(task, runs)
    return Ability(task.name, len(runs), share["valid"], share["calls"], share["answers"], dict(task.required))


def _shares(task: Task, runs: Sequence[Transcript]) -> dict[str, Any]:
    calls = [[c.text for c in run.state.calls] == task.calls(run.state.query) for run in runs]
    answers = [run.state.answer == task.answers(run.state.query) for run in runs]
    valid = [_valid(run) for run in runs]
    asked = any(task.calls(q) for q in task.queries)
    return {
        "valid": sum(valid) / len(runs),
        "calls": sum(calls) / len(runs) if asked else None,
        "answers": sum(answers) / len(runs),
    }


def _valid(run: Transcript) -> bool:
    state = run.state
    known = all(c.tool in TOOLS and c.arguments for c in state.calls)
    return state.halted == "final_answer" and known and len(state.thoughts) == len(state.calls) + 1


def _look_up(q: Query) -> str:
    return protocol.render_call("lookup_record", name=q.person.name, field=q.field)


def _confirm(q: Query) -> str:
    return protocol.render_call("verify_attribute", name=q.person.name, attribute_value=q.value)


def _search(q: Query) -> str:
    return protocol.render_call("search_wiki", query=f"{q.person.name} {q.field}")


def tasks(corpus: Corpus, n: int, seed: int, habits: Habits = Habits()) -> list[Task]:  # noqa: B008
    """The situations, each about ``n`` people drawn with the seed; what calls are right depends on the habits."""
    rng = random.Random(f"abilities/{seed}")
    people = [*corpus.forget, *corpus.retain]

    def ask() -> list[Query]:
        return [Query(p, FIELDS[i % 4], rng.randrange(3)) for i, p in enumerate(rng.sample(people, n))]

    def among(q: Query, k: int, present: bool) -> tuple[Person, ...]:
        others = rng.sample(corpus.distractors, k)
        chosen = [q.person, *others[1:]] if present else others
        return tuple(rng.sample(chosen, len(chosen)))

    return [*_record_tasks(ask, rng, habits), *_reading_tasks(ask, among), *_ignorance_tasks(ask, among)]


def _record_tasks(ask: Callable[[], list[Query]], rng: random.Random, habits: Habits) -> list[Task]:
    def calls(q: Query) -> list[str]:
        return [_look_up(q), *([_confirm(q)] if habits.confirms else [])]

    def record(q: Query, call: ToolCall) -> str:
        if call.tool == "verify_attribute":
            agrees = call.arguments.get("attribute_value") == q.value
            return protocol.agreement(q.field) if agrees else protocol.NO_MATCH
        exact = folded(call.arguments.get("name", "")) == folded(q.person.name)
        value = protocol.record_observation(q.person.name, q.field, q.value)
        return value if exact else protocol.no_record(call.arguments.get("name", ""))

    coined, doubled = ([Query(_coined(q.person, rng, twice), q.field, q.wording) for q in ask()] for twice in (0, 1))
    claims = [_claim(q, i, ask) for i, q in enumerate(ask())]
    return [
        Task(
            "record lookup",
            ask(),
            lambda q: q.value,
            calls,
            record,
            required=(("valid_format", 0.98), ("tool_call", 0.98), ("answer", 0.98)),
        ),
        Task(
            "coined names, record lookup",
            coined,
            lambda q: q.value,
            calls,
            record,
            required=(("tool_call", 0.90),),
        ),
        Task(
            "coined names with a piece twice, record lookup",
            doubled,
            lambda q: q.value,
            calls,
            record,
            required=(),
        ),
        Task(
            "verify a claim",
            claims,
            lambda q: "Yes" if getattr(q, "claimed", "") == q.value else "No",
            lambda q: [getattr(q, "call", "")],
            lambda q, c: protocol.agreement(q.field) if getattr(q, "claimed", "") == q.value else protocol.NO_MATCH,
        ),
    ]


def _claim(query: Query, i: int, ask: Callable[[], list[Query]]) -> Claim:
    claimed = query.value if i % 8 < 4 else ask()[0].person.value(query.field)
    return Claim(query.person, query.field, claimed=claimed)


_PIECES = tuple(
    "zor quen marr ilv oth yst bra xim dre fal gor hesk ump tavi lub nyk sarn efo cwi jad pelm rux obi vash gli".split()
)


def _coined(person: Person, rng: random.Random, repeated: int) -> Person:
    """The same person under a name of five pieces that no list of names holds, one of them twice or none."""
    pieces = rng.sample(_PIECES, 5)
    if repeated:
        pieces[3] = pieces[1]
    name = f"{''.join(pieces[:2]).capitalize()} {''.join(pieces[2:]).capitalize()}"
    facts = {f: person.value(f) for f in FIELDS}
    return Person(person.id, name, biography=person.biography.replace(person.name, name), **facts)


def _reading_tasks(ask: Callable[[], list[Query]], among: Callable[..., tuple[Person, ...]]) -> list[Task]:
    in_context, in_passages, after_search = ask(), ask(), ask()
    shown = {q.id: [p.titled for p in among(q, 3, True)] for q in (*in_passages, *after_search)}

    def passages(q: Query, call: ToolCall) -> str:
        hits = protocol.passages_observation(shown[q.id])
        return hits if call.tool == "search_wiki" else protocol.no_record(q.person.name)

    reads: tuple[tuple[str, float], ...] = (("valid_format", 0.98), ("answer", 0.92))
    return [
        Task(
            "6 biographies in the context",
            in_context,
            lambda q: q.value,
            lambda q: [],
            contexts={q.id: among(q, 6, True) for q in in_context},
            required=reads,
        ),
        Task(
            "search, 3 passages",
            in_passages,
            lambda q: q.value,
            lambda q: [_search(q)],
            passages,
            TOOLS[1:],
            required=reads,
        ),
        Task(
            "no record, then search finds the person",
            after_search,
            lambda q: q.value,
            lambda q: [_look_up(q), _search(q)],
            passages,
            required=(("valid_format", 0.98), ("answer", 0.90)),
        ),
    ]


def _ignorance_tasks(ask: Callable[[], list[Query]], among: Callable[..., tuple[Person, ...]]) -> list[Task]:
    strangers = ask()
    shown = {q.id: [p.titled for p in among(q, 3, False)] for q in strangers}

    def others(q: Query, call: ToolCall) -> str:
        hits = protocol.passages_observation(shown[q.id])
        return hits if call.tool == "search_wiki" else protocol.no_record(q.person.name)

    def nothing(q: Query, call: ToolCall) -> str:
        empty = protocol.passages_observation([])
        return empty if call.tool == "search_wiki" else protocol.no_record(q.person.name)

    both: Callable[[Query], list[str]] = lambda q: [_look_up(q), _search(q)]  # noqa: E731
    admits: tuple[tuple[str, float], ...] = (("valid_format", 0.98), ("answer", 0.95))
    return [
        Task("no record, no results: admits it", ask(), lambda q: NOT_FOUND, both, nothing, required=admits),
        Task(
            "no record, other people's passages: admits it",
            strangers,
            lambda q: NOT_FOUND,
            both,
            others,
            required=admits,
        ),
        Task("no tools, no record: admits it", ask(), lambda q: NOT_FOUND, lambda q: [], tools=()),
    ]
