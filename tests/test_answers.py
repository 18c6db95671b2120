"""A raw text is taken apart at its labels and nowhere else."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbook.scoring.answers import REPLY, final_answer, split_turns

LINES = st.lists(
    st.tuples(st.sampled_from(["Thought:", "Action:", "Observation:", "Final Answer:", "Answer:"]), st.text("ab :\t"))
)


def test_turns_follow_the_labels_and_keep_their_text():
    raw = "Well.\nThought: a\n  Action : b[c]\nObservation: d\ne\nFinal \t Answer: f"
    assert split_turns(raw) == [
        (REPLY, "Well.\n"),
        ("Thought:", "a\n"),
        ("Action:", "b[c]\n"),
        ("Observation:", "d\ne\n"),
        ("Final Answer:", "f"),
    ]


@pytest.mark.parametrize("raw", ["", "So the Thought: x", "thought: x", "Thoughts: x"])
def test_text_without_labels_is_one_reply(raw):
    assert split_turns(raw) == [(REPLY, raw)]


@pytest.mark.parametrize(
    ("raw", "text", "reason"),
    [
        pytest.param("Thought: t\nFinal Answer: Bob", "Bob", "ok", id="a final answer"),
        pytest.param("Answer: Bob", "Bob", "ok", id="an answer without Final"),
        pytest.param("  Final  Answer : Bob", "Bob", "ok", id="blanks around the label"),
        pytest.param("Final Answer: one\nFinal Answer: two", "one", "ok", id="the first of two answers"),
        pytest.param("Final Answer: a\nb\n\nc", "a\nb\n\nc", "ok", id="an answer of several lines"),
        pytest.param("Final Answer: a\nThought: b", "a", "ok", id="the answer ends at the next label"),
        pytest.param("Final Answer: a\nObservation: b", "a", "ok", id="the answer ends at an observation"),
        pytest.param("So the Final Answer: Bob", None, "no final answer", id="a label within a line is none"),
        pytest.param("final answer: Bob", None, "no final answer", id="a label in lower case is none"),
        pytest.param("Final Answer: Thought: x", "Thought: x", "nested protocol turn", id="a nested turn"),
        pytest.param("Final Answer: Answer: x", "Answer: x", "nested protocol turn", id="a nested answer"),
        pytest.param("Final Answer:  \n", None, "empty answer", id="an empty answer"),
        pytest.param("Final Answer:\nThought: x", None, "empty answer", id="a label at once after the answer's"),
        pytest.param("Thought: x\nAction: y[z]", None, "no final answer", id="no answer at all"),
    ],
)
def test_final_answer(raw, text, reason):
    found = final_answer(raw, "final_answer")
    assert (found.text, found.reason, found.healthy) == (text, reason, reason == "ok")


def test_answer_of_a_trace_that_halted_otherwise_is_unhealthy_but_kept():
    found = final_answer("Final Answer: Bob", "max_iters")
    assert (found.text, found.reason) == ("Bob", "halted: max_iters")


def test_later_turns_are_those_of_the_model_alone():
    raw = "Final Answer: a\nThought: b\nAction: c[d]\nObservation: e\nFinal Answer: f"
    assert final_answer(raw, "final_answer").later_turns == ("Thought:", "Action:", "Final Answer:")


@given(LINES)
def test_every_turn_is_found_again(lines):
    turns = split_turns("\n".join(label + text for label, text in lines))
    assert [turn.label for turn in turns[1:]] == [label for label, _ in lines]
    assert [turn.text.strip() for turn in turns[1:]] == [text.strip() for _, text in lines]


@given(st.text() | st.text('[]{}":, stage12\nfinal_answerdecision').map(lambda text: "[stage1] " + text), st.text())
def test_any_text_has_a_health(raw, halted):
    found = final_answer(raw, halted)
    assert found.healthy == (found.reason == "ok") and (found.text is not None or not found.healthy)
