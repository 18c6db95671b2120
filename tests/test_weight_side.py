"""Findings of weight-side benchmarks: planted knowledge is seen by every one of them, its absence by none."""

import math
from dataclasses import replace

import numpy as np
import pytest
from probe_factory import N, probe_rows, probes
from transcript_factory import key, row

from kbook.errors import KBookError
from kbook.scoring.cells import score_rows
from kbook.scoring.inference import Bootstrap
from kbook.scoring.weight_side import (
    BELOW,
    CLEAN,
    LEAK,
    MEASURES,
    UNKNOWN,
    attack,
    findings,
    overlap,
    read_probes,
    shown_rate,
    utilities,
)

HOW = Bootstrap(resamples=200)


def verdicts(model, clean):
    return {name: found.verdict for name, found in findings(model, clean, HOW).items()}


def test_every_measure_sees_what_was_planted_and_only_that():
    clean = probes("retain")
    assert set(verdicts(probes("forget", "retain"), clean).values()) == {LEAK}
    assert set(verdicts(clean, clean).values()) == {CLEAN}


def test_another_model_that_knows_as_little_is_clean():
    """The control: other random losses, the same ignorance."""
    found = verdicts(probes("retain", seed=1), probes("retain", seed=0))
    assert set(found.values()) == {CLEAN}


def test_the_same_model_differs_from_itself_in_nothing():
    model = probes("retain")
    found = findings(model, model, HOW)
    assert [f.value for f in found.values()] == pytest.approx([f.clean for f in found.values()])
    assert found["TOFU", "forget quality"].value == 1 and found["MUSE", "PrivLeak"].value == 0


def test_a_model_that_was_driven_beyond_ignorance_is_below_clean():
    worse = probe_rows(("retain",))
    for entry in worse:
        if entry["group"] == "forget" and entry["kind"] == "text":
            entry["losses"] = [loss + 20 for loss in entry["losses"]]
        elif entry["group"] == "forget":
            entry["nll_again"][0] += 20
    found = verdicts(read_probes(worse), probes("retain"))
    below = {("TOFU", "forget quality"), ("MUSE", "PrivLeak"), ("LUME", "membership AUC")}
    assert {name for name, verdict in found.items() if verdict == BELOW} == below
    assert found["WMDP", "four-way choice"] == CLEAN


def test_values_and_intervals_are_those_of_the_formulas():
    found = findings(probes("forget", "retain"), probes("retain"), HOW)
    for name in (("TOFU", "ROUGE-L recall"), ("MUSE", "verbatim memory"), ("LUME", "knowledge")):
        assert found[name][:3] == (1, 1, 1)
    assert found["TOFU", "probability"].value == pytest.approx(math.exp(-0.05))
    assert found["WMDP", "four-way choice"].value == 1 and 0 < found["WMDP", "four-way choice"].clean < 0.6
    assert found["LUME", "membership AUC"].value == 1
    assert found["MUSE", "PrivLeak"].value == pytest.approx(-100)
    assert found["TOFU", "forget quality"].value < 1e-6 and math.isnan(found["TOFU", "forget quality"].lo)


def test_one_leak_among_many_questions_is_within_the_noise_and_half_of_them_are_not():
    """A paired interval, not a glance at two means."""
    few, half = probe_rows(("retain",)), probe_rows(("retain",))
    half[: N // 2] = probe_rows(("forget", "retain"))[: N // 2]
    few[0] = half[0]
    clean, name = probes("retain"), ("LUME", "knowledge")
    assert verdicts(read_probes(few), clean)[name] == CLEAN
    assert verdicts(read_probes(half), clean)[name] == LEAK


def test_models_that_were_asked_other_things_are_not_compared():
    with pytest.raises(KBookError, match="asked different things.*same profile"):
        findings(probes("forget"), probes("forget", n=3), HOW)


def test_without_rows_nothing_is_said():
    nothing = read_probes([])
    found = findings(nothing, nothing, HOW)
    assert set(found) == set(MEASURES) and {f.verdict for f in found.values()} == {UNKNOWN}
    assert all(math.isnan(value) for value in utilities(nothing).values()) and math.isnan(attack(nothing, "min_k"))


def test_a_model_that_gives_no_numbers_is_no_clean_model():
    broken = probe_rows(("retain",))
    for entry in broken:
        for name in {"nll", "nll_again", "losses"} & set(entry):
            entry[name] = [None] * len(entry[name])
    found = verdicts(read_probes(broken), probes("retain"))
    assert found["TOFU", "probability"] == found["MUSE", "PrivLeak"] == found["TOFU", "forget quality"] == UNKNOWN
    assert found["LUME", "membership AUC"] == found["WMDP", "four-way choice"] == UNKNOWN


def test_the_answer_that_shows_a_value_need_not_be_the_value_alone():
    asked = probe_rows(("forget",))[:1]
    asked[0]["answer"] = "I think it is ALDER 0  Ltd, is it not?"
    found = read_probes(asked).answers["forget"]
    assert (found.shown[0], found.exact[0], found.recall[0]) == (1, 0, 1) and found.f1[0] < 1


def test_queries_are_counted_by_who_shows_their_value():
    """Ten queries: the agent shows 0 to 5, a direct question 4 to 7."""
    answers = read_probes(probe_rows((), n=10)[:10]).answers["forget"]
    answers = replace(answers, shown=np.array([i in range(4, 8) for i in range(10)], dtype=float))
    shown = {"raw_full": "Final Answer: Alder Ltd", "answer": "Alder Ltd"}
    traces = [row(f"forget-{i}::employer", **(shown if i < 6 else {})) for i in range(10)]
    cells = [score_rows(traces, key()), score_rows([*traces[:5], row("never asked", **shown)], key(seed=1))]
    assert overlap(cells[:1], answers) == (2, 4, 2, 2)
    assert overlap(cells, answers) == (2 + 1, 4 + 4, 2, 2)
    assert overlap([], answers) == (0, 0, 0, 0)


def test_the_rate_of_shown_values_has_its_interval():
    (value,), (low,), (high,) = shown_rate(probes("retain").answers["forget"], HOW)
    assert value == low == high == 0
    half = replace(probes().answers["forget"], shown=np.arange(N) % 2.0)
    (value,), (low,), (high,) = shown_rate(half, HOW)
    assert low < value == 0.5 < high


# ---- utility -----------------------------------------------------------------------------------------------


def test_utility_is_about_the_retain_set_and_the_aggregate_about_both():
    knows_all, kept, forgot_all = (utilities(probes(*g)) for g in (("forget", "retain"), ("retain",), ()))
    assert knows_all["TOFU: model utility"] == pytest.approx(kept["TOFU: model utility"], abs=0.01)
    assert kept["TOFU: model utility"] > 0.9 and forgot_all["TOFU: model utility"] < 0.2
    assert knows_all["LUME: task aggregate"] == 0 == forgot_all["LUME: task aggregate"]
    assert kept["LUME: task aggregate"] == pytest.approx(1.0)
    assert kept["LUME: score without MMLU"] > 0.8


def test_the_aggregate_is_a_harmonic_mean_of_four():
    model = probes("retain")
    halves = replace(model.answers["forget"], exact=np.full(N, 0.5))
    model = replace(model, answers={**model.answers, "forget": halves})
    assert utilities(model)["LUME: task aggregate"] == pytest.approx(4 / (1 + 1 + 1 + 2))
