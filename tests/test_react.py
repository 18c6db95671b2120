"""The agent as a state machine: what a reply says decides the next state."""

from collections.abc import Callable

import pytest
from agent_factory import FACTS, LOOK_UP, QUERY, refusing
from hypothesis import given
from hypothesis import strategies as st

from kbook.agent.react import State, labelled, observe, step
from kbook.agent.tools import Observation
from kbook.corpora.protocol import no_record, record_observation
from kbook.methods.contract import Verdict


def passing(kind: str, text: str) -> Verdict:
    return Verdict()


def after(reply: str, look: Callable[[str, str], Verdict] = passing, state: State | None = None) -> State:
    (found,) = step([state or State(QUERY, "prompt")], [reply], look)
    return found


# ---- one step ----------------------------------------------------------------------------------------------


def test_a_direct_answer_ends_the_run() -> None:
    state = after("Thought: I know.\nFinal Answer: 12 Elm Road")
    assert (state.answer, state.halted, state.pending) == ("12 Elm Road", "final_answer", None)
    assert state.thoughts == ("I know.",)
    assert state.text == "Thought: I know.\nFinal Answer: 12 Elm Road"


def test_a_call_waits_for_its_observation() -> None:
    state = after(LOOK_UP + "\n")
    assert state.pending and state.pending.arguments == {"name": "Ana Ito", "field": "address"}
    assert (state.halted, state.answer, state.calls) == (None, None, (state.pending,))
    assert state.text == LOOK_UP


def test_a_call_and_then_an_answer_in_the_next_reply() -> None:
    (seen,) = observe([after(LOOK_UP)], [Observation(record_observation("Ana Ito", "address", FACTS[1]))], 6)
    state = after(f"Thought: I now know.\nFinal Answer: {FACTS[1]}", state=seen)
    assert state.text == (
        f"{LOOK_UP}\nObservation: address of Ana Ito: {FACTS[1]}\nThought: I now know.\nFinal Answer: {FACTS[1]}"
    )
    assert (state.answer, state.halted) == (FACTS[1], "final_answer")
    assert state.thoughts == ("I look.", "I now know.")
    assert state.observations == (f"address of Ana Ito: {FACTS[1]}",)


BOTH = {
    "call first": (LOOK_UP + "\nThought: done\nFinal Answer: x", None, LOOK_UP),
    "answer first": ("Final Answer: x\n" + LOOK_UP, "final_answer", "Final Answer: x"),
}


@pytest.mark.parametrize(("reply", "halted", "kept"), BOTH.values(), ids=BOTH)
def test_the_first_call_or_answer_of_a_reply_counts(reply: str, halted: str | None, kept: str) -> None:
    state = after(reply)
    assert (state.halted, state.text) == (halted, kept)
    assert (state.pending is None) == (halted is not None)


INVENTED = {
    "after the call": (LOOK_UP + "\nObservation: 9 Oak Lane\nFinal Answer: 9 Oak Lane", None),
    "indented": (LOOK_UP + "\n  Observation: 9 Oak Lane\nFinal Answer: 9 Oak Lane", None),
    "at the very start": ("Observation: 9 Oak Lane\nThought: good\nFinal Answer: 9 Oak Lane", "parse_error"),
    "after a thought": ("Thought: hm\nObservation: 9 Oak Lane\nFinal Answer: 9 Oak Lane", "parse_error"),
}


@pytest.mark.parametrize(("reply", "halted"), INVENTED.values(), ids=INVENTED)
def test_an_observation_that_the_model_writes_is_cut_with_all_that_follows(reply: str, halted: str | None) -> None:
    state = after(reply)
    assert state.halted == halted and state.answer is None
    assert "9 Oak Lane" not in state.text


BROKEN = {
    "no label": "I think she lives in Riverton.",
    "a thought alone": "Thought: I wonder.",
    "a call without brackets": "Thought: I look.\nAction: lookup the address",
    "an empty action": "Action:",
    "empty": "",
    "blank": " \n ",
}


@pytest.mark.parametrize("reply", BROKEN.values(), ids=BROKEN)
def test_a_reply_without_call_or_answer_is_a_parse_error(reply: str) -> None:
    state = after(reply)
    assert (state.halted, state.answer, state.pending) == ("parse_error", None, None)
    assert state.text == reply.strip()


def test_the_short_label_is_an_answer_too_and_an_empty_answer_is_an_answer() -> None:
    assert after("Answer: Riverton").answer == "Riverton"
    assert (after("Final Answer:").answer, after("Final Answer:").halted) == ("", "final_answer")


def test_an_answer_goes_on_over_lines_until_the_next_label() -> None:
    assert after("Final Answer: 12 Elm Road\nRiverton\nThought: done").answer == "12 Elm Road\nRiverton"


def test_words_after_a_call_are_dropped_from_its_line() -> None:
    assert after(LOOK_UP + " and wait").text == LOOK_UP


def test_labels_count_at_line_starts_only() -> None:
    reply = "so\nThought: Final Answer: no\n Action: search_wiki[x]"
    assert labelled(reply) == [("", "so"), ("Thought", "Final Answer: no"), ("Action", "search_wiki[x]")]


@given(st.text(), st.text())
def test_no_reply_crashes_a_step(head: str, tail: str) -> None:
    for joint in ("", "\nThought: ", "\nAction: ", "\nAction: lookup_record[", "\nFinal Answer: ", "\nObservation: "):
        state = after(head + joint + tail)
        assert (state.halted is None) == (state.pending is not None)
        assert state.halted in (None, "final_answer", "parse_error")


def test_steps_change_no_state_that_they_are_given() -> None:
    states = [State(QUERY, "p"), State(QUERY, "q", text="said")]
    before = list(states)
    moved = step(states, [LOOK_UP, "Final Answer: x"], passing)
    assert states == before
    assert [s.prompt for s in moved] == ["p", "q"] and moved[1].text == "said\nFinal Answer: x"


# ---- observations ------------------------------------------------------------------------------------------


def test_the_last_turn_ends_the_run_and_the_one_before_does_not() -> None:
    state = after(LOOK_UP)
    for turn in (1, 2, 3):
        (state,) = observe([state], [Observation(no_record("Ana Ito"))], 3)
        assert state.halted == ("max_iters" if turn == 3 else None) and state.pending is None
        if turn < 3:
            state = after(LOOK_UP, state=state)
    assert len(state.calls) == len(state.observations) == 3
    assert state.text.endswith("Observation: no record for Ana Ito")


def test_passages_are_kept_per_search_and_for_searches_alone() -> None:
    (first,) = observe([after("Action: search_wiki[a]")], [Observation("[1] A: a", ("w | A | a",))], 6)
    (second,) = observe([after(LOOK_UP, state=first)], [Observation("no record")], 6)
    (third,) = observe([after("Action: search_wiki[b]", state=second)], [Observation("no results", ())], 6)
    assert third.hits == (("w | A | a",), ())
    assert third.observations == ("[1] A: a", "no record", "no results")


# ---- guards ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["thought", "action"])
def test_a_refused_piece_is_not_shown_and_calls_no_tool(kind: str) -> None:
    state = after(LOOK_UP, refusing(kind))
    assert (state.answer, state.halted, state.pending, state.calls) == ("I cannot say.", "refused", None, ())
    assert state.text.endswith("Final Answer: I cannot say.")
    assert "lookup_record" not in state.text
    assert state.thoughts == (() if kind == "thought" else ("I look.",))


def test_a_refused_answer_is_replaced() -> None:
    state = after("Thought: I know.\nFinal Answer: 12 Elm Road", refusing("answer", "Elm"))
    assert (state.answer, state.halted) == ("I cannot say.", "refused")
    assert state.text == "Thought: I know.\nFinal Answer: I cannot say."


def test_an_answer_that_a_guard_lets_pass_stays() -> None:
    assert after("Final Answer: 12 Elm Road", refusing("answer", "Oak")).halted == "final_answer"
    filtering: Callable[[str, str], Verdict] = lambda kind, text: Verdict("filter", "x")  # noqa: E731
    assert after("Final Answer: 12 Elm Road", filtering).answer == "12 Elm Road"
