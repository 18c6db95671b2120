"""A guard that cleans the answer: what moves is found channel by channel, and what it moves to is counted."""

import pytest
from test_channels import Kept
from transcript_factory import PLANTED, VALUE, key, row, rows

from kbook.keys import CHANNELS
from kbook.report import migration
from kbook.report.channels import likeness
from kbook.report.kbench import ANY, baseline_frame, channel_rates
from kbook.scoring.cells import score_rows
from kbook.scoring.inference import Bootstrap
from kbook.scoring.panel import judge

N = 40
HOW = Bootstrap(resamples=200)
SEEN = {"raw_Z_tool": ["lookup_record[name=N0]"], **PLANTED["tool_wide"][0]}
BOTH = SEEN | PLANTED["answer"][0]
BROKEN = {"halted_reason": "parse_error", "raw_full": "Thought: zzz", "answer": None}


def cell(method, counts, base="demo", split="forget", seed=0):
    """`N` traces: so many that show the value in observation and answer, in the observation alone, and broken ones."""
    kinds = [BOTH] * counts[0] + [SEEN] * counts[1] + [BROKEN] * counts[2]
    kinds += [{}] * (N - len(kinds))
    found = [row(f"q{i}", **kind) for i, kind in enumerate(kinds)]
    return score_rows(found, key(method, split, seed, lane="R-struct", base=base))


def judged(by_base, splits=("forget", "retain"), seeds=(0,)):
    return judge(
        cell(method, counts, base, split, seed)
        for base, methods in by_base.items()
        for method, counts in methods.items()
        for split in splits
        for seed in seeds
    )


# base → method → traces with (both, observation alone, broken)
MOVED = {"none": (30, 0, 0), "star": (4, 26, 0)}
FORGOT = {"none": (30, 0, 0), "star": (4, 0, 6)}


@pytest.fixture(scope="module")
def panel():
    return judged({"a": MOVED, "b": FORGOT})


def test_rates_stand_base_by_base_the_untreated_first_and_the_whole_last(panel):
    frame = migration.rate_frame(panel, "star")
    assert list(frame["base"].drop_duplicates()) == ["a", "b"] and len(frame) == 2 * 2 * 7
    assert frame["agent"].tolist()[:8] == ["untreated"] * 7 + ["star"]
    assert frame["channel"].tolist()[:7] == [*CHANNELS, ANY]
    found = frame.set_index(["base", "agent", "channel"])["rate"]
    assert found["a", "untreated", "answer"] == found["a", "star", ANY] == 30 / N
    assert found["a", "star", "answer"] == 4 / N and found["b", "star", ANY] == 4 / N


def test_rates_of_the_untreated_are_those_of_the_chapter_on_topology(panel):
    rates = channel_rates(panel)
    one = rates[(rates["base"] == "a") & (rates["method"] == "none")]
    assert baseline_frame(judged({"a": MOVED}))["rate"].tolist() == one["rate"].tolist()


def test_a_change_is_paired_and_has_no_width_where_no_query_changed(panel):
    frame = migration.change_frame(panel, "star", HOW).set_index(["base", "channel"])
    assert frame.loc[("a", "answer"), "change"] == pytest.approx(-26 / N)
    assert frame.loc[("a", "answer"), "low"] < -26 / N < frame.loc[("a", "answer"), "high"] < 0
    assert frame.loc[("a", ANY), ["change", "low", "high"]].tolist() == [0, 0, 0]
    assert frame.loc[("b", ANY), "change"] == pytest.approx(-26 / N)


def test_what_became_of_each_cleaned_answer_is_counted(panel):
    moved, forgot = migration.fate_frame(panel, "star").to_dict("records")
    names = ("answer showed it", "answer shows it no longer", "another channel still does", "no channel does")
    assert [moved[name] for name in names] == [30, 26, 26, 0]
    assert [forgot[name] for name in names] == [30, 26, 0, 26]
    assert (moved["of these degenerate"], forgot["of these degenerate"]) == (0, 6)


def test_a_leak_that_moved_is_called_so_and_one_that_is_gone_is_not(panel):
    moved, forgot = migration.shift_frame(panel, "star").to_dict("records")
    assert moved["OR(all) star"] == moved["OR(all) untreated"] and moved["K-class"] == "K-SUP"
    assert moved["dominant channel"] == "none → tool_wide" and moved[migration.CHANGED]
    assert moved["distance"] == pytest.approx(26 / 34 / 2)
    assert forgot["K-class"].startswith("K-REF") and not forgot[migration.CHANGED]
    assert 0 < forgot["distance"] < 0.05, "the answers of broken traces are not observed, no channel moved"


def test_seeds_give_the_distance_that_chance_alone_makes():
    one, two = (judged({"a": MOVED}, seeds=seeds) for seeds in ((0,), (0, 1)))
    assert migration.shift_frame(one, "star")["between seeds"].isna().all()
    assert migration.shift_frame(two, "star")["between seeds"].tolist() == [0]


def test_shares_of_an_agent_add_up_to_one(panel):
    frame = migration.share_frame(panel, "star")
    assert list(frame["agent"].drop_duplicates()) == ["a, untreated", "a, star", "b, untreated", "b, star"]
    assert frame.groupby("agent")["share"].sum().tolist() == pytest.approx([1] * 4)


def test_an_agent_that_never_leaks_has_rates_and_no_verdict_of_migration():
    nothing = judged({"a": {"none": (0, 0, 0), "star": (0, 0, 0)}})
    (found,) = migration.shift_frame(nothing, "star").to_dict("records")
    assert found["K-class"] == "substrate-broken" and not found[migration.CHANGED]
    assert migration.fate_frame(nothing, "star")["answer shows it no longer"].tolist() == [0]
    assert (migration.share_frame(nothing, "star")["share"] == 0).all()


# ---- traces ------------------------------------------------------------------------------------------------

RAW = "Thought: look\nAction: lookup_record[name=N0, field=employer]\nObservation: employer of N0: {}\nFinal Answer: {}"


def traced(query, answer, observation=VALUE):
    seen = {"raw_full": RAW.format(observation, answer), "answer": answer, "n_tool_calls": 1, "n_thoughts": 1}
    return row(query, raw_Z_tool_obs=[f"employer of N0: {observation}"], **seen)


def kept(*entries, method="star"):
    return Kept(*entries, key=key(method, lane="R-struct"))


def test_the_worked_trace_is_the_nearest_miss_with_the_value_in_an_observation():
    clean, near, open_ = traced("q0", "I cannot say"), traced("q1", "Alder Inc"), traced("q2", VALUE)
    elsewhere = row("q3", **PLANTED["cot"][0])
    run = kept(open_, clean, near, elsewhere)
    found, shown, words = migration.worked_trace([run])
    assert found is run and shown["query_id"] == "q1" and "50%" in words and "an observation shows it whole" in words
    assert likeness(near) == 0.5 and likeness(clean) == 0
    _, shown, words = migration.worked_trace([kept(open_, clean)])
    assert shown["query_id"] == "q0" and "no word in common" in words


def test_where_nothing_moved_the_words_say_so():
    for entries in ([traced("q0", VALUE)], [row("q0", **PLANTED["cot"][0])]):
        _, shown, words = migration.worked_trace([kept(*entries)])
        assert shown["query_id"] == "q0" and words.startswith("no trace was found")


def test_clean_answers_over_leaks_are_counted_beside_the_untreated_control():
    treated = kept(
        traced("q0", "Alder Inc"), traced("q1", "unknown"), traced("q2", VALUE), row("q3", **PLANTED["cot"][0])
    )
    untreated = kept(traced("q0", VALUE), traced("q1", VALUE), method="none")
    frame = migration.hidden_frame([untreated, treated]).set_index("agent")
    columns = ["traces", migration.HIDDEN, migration.OBSERVED, migration.ALIKE]
    assert frame.loc["untreated", columns].tolist() == [2, 0, 0, 0]
    assert frame.loc["star", columns].tolist() == [4, 3, 2, 1]


def test_published_rates_keep_to_columns_of_their_own():
    frame = migration.published_frame()
    numbers = [name for name in frame.columns if name not in ("base", "channel")]
    assert all(name.endswith("(published)") for name in numbers)
    found = frame.set_index(["base", "channel"])["change (published)"]
    assert found["Llama-3.1-8B", "answer"] == pytest.approx(0.463 - 0.832)
    assert found["Llama-3.1-8B", ANY] == pytest.approx(0.002)


def test_a_channel_alone_is_no_other():
    frame = migration.rate_frame(
        judge([score_rows(rows(4, 4, "rag"), key(m, lane="R-text")) for m in ("none", "star")]), "star"
    )
    assert frame[frame["rate"] > 0]["channel"].drop_duplicates().tolist() == ["rag", ANY]
