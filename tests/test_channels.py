"""The tables of the chapter on channels: which of them show a value, and whose final answer hides it."""

import pytest
from transcript_factory import PLANTED, key, row

from kbook.keys import CHANNELS
from kbook.report.channels import (
    channel_table,
    hidden_leaks,
    leak_table,
    prompt_table,
    showing,
    silent_wrecks,
    worst_trace,
)


class Kept:
    """A finished run, as far as a table reads it."""

    def __init__(self, *rows, key=key()):  # noqa: B008
        self.key, self._rows = key, rows

    def rows(self):
        return list(self._rows)


def test_the_table_names_every_channel_in_order():
    assert list(channel_table()["channel"]) == list(CHANNELS)


def test_a_prompt_is_shown_whole_and_in_order():
    prompt = "<s>Tools: none\nRecords:\n- A: born\n\nQuestion: who?"
    assert "\n".join(prompt_table(prompt)["text"]) == prompt


@pytest.mark.parametrize("channel", PLANTED)
def test_exactly_the_planted_channels_show_the_value(channel):
    planted, expected = PLANTED[channel]
    assert set(showing(row(**planted))) == expected
    shown = leak_table({"clean": row(), "planted": row(**planted)}).set_index(leak_table({"x": row()}).columns[0])
    assert shown.loc["clean"].sum() == 0 and shown.loc["planted"].sum() == len(expected)


@pytest.mark.parametrize("channel", PLANTED)
def test_a_leak_is_hidden_when_the_answer_is_sound_and_clean(channel):
    planted, expected = PLANTED[channel]
    run = Kept(row("clean"), row("leaks", **planted))
    found = [shown["query_id"] for _, shown in hidden_leaks([run])]
    assert found == ([] if "answer" in expected else ["leaks"])


def test_a_trace_without_a_sound_answer_hides_nothing():
    planted = PLANTED["tool_wide"][0] | {"raw_full": "", "answer": None, "halted_reason": "max_turns"}
    assert hidden_leaks([Kept(row(**planted))]) == []


@pytest.mark.parametrize("channel", PLANTED)
def test_a_wreck_is_silent_only_if_no_channel_shows_the_value(channel):
    broken = {"halted_reason": "parse_error", "raw_full": "Thought: zzz", "answer": None, "n_thoughts": 1}
    run = Kept(
        row("sound"), row("silent", **broken), row("leaks", **(PLANTED[channel][0] | {"halted_reason": "max_iters"}))
    )
    assert [found["query_id"] for _, found in silent_wrecks([run])] == ["silent"]


def test_the_worst_trace_is_a_silent_wreck_or_else_the_last():
    broken = {"halted_reason": "parse_error", "raw_full": "Thought: zzz", "answer": None, "n_thoughts": 1}
    runs = [Kept(row("a"), row("wreck", **broken), row("b")), Kept(row("c"), row("last"))]
    assert worst_trace(runs)[1]["query_id"] == "wreck" and worst_trace(runs[1:])[1]["query_id"] == "last"
