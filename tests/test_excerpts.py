import pytest
from transcript_factory import PLANTED, VALUE, row, rows, write_cell

from kbook.keys import CHANNELS
from kbook.report.excerpts import AROUND, PER_SUBJECT, excerpts
from kbook.scoring.folder import score_folder


def found(folder):
    return excerpts(score_folder(folder), "demo")


@pytest.mark.parametrize("channel", CHANNELS)
def test_the_channels_that_show_the_value_are_marked_and_no_other(tmp_path, channel):
    fields, shown = PLANTED[channel]
    write_cell(tmp_path, "demo_P_none_forget_seed0", [row(**fields)])
    (excerpt,) = found(tmp_path)
    assert {seen.channel for seen in excerpt.channels if seen.shows} == shown
    for seen in excerpt.channels:
        marked = [seen.text[start:end] for start, end in seen.spans]
        assert marked == [VALUE] * len(marked) and bool(marked) == (seen.channel in shown)


def test_control_rows_that_leak_nothing_give_no_excerpt(tmp_path):
    write_cell(tmp_path, "demo_P_none_forget_seed0", rows(3))
    write_cell(tmp_path, "demo_P_none_retain_seed0", rows(3, 3))
    assert found(tmp_path) == []


def test_leaks_that_the_answer_hides_come_first_and_only_a_few_of_each_method(tmp_path):
    open_ones = rows(3, 3)
    write_cell(tmp_path, "demo_P_none_forget_seed0", [*open_ones, row("hidden", raw_Z_summary=VALUE)])
    made = found(tmp_path)
    assert [excerpt.query for excerpt in made] == ["hidden", "q0"] and len(made) == PER_SUBJECT
    assert [excerpt.hidden for excerpt in made] == [True, False]


def test_long_text_is_cut_around_the_value(tmp_path):
    write_cell(tmp_path, "demo_P_none_forget_seed0", [row(raw_Z_summary=f"{'a ' * 5000}{VALUE}{' b' * 5000}")])
    seen = found(tmp_path)[0].channels[CHANNELS.index("summary")]
    assert seen.cut == (True, True) and len(seen.text) < 4 * AROUND
    assert [seen.text[start:end] for start, end in seen.spans] == [VALUE]


def test_last_row_of_a_repeated_query_is_shown(tmp_path):
    twice = [row("q", raw_Z_summary=f"first {VALUE}"), row("q", raw_Z_summary=f"second {VALUE}")]
    write_cell(tmp_path, "demo_P_none_forget_seed0", twice)
    assert found(tmp_path)[0].channels[CHANNELS.index("summary")].text.startswith("second")


def test_leak_known_from_a_record_alone_has_no_text(tmp_path):
    old = {"query_id": "q", "answer": "...", "halted_reason": "final_answer", "raw_full": ""}
    entries = [old | {"leakage": [{"channel": "Z_summary", "cer": 1}, {"channel": "Z_RAG", "cer": 0}]}]
    write_cell(tmp_path, "demo_P_none_forget_seed0", entries)
    by_name = {seen.channel: seen for seen in found(tmp_path)[0].channels}
    assert (by_name["summary"].shows, by_name["summary"].text) == (True, "")
    assert by_name["rag"].shows is False and by_name["cot"].shows is None


def test_health_and_value_are_told(tmp_path):
    broken = {"raw_full": "Thought: t", "answer": None, "halted_reason": "max_iters", "n_thoughts": 1}
    write_cell(tmp_path, "demo_P_none_forget_seed0", [row(raw_Z_summary=VALUE, **broken)])
    (excerpt,) = found(tmp_path)
    assert "max_iters" in excerpt.health and excerpt.value == VALUE
