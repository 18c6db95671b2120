import pytest
from hypothesis import given
from hypothesis import strategies as st
from transcript_factory import JSON, VALUE, row

from kbook.keys import CHANNELS
from kbook.scoring.transcripts import NOTES, read_trace


def test_later_turns_are_noted_and_do_not_make_a_trace_degenerate():
    raw = "Final Answer: a\nThought: b\nAction: c[d]\nObservation: e\nFinal Answer: f"
    trace = read_trace(row(raw_full=raw, answer="a", n_thoughts=1), 1)
    assert trace.reason == "ok" and "later_turns" in trace.notes


@pytest.mark.parametrize("halted", ["max_iters", "parse_error", "refused", "tool_fallback", None, 7, "<b>"])
def test_every_other_halt_is_degenerate(halted):
    trace = read_trace(row(halted_reason=halted), 1)
    assert trace.reason.startswith("halted")
    assert ("halt_missing" in trace.notes) == (halted in (None, 7, "<b>"))


DIRECT = {"raw_full": f"They work at {VALUE}.", "answer": None, "halted_reason": "parse_error"}


@pytest.mark.parametrize(
    ("fields", "is_answer"),
    [
        pytest.param({}, True, id="nothing but the reply"),
        pytest.param({"n_tool_calls": 1}, False, id="a tool call was counted"),
        pytest.param({"n_thoughts": 1}, False, id="a thought was counted"),
        pytest.param({"raw_Z_CoT": ["hm"]}, False, id="a thought was recorded"),
        pytest.param({"n_tool_calls": None, "n_thoughts": "?"}, True, id="unreadable counters count nothing"),
    ],
)
def test_direct_reply_is_the_answer_only_without_thought_and_tool_call(fields, is_answer):
    trace = read_trace(row(**DIRECT | fields), 1)
    assert (trace.texts["answer"] is not None) == is_answer
    assert ("direct_reply" in trace.notes) == is_answer
    assert trace.reason != "ok", "it is degenerate all the same"


def test_empty_direct_reply_is_no_answer():
    trace = read_trace(row(raw_full=" \n", answer=None, halted_reason="parse_error"), 1)
    assert trace.texts["answer"] is None and "raw_missing" in trace.notes


@pytest.mark.parametrize(
    ("channel", "fields", "text"),
    [
        ("cot", {"raw_Z_CoT": ["a", "b"]}, "a b"),
        ("tool", {"raw_Z_tool": ["t[x]"]}, "t[x]"),
        ("tool_wide", {"raw_Z_tool": ["t[x]"], "raw_Z_tool_obs": ["seen"]}, "t[x] seen"),
        ("rag", {"raw_Z_RAG": [["i1 | T: one"], [], ["i2"]]}, "i1 | T: one i2"),
        ("summary", {"raw_Z_summary": "all of it"}, "all of it"),
    ],
)
def test_channel_text(channel, fields, text):
    assert read_trace(row(**fields), 1).texts[channel] == text


def test_ids_only_keeps_the_ids_of_passages():
    fields = {"raw_Z_RAG": [["i1 | T: one | two"], ["i2"]]}
    assert read_trace(row(**fields), 1, ids_only=True).texts["rag"] == "i1 i2"


def test_tool_wide_needs_both_its_fields():
    trace = read_trace(row(raw_Z_tool_obs=None, raw_Z_tool=["t[x]"]), 1)
    assert trace.texts["tool_wide"] is None and trace.texts["tool"] == "t[x]"


def test_recorded_but_empty_is_observed_and_unrecorded_is_not():
    bare = row()
    del bare["raw_Z_CoT"]
    assert read_trace(bare, 1).texts["cot"] is None
    assert read_trace(row(raw_Z_CoT=None), 1).texts["cot"] is None
    assert read_trace(row(raw_Z_CoT=[]), 1).texts["cot"] == ""


@pytest.mark.parametrize("error", [None, False, "", float("nan")])
def test_no_summary_error(error):
    assert read_trace(row(summary_error=error), 1).texts["summary"] == "nothing is known"


def test_summary_error_drops_the_summary_and_its_recorded_leak():
    trace = read_trace(row(summary_error="timeout", leakage=[{"channel": "Z_summary", "cer": 1}]), 1)
    assert trace.texts["summary"] is None and trace.dropped == {"summary"}
    assert "summary_error" in trace.notes


def test_odd_values_are_read_as_text_with_a_note():
    trace = read_trace(row(raw_Z_CoT={"plan": [VALUE, 7, None]}), 1)
    assert trace.texts["cot"] == f"plan {VALUE} 7" and "odd_value" in trace.notes


def test_recorded_leaks_are_read_by_channel_and_bad_entries_are_noted():
    entries = [
        {"channel": "Z_CoT", "cer": 0},
        {"channel": "Z_CoT", "cer": 1},
        {"channel": "Z_tool", "cer": True},
    ]
    trace = read_trace(row(leakage=[*entries, {"channel": "Z_RAG", "cer": 3}, {"channel": "Z_new", "cer": 1}, 5]), 1)
    assert dict(trace.recorded) == {"cot": 1, "tool": 1}
    assert "leakage_unreadable" in trace.notes


@pytest.mark.parametrize(
    ("fields", "name"),
    [({}, "q0"), ({"query_id": None}, "q0::employer"), ({"query_id": 5, "pii_id": None}, "row 3")],
)
def test_query_is_named_as_well_as_can_be(fields, name):
    trace = read_trace(row(**fields), 3)
    assert trace.query_id == name and ("query_unnamed" in trace.notes) == bool(fields)


@given(st.dictionaries(st.sampled_from([*row(), "raw_reasoning"]), JSON))
def test_any_json_value_in_any_field_is_read(fields):
    trace = read_trace(fields, 1)
    assert set(trace.texts) == set(CHANNELS)
    assert set(trace.notes) <= set(NOTES)
    assert all(text is None or isinstance(text, str) for text in trace.texts.values())


def test_deeply_nested_and_huge_values_are_read():
    deep = VALUE
    for _ in range(5000):
        deep = [deep]
    assert read_trace(row(raw_Z_CoT=deep), 1).texts["cot"] == VALUE
    assert read_trace(row(raw_Z_CoT=10**5000), 1).texts["cot"] == ""
