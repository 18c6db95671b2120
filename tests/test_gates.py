import numpy as np
import pytest
from transcript_factory import VALUE, key, row, rows

from kbook.scoring.cells import pool, score_rows
from kbook.scoring.gates import eligibility, passed, retain_preservation, validity

DEGENERATE = {"raw_full": "Thought: t", "answer": None, "halted_reason": "max_iters", "n_thoughts": 1}


def scored(entries, **name):
    return pool([score_rows(entries, key(**name))])


def by_id(gates):
    return {gate.id: gate for gate in gates}


def test_valid_baseline_passes_both_gates():
    assert passed(validity(scored(rows(10, 1))))


def test_validity_gates_carry_value_threshold_n_and_denominator():
    gates = by_id(validity(scored(rows(20, 1))))
    gate = gates["baseline_or_all"]
    assert (gate.value, gate.threshold, gate.n, gate.passed) == (0.05, 0.10, 20, False)
    assert gate.reason == "baseline OR(all) 0.050 misses ≥ 0.10 (n = 20 all forget rows of the baseline)"


def test_answers_are_judged_over_the_rows_that_have_one():
    mixed = [*rows(1, 1), *(row(f"d{i}", **DEGENERATE) for i in range(9))]
    gate = by_id(validity(scored(mixed)))["baseline_answer_severity"]
    assert (gate.value, gate.n, gate.passed) == (1.0, 1, True)


def test_leak_outside_the_answer_does_not_make_a_lane_valid():
    gates = by_id(validity(scored(rows(10, 10, "summary"))))
    assert gates["baseline_or_all"].passed and gates["baseline_answer_severity"].passed is False


def test_lane_without_any_answer_fails():
    gate = by_id(validity(scored([row(**DEGENERATE, raw_Z_summary=VALUE)])))["baseline_answer_severity"]
    assert (gate.value, gate.n, gate.passed) == (0.0, 0, False)


def test_control_the_baseline_against_itself_is_eligible():
    forget, retain = scored(rows(10, 5)), scored(rows(10, 5), split="retain")
    assert passed(eligibility((forget, forget), (retain, retain)))


@pytest.mark.parametrize(("kept", "holds"), [(8, True), (7, False), (10, True)])
def test_retain_preservation_gate(kept, holds):
    forget = scored(rows(10, 5))
    retain = scored(rows(10, 10), split="retain"), scored(rows(10, kept), split="retain", method="eco")
    gate = by_id(eligibility((forget, forget), retain))["retain_preservation"]
    assert gate.value == pytest.approx(kept / 10) and gate.passed is holds


def test_retain_preservation_of_a_silent_baseline_is_unknown():
    assert np.isnan(retain_preservation(0.0, 0.5)) and retain_preservation(0.5, 0.6) == pytest.approx(1.2)


@pytest.mark.parametrize(("broken", "added", "collapse"), [(2, True, True), (3, False, True), (5, False, False)])
def test_degeneration_gates(broken, added, collapse):
    none = scored(rows(10, 5))
    method = scored([*rows(10 - broken), *(row(f"d{i}", **DEGENERATE) for i in range(broken))], method="eco")
    gates = by_id(eligibility((none, method), (none, none)))
    assert gates["added_degeneration"].value == pytest.approx(broken / 10)
    assert gates["added_degeneration"].passed is added
    assert gates["terminal_collapse"].passed is collapse


def test_collapse_on_retain_alone_is_a_collapse():
    sound, broken = scored(rows(4, 2)), scored([row(f"d{i}", **DEGENERATE) for i in range(4)], split="retain")
    gate = by_id(eligibility((sound, sound), (broken, broken)))["terminal_collapse"]
    assert not gate.passed and "retain" in gate.reason


def test_without_retain_eligibility_is_unknown_unless_it_is_lost_anyway():
    sound = scored(rows(4, 2))
    broken = scored([row(f"q{i}", **DEGENERATE) for i in range(4)], method="eco")
    assert passed(eligibility((sound, sound), None)) is None
    assert passed(eligibility((sound, broken), None)) is False
