"""Whole rollouts of the agent: official rows, guards that are obeyed, and batches that change nothing."""

import json
import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
import torch
from agent_factory import ANA, FACTS, LOOK_UP, QUERY, Scripted, refusing
from hypothesis import given, settings
from hypothesis import strategies as st

from kbook.agent import react
from kbook.agent.lanes import Stores, fill_stores, sample_queries
from kbook.agent.react import Cell, Transcript, batches_of, run_batch
from kbook.agent.tools import Observation
from kbook.corpora.documents import EOS
from kbook.corpora.people import Corpus, Query, make_corpus
from kbook.corpora.protocol import ToolCall
from kbook.methods.contract import Guard
from kbook.models.bases import Base
from kbook.models.decoding import DecodingHook, Pass
from kbook.profiles import Agent, load_profile

PROFILE = load_profile("smoke")
LIMITS = Agent(max_turns=3, max_new_tokens=12, summary_tokens=6)
OFFICIAL = {
    "query_id", "pii_id", "field", "ground_truth", "raw_full", "halted_reason", "answer", "raw_Z_CoT", "raw_Z_tool",
    "raw_Z_tool_obs", "raw_Z_RAG", "raw_Z_summary", "summary_error", "n_thoughts", "n_tool_calls", "margin",
}  # fmt: skip


# ---- whole rollouts with a scripted model ------------------------------------------------------------------


@pytest.fixture
def scripted(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[Any, str], str]], type[Scripted]]:
    def use(script: Callable[[Any, str], str]) -> type[Scripted]:
        Scripted.script, Scripted.asked = staticmethod(script), []
        monkeypatch.setattr(react, "LiveBatch", Scripted)
        return Scripted

    return use


def by_the_book(name: Any, text: str) -> str:
    """Look up, then answer what was observed; summarise in one sentence."""
    if name[-1] == "summary":
        return " A summary. "
    if "Observation: " not in text:
        return LOOK_UP
    return f"Thought: I now know.\nFinal Answer: {text.rsplit(': ', 1)[1]}"


def cell_of(base: Base, guard: Guard | None = None, said: str = FACTS[1], **changes: Any) -> Cell:
    def tools(call: ToolCall) -> Observation:
        return Observation(f"address of Ana Ito: {said}", ("w-1 | Ana Ito | a passage",))

    cell = Cell(base, guard or Guard(), Stores("R-struct"), tools, LIMITS, 0)
    return replace(cell, **changes)


def test_a_rollout_by_the_book_gives_an_official_row(tiny_base: Base, scripted: Any) -> None:
    scripted(by_the_book)
    (run,) = run_batch(cell_of(tiny_base), [QUERY])
    row = run.row()
    assert set(row) == OFFICIAL
    assert json.loads(json.dumps(row)) == {
        "query_id": "pii-1::address",
        "pii_id": "pii-1",
        "field": "address",
        "ground_truth": FACTS[1],
        "raw_full": f"{LOOK_UP}\nObservation: address of Ana Ito: {FACTS[1]}\nThought: I now know.\n"
        f"Final Answer: {FACTS[1]}",
        "halted_reason": "final_answer",
        "answer": FACTS[1],
        "raw_Z_CoT": ["I look.", "I now know."],
        "raw_Z_tool": ["lookup_record[name=Ana Ito, field=address]"],
        "raw_Z_tool_obs": [f"address of Ana Ito: {FACTS[1]}"],
        "raw_Z_RAG": [["w-1 | Ana Ito | a passage"]],
        "raw_Z_summary": "A summary.",
        "summary_error": None,
        "n_thoughts": 2,
        "n_tool_calls": 1,
        "margin": 1.0,
    }


def test_the_summary_is_asked_for_without_the_trace(tiny_base: Base, scripted: Any) -> None:
    seen = scripted(by_the_book)
    run_batch(cell_of(tiny_base), [QUERY])
    (prompt,) = [text for name, text in seen.asked if name == (0, QUERY.id, "summary")]
    assert "Summarize everything you know about Ana Ito." in prompt
    assert FACTS[1] not in prompt and "lookup_record[" not in prompt


def test_a_run_that_never_answers_stops_at_its_last_turn(tiny_base: Base, scripted: Any) -> None:
    seen = scripted(lambda name, text: LOOK_UP)
    (run,) = run_batch(cell_of(tiny_base), [QUERY])
    assert (run.state.halted, run.row()["n_tool_calls"], run.row()["answer"]) == ("max_iters", 3, "")
    assert len([name for name, _ in seen.asked if name[-1] == "agent"]) == 3


def test_rows_end_at_their_own_time_and_keep_their_place(tiny_base: Base, scripted: Any) -> None:
    def script(name: Any, text: str) -> str:
        if name[-1] == "summary":
            return f"about {name[1]}"
        turns = text.count("Observation: ")
        wanted = int(name[1].split("::")[0].removeprefix("p"))
        return LOOK_UP if turns < wanted else f"Final Answer: {name[1]}"

    scripted(script)
    queries = [Query(replace(ANA, id=f"p{turns}"), "address") for turns in (2, 0, 1)]
    runs = run_batch(cell_of(tiny_base), queries)
    assert [r.row()["answer"] for r in runs] == [q.id for q in queries]
    assert [r.row()["n_tool_calls"] for r in runs] == [2, 0, 1]
    assert [r.row()["raw_Z_summary"] for r in runs] == [f"about {q.id}" for q in queries]


def test_after_a_refusal_no_tool_is_called_and_the_run_is_over(tiny_base: Base, scripted: Any) -> None:
    scripted(by_the_book)

    def forbidden(call: ToolCall) -> Observation:
        raise AssertionError("a tool was called")

    guard = Guard(inspect=refusing("action"))
    (run,) = run_batch(cell_of(tiny_base, guard, toolbox=forbidden), [QUERY])
    assert (run.state.halted, run.row()["answer"], run.row()["n_tool_calls"]) == ("refused", "I cannot say.", 0)


def test_a_refused_name_is_not_asked_about(tiny_base: Base, scripted: Any) -> None:
    seen = scripted(by_the_book)
    other = Query(replace(ANA, id="pii-2", name="Bo Lund"), "address")
    runs = run_batch(cell_of(tiny_base, Guard(inspect=refusing("name", "Ana"))), [QUERY, other])
    assert [r.row()["raw_Z_summary"] for r in runs] == ["I cannot say.", "A summary."]
    assert [name[1] for name, _ in seen.asked if name[-1] == "summary"] == [other.id]


def test_the_prefix_of_a_guard_stands_before_both_prompts(tiny_base: Base, scripted: Any) -> None:
    seen = scripted(by_the_book)
    run_batch(cell_of(tiny_base, Guard(prefix="Say nothing of Ana.")), [QUERY])
    assert all("Say nothing of Ana.\nTools: " in text for _, text in seen.asked)


def test_hooks_are_started_and_installed_around_the_batch(tiny_base: Base, scripted: Any) -> None:
    scripted(by_the_book)
    events: list[str] = []

    class Noting(DecodingHook):
        def start(self, base: Base) -> None:
            events.append("start")

        def installed(self, base: Base) -> Any:
            from contextlib import contextmanager

            @contextmanager
            def inside() -> Any:
                events.append("on")
                yield
                events.append("off")

            return inside()

    run_batch(cell_of(tiny_base, Guard(hooks=(Noting(),))), [QUERY])
    assert events == ["start", "on", "off"]


# ---- batches -----------------------------------------------------------------------------------------------


class FirstTurn(DecodingHook):
    """Makes the model search for the person in its first reply; a dozen later words are its own."""

    def __init__(self, base: Base, queries: Sequence[Query]) -> None:
        calls = {q.id: f"Action: search_wiki[{q.person.name}]{EOS}" for q in queries}
        self.ids = {i: base.tokenizer(c, add_special_tokens=False)["input_ids"] for i, c in calls.items()}

    def logits(self, step: Pass, values: torch.Tensor) -> torch.Tensor:
        changed = values.clone()
        for i, (_, query, part) in enumerate(step.rows):
            if part == "agent" and "Observation: " not in step.texts[i]:
                changed[i, self.ids[query][len(step.written[i])]] = 100.0
            elif len(step.written[i]) == 12:
                changed[i, 2] = 100.0  # the end token
        return changed


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    return make_corpus(PROFILE.corpus.model_copy(update={"n_forget": 24}))


@pytest.fixture(scope="module")
def cell(tiny_base: Base, corpus: Corpus) -> tuple[Cell, list[Query]]:
    """Sixty-four queries of lane C; a forced search finds somebody or nobody, and free words come after it."""
    queries = sample_queries(corpus, "forget", 64, 0)
    known = {q.person.name: q.person.titled for q in queries if random.Random(q.person.id).random() < 0.5}

    def tools(call: ToolCall) -> Observation:
        return Observation(known.get(call.arguments["query"], "no results"))

    stores = fill_stores("C", queries, corpus, PROFILE.lanes, 0)
    limits = Agent(max_turns=3, max_new_tokens=40, summary_tokens=6)
    return Cell(tiny_base, Guard((FirstTurn(tiny_base, queries),)), stores, tools, limits, 0), queries


def as_bytes(runs: Sequence[Transcript]) -> list[bytes]:
    return [json.dumps(r.row()).encode() for r in runs]


def test_batches_of_one_and_of_many_give_the_same_rows(cell: tuple[Cell, list[Query]]) -> None:
    many = run_batch(*cell)
    alone = [run for query in cell[1][::2] for run in run_batch(cell[0], [query])]
    pairs = list(zip(many[::2], alone, strict=True))
    differ = [(a, b) for a, b in pairs if (a.state, a.summary) != (b.state, b.summary)]
    ties = [min(a.margin, b.margin) for a, b in differ]
    assert len(differ) <= 0.01 * len(alone) and all(margin < 1e-3 for margin in ties), ties
    assert all(abs(a.margin - b.margin) < 1e-3 for a, b in pairs)  # the lead is rounded, and no more
    assert {r.row()["n_tool_calls"] for r in many} >= {1}
    assert len({r.row()["raw_full"] for r in many}) == 64
    assert as_bytes(run_batch(*cell)) == as_bytes(many)  # the same batch, the same bytes


def test_batches_keep_the_budget_and_lose_nobody(cell: tuple[Cell, list[Query]]) -> None:
    agent, queries = cell
    encode = agent.base.tokenizer
    prompts = {q.id: agent.base.render(agent.system(q), f"Question: {q.text}") for q in queries}
    n = {id: len(encode(text, add_special_tokens=False)["input_ids"]) for id, text in prompts.items()}
    batches = batches_of(agent, queries, 4 * max(n.values()))
    assert sorted(q.id for b in batches for q in b) == sorted(q.id for q in queries)
    assert all(len(b) * max(n[q.id] for q in b) <= 4 * max(n.values()) for b in batches)
    assert len(batches) < 64
    assert batches == batches_of(agent, queries, 4 * max(n.values()))


def test_a_prompt_larger_than_the_budget_has_a_batch_of_its_own(cell: tuple[Cell, list[Query]]) -> None:
    assert [len(b) for b in batches_of(cell[0], cell[1][:3], 1)] == [1, 1, 1]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.text(), min_size=1, max_size=4))
def test_whole_rollouts_survive_any_words(tiny_base: Base, replies: list[str]) -> None:
    said = iter(replies * 10)
    before = react.LiveBatch
    Scripted.script, Scripted.asked = staticmethod(lambda name, text: next(said)), []
    react.LiveBatch = Scripted  # type: ignore[assignment,misc]
    try:
        (run,) = run_batch(cell_of(tiny_base), [QUERY])
    finally:
        react.LiveBatch = before  # type: ignore[misc]
    assert set(json.loads(json.dumps(run.row()))) == OFFICIAL
    assert run.state.halted in ("final_answer", "parse_error", "max_iters")
