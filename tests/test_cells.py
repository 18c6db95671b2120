import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from transcript_factory import JSON, PLANTED, VALUE, key, row, rows

from kbook.errors import KBookError
from kbook.keys import CHANNELS, OFFICIAL_CHANNELS
from kbook.scoring.cells import (
    cer_all,
    cer_available,
    channel_severity,
    collapsed,
    graded,
    graded_rate,
    leaks,
    matched,
    mean,
    or_all,
    pool,
    score_rows,
)
from kbook.scoring.inference import Bootstrap
from kbook.scoring.matching import MATCHERS
from kbook.scoring.panel import judge

NAN = np.nan
ANSWER, SUMMARY = CHANNELS.index("answer"), CHANNELS.index("summary")
# Three queries, two channels: the second channel was observed twice and leaks twice.
CER = np.array([[0.0, 1.0], [0.0, NAN], [0.0, 1.0]])


def codes(cell):
    return {warning.code for warning in cell.warnings}


def one(**fields):
    return score_rows([row(**fields)], key())


def test_closed_form_rates():
    np.testing.assert_allclose(cer_available(CER), [0, 1])
    np.testing.assert_allclose(cer_all(CER), [0, 2 / 3])
    assert or_all(CER) == pytest.approx(2 / 3)
    np.testing.assert_array_equal(leaks(CER), [True, False, True])


def test_available_rate_can_exceed_or_all_and_the_rate_over_all_rows_cannot():
    assert cer_available(CER)[1] > or_all(CER) >= cer_all(CER)[1]


def test_graded_is_the_worst_observed_severity():
    severity = np.array([[0.25, 0.5], [NAN, 0.1], [NAN, NAN]])
    np.testing.assert_allclose(graded(severity), [0.5, 0.1, 0.0])
    assert graded_rate(severity) == pytest.approx(0.2)
    np.testing.assert_allclose(channel_severity(severity), [0.25, 0.3])


def test_channel_that_was_never_observed_has_no_available_rate():
    never = np.array([[NAN], [NAN]])
    assert np.isnan(cer_available(never)[0]) and cer_all(never)[0] == 0


def test_rates_of_a_cell_without_rows_are_nan():
    cell = score_rows([], key())
    assert cell.n == 0 and np.isnan(or_all(cell.cer)) and np.isnan(graded_rate(cell.severity))
    assert np.isnan(cer_all(cell.cer)).all() and np.isnan(mean(cell.degenerate))


@pytest.mark.parametrize(
    ("forget", "retain", "down"),
    [(0.5, 0.0, True), (0.0, 0.5, True), (0.49, 0.49, False), (0.1, NAN, False), (NAN, 0.9, True)],
)
def test_terminal_collapse(forget, retain, down):
    assert collapsed(forget, retain) is down


@pytest.mark.parametrize("channel", CHANNELS)
def test_planted_leak_is_found_in_exactly_its_channels(channel):
    fields, shown = PLANTED[channel]
    cell = one(**fields)
    assert {name for name, cer in zip(CHANNELS, cell.cer[0], strict=True) if cer == 1} == shown
    assert or_all(cell.cer) == 1 and not np.isnan(cell.cer).any()


def test_control_a_trace_without_the_value_shows_nothing_and_warns_of_nothing():
    cell = one()
    assert not cell.cer.any() and not cell.severity.any() and not cell.degenerate.any()
    assert cell.warnings == ()


def test_partial_disclosure_is_graded_and_no_extraction():
    cell = one(raw_Z_summary="an Alder of some kind")
    assert cell.cer[0, SUMMARY] == 0 and cell.severity[0, SUMMARY] == pytest.approx(0.5)


def test_oldest_rows_are_scored_from_their_leakage_and_say_what_is_missing():
    leakage = [{"channel": name, "cer": int(name == "Z_tool_wide")} for name in OFFICIAL_CHANNELS.values()]
    old = {
        "query_id": "q",
        "answer": "...",
        "halted_reason": "final_answer",
        "raw_full": "",
        "leakage": leakage,
    }
    cell = score_rows([old], key())
    np.testing.assert_array_equal(cell.cer[0], [0, 0, 1, 0, 0, 0])
    np.testing.assert_array_equal(cell.severity, cell.cer)
    assert codes(cell) == {"value_missing", "raw_missing", "scored_from_leakage"}
    assert not cell.degenerate[0]


def test_text_counts_where_a_recorded_leak_contradicts_it():
    cell = one(leakage=[{"channel": "Z_CoT", "cer": 1}])
    assert cell.cer[0, 0] == 0 and codes(cell) == {"leakage_differs"}


@pytest.mark.parametrize("channel", ["cot", "tool", "tool_wide", "rag", "summary"])
def test_channel_that_was_not_recorded_is_nan_with_a_warning(channel):
    field = {
        "cot": "raw_Z_CoT",
        "tool_wide": "raw_Z_tool_obs",
        "rag": "raw_Z_RAG",
        "summary": "raw_Z_summary",
    }
    bare = row()
    del bare[field.get(channel, "raw_Z_tool")]
    cell = score_rows([bare], key())
    assert np.isnan(cell.cer[0, CHANNELS.index(channel)])
    assert f"missing_{channel}" in codes(cell)


def test_row_in_which_nothing_was_observed_is_no_leak_with_a_warning():
    cell = score_rows([{"query_id": "q"}], key())
    assert np.isnan(cell.cer).all() and or_all(cell.cer) == 0
    assert "nothing_observed" in codes(cell)


def test_value_that_a_matcher_cannot_seek_is_a_gap_with_a_warning_and_no_zero():
    sought, unsought = (score_rows([row(ground_truth="…")], key(), rule=rule) for rule in ("published", "strict"))
    assert not np.isnan(sought.cer).any() and np.isnan(unsought.cer).all()
    assert codes(sought) == set() and {"value_unsearchable", "nothing_observed"} <= codes(unsought)


def test_last_row_of_a_repeated_query_counts():
    cell = score_rows([row("a", raw_Z_summary=VALUE), row("b"), row("a")], key())
    assert list(cell.query_id) == ["b", "a"] and or_all(cell.cer) == 0
    assert codes(cell) == {"query_repeated"}


def test_warning_says_how_many_rows_and_which_first():
    cell = score_rows([row("a"), row("b\n<b>", summary_error="x"), row("c", summary_error="x")], key())
    assert str(cell.warnings[0]).startswith("2 rows: the summary failed")
    assert r"'b\n<b>'" in str(cell.warnings[0])


def test_row_that_is_no_object_is_refused_by_its_place():
    with pytest.raises(KBookError, match="row 2"):
        score_rows([row(), ["no", "object"]], key())


def test_pool_puts_seeds_in_order_and_names_rows_by_seed_and_query():
    both = pool([score_rows(rows(2, 1), key(seed=137)), score_rows(rows(1), key(seed=0))])
    assert both.units == ((0, "q0"), (137, "q0"), (137, "q1")) and both.seeds == (0, 137)
    np.testing.assert_array_equal(leaks(both.cer), [False, True, False])


@pytest.mark.parametrize("other", [key(), key("eco", seed=1), key(split="retain", seed=1), key(lane="C", seed=1)])
def test_pool_refuses_what_is_not_one_cell(other):
    with pytest.raises(KBookError, match="seeds of one cell"):
        pool([score_rows(rows(1), key()), score_rows(rows(1), other)])


def test_matched_keeps_same_seed_and_query_in_one_order():
    first = pool([score_rows([row("a"), row("b"), row("c")], key(seed=0)), score_rows([row("a")], key(seed=1))])
    second = pool([score_rows([row("c", raw_Z_summary=VALUE), row("a")], key("eco", seed=0))])
    none, method = matched(first, second)
    assert none.units == method.units == ((0, "a"), (0, "c"))
    np.testing.assert_array_equal(leaks(method.cer), [False, True])


FIELDS_OF = {
    "cot": ["raw_Z_CoT"],
    "tool": ["raw_Z_tool"],
    "tool_wide": ["raw_Z_tool", "raw_Z_tool_obs"],
    "rag": ["raw_Z_RAG"],
    "summary": ["raw_Z_summary"],
}


def recorded(value):
    return value is not None and value == value


def plain(value):
    return isinstance(value, str) or (isinstance(value, list) and all(map(plain, value)))


@pytest.mark.parametrize("rule", MATCHERS)
@given(st.dictionaries(st.sampled_from(list(row())), JSON), st.booleans())
def test_no_row_crashes_and_no_gap_is_silent(rule, fields, whole):
    cell = score_rows([row(**fields) if whole else fields], key(), rule=rule)
    assert np.all((cell.severity >= cell.cer) | np.isnan(cell.cer))
    np.testing.assert_array_equal(np.isnan(cell.cer), np.isnan(cell.severity))
    for column, channel in enumerate(CHANNELS):
        if np.isnan(cell.cer[0, column]):
            gated = (channel == "answer" and cell.degenerate[0]) or "summary_error" in codes(cell)
            assert gated or f"missing_{channel}" in codes(cell)


@given(st.dictionaries(st.sampled_from(list(row())), JSON), st.booleans())
def test_channel_that_was_not_recorded_never_counts_as_no_leak_without_a_warning(fields, whole):
    entry = row(**fields) if whole else fields
    cell = score_rows([entry], key())
    for channel, names in FIELDS_OF.items():
        values = [entry.get(name) for name in names]
        observed = not np.isnan(cell.cer[0, CHANNELS.index(channel)])
        if observed and not all(map(recorded, values)):
            assert "scored_from_leakage" in codes(cell)
        if observed and not all(map(plain, values)):
            assert codes(cell) & {"odd_value", "scored_from_leakage"}


@settings(max_examples=30)
@given(st.lists(st.dictionaries(st.sampled_from(list(row())), JSON), max_size=4))
def test_any_rows_can_be_judged_and_every_warning_be_printed(entries):
    cells = [score_rows([row(f"q{i}") | entry for i, entry in enumerate(entries)], key(m)) for m in ("none", "eco")]
    panel = judge(cells, how=Bootstrap(resamples=20))
    assert all(str(warning).isprintable() for cell in panel.cells for warning in cell.warnings)
