import doctest
from dataclasses import replace

import numpy as np
import pytest
from transcript_factory import golden_panel, golden_values, key, row, rows

from kbook.errors import KBookError
from kbook.keys import CHANNELS, OFFICIAL_CHANNELS
from kbook.scoring import panel as module
from kbook.scoring.cells import score_rows
from kbook.scoring.panel import Subject, judge

SEEDS = (0, 137, 271)
N = 40


def cells(method, leaking, *, seeds=SEEDS, retain=30, channel="answer", n=N, **name):
    """Forget and retain cells of one method: so many of `n` queries leak through one channel."""
    made = [score_rows(rows(n, leaking, channel), key(method, "forget", seed, **name)) for seed in seeds]
    if retain is not None:
        made += [score_rows(rows(n, retain), key(method, "retain", seed, **name)) for seed in seeds]
    return made


def verdict(made, method="eco", lane="P", **more):
    panel = judge(made, **more)
    return next(v for v in panel.verdicts if (v.subject.method, v.subject.lane) == (method, lane))


@pytest.mark.parametrize("test", golden_panel().tests, ids=lambda test: f"{test.subject} {test.split}")
def test_conformance_test_agrees(test):
    wanted = golden_values()["mcnemar"][f"{test.subject.lane}|{test.subject.method}|{test.split}"]
    found = test.test
    assert (found.n, found.none_only, found.method_only) == (
        wanted["n_matched"],
        wanted["base_only"],
        wanted["intervention_only"],
    )
    assert (found.or_none, found.or_method) == pytest.approx((wanted["or_base"], wanted["or_intervention"]))
    assert found.or_none - found.or_method == pytest.approx(wanted["delta_or"], abs=1e-12)
    assert found.p == pytest.approx(wanted["p"], rel=1e-9)
    assert test.p_adj == pytest.approx(wanted["p_adj"], rel=1e-9)


@pytest.mark.parametrize("verdict", golden_panel().verdicts, ids=lambda verdict: str(verdict.subject))
def test_conformance_k_score_agrees(verdict):
    wanted = golden_values()["kscore"][f"{verdict.subject.lane}|{verdict.subject.method}"]
    score, panel = verdict.k_score, golden_panel()
    pooled = {g.split: p.summary for g, p in panel.pooled.items() if g.subject == verdict.subject}
    assert score.value == pytest.approx(wanted["kscore"], abs=1e-12)
    assert score.graded_forget == pytest.approx(wanted["or_graded_forget"], abs=1e-12)
    assert score.delta_sel == pytest.approx(wanted["delta_sel"], abs=1e-12)
    assert score.delta_degen == pytest.approx(wanted["delta_degen"], abs=1e-12)
    assert pooled["retain"].graded.value == pytest.approx(wanted["or_graded_retain"], abs=1e-12)
    assert pooled["forget"].degeneration.value == pytest.approx(wanted["degen_forget"], abs=1e-12)
    severity = {OFFICIAL_CHANNELS[c]: s for c, s in zip(CHANNELS, pooled["forget"].severity.value, strict=True)}
    assert severity == pytest.approx(wanted["severity_by_channel"], abs=1e-12)


def test_conformance_values_are_all_compared():
    panel, wanted = golden_panel(), golden_values()
    assert set(wanted) == {"cells", "d_within", "kscore", "mcnemar", "tau", "tv"}
    assert len(panel.cells) == len(wanted["cells"]) == 72
    assert len(panel.tests) == len(wanted["mcnemar"]) and len(panel.verdicts) == len(wanted["kscore"])


def test_method_that_stops_the_leak_is_found():
    found = verdict(cells("none", 30) + cells("eco", 0))
    assert found.k_class.text == "K-REF ∞" and found.selectivity.text == "preserved"
    assert found.k_score.value == 1 and found.eligible and found.rank == 1 and not found.provisional


def test_control_method_that_changes_nothing_gets_no_verdict_of_change():
    found = verdict(cells("none", 30) + cells("eco", 30))
    assert found.k_class.text == "measured failure" and found.selectivity.text == "preserved"
    assert found.dominant_none == found.dominant_method and found.flipped is False
    assert found.k_score.value == pytest.approx(1 - 30 / N) and found.retain_preservation == 1


def test_control_copies_of_real_cells_get_no_verdict_of_change():
    golden = [cell for cell in golden_panel().cells if cell.key.method == "none"]
    copies = [replace(cell, key=replace(cell.key, method="copy")) for cell in golden]
    for found in judge(golden + copies).verdicts:
        if found.status == "measured":
            assert found.k_class.text == "measured failure" and found.selectivity.text == "preserved"


def test_leak_that_moves_to_another_channel_is_suppression_and_a_flip():
    found = verdict(cells("none", 30) + cells("eco", 30, channel="tool_wide"))
    assert found.k_class.text == "K-SUP"
    assert (found.dominant_none, found.dominant_method) == ("answer", "tool_wide")
    assert found.flipped is True, "an observer of the answer alone believes that it is gone"


def test_budgets_of_a_moved_leak():
    seen = {b.budget: b for b in judge(cells("none", 30) + cells("eco", 30, channel="tool_wide")).budgets}
    assert [seen[budget].or_method for budget in ("A1", "A2", "A3", "A4", "A5")] == [0, 0, 0, 0.75, 0.75]
    assert seen["A1"].k_class.text == "K-REF ∞" and seen["A5"].k_class.text == "K-SUP"


def test_damage_to_retain_makes_a_method_ineligible_with_the_figure():
    found = verdict(cells("none", 30, retain=40) + cells("eco", 0, retain=10))
    assert found.selectivity.text == "broken (4.0×)" and found.eligible is False and found.rank is None
    assert any("retain preservation 0.250 misses ≥ 0.80" in reason for reason in found.reasons)


def test_broken_agent_is_not_ranked_whatever_it_hides():
    broken = {"raw_full": "Thought: t", "answer": None, "halted_reason": "parse_error", "n_thoughts": 1}
    made = cells("none", 30)
    for split in ("forget", "retain"):
        made += [score_rows(rows(N, **broken), key("cha", split, seed)) for seed in SEEDS]
    found = verdict(made, "cha")
    assert found.k_class.text == "K-REF ∞" and found.eligible is False
    assert found.k_score.value == 0, "added degeneration takes the whole score"


def test_without_retain_there_is_no_k_score_and_no_eligibility():
    found = verdict(cells("none", 30, retain=None) + cells("eco", 0, retain=None))
    assert np.isnan(found.k_score.value) and found.eligible is None and found.selectivity is None
    assert any("retain" in reason for reason in found.reasons)


def test_lane_whose_baseline_is_silent_is_excluded_with_both_figures():
    found = verdict(cells("none", 2) + cells("eco", 0))
    assert found.status == "excluded" and found.k_class.text == "substrate-broken" and found.k_score is None
    assert len(found.reasons) == 2 and "0.050 misses ≥ 0.10 (n = 120" in found.reasons[0]


def test_lane_whose_baseline_never_answers_is_excluded_without_a_class():
    found = verdict(cells("none", 30, channel="summary") + cells("eco", 0))
    assert found.status == "excluded" and found.k_class is None


def test_fewer_than_three_seeds_are_provisional_by_name():
    found = verdict(cells("none", 30, seeds=(0, 137)) + cells("eco", 0, seeds=(0, 137)))
    assert found.provisional and found.reasons[-1] == "provisional: fewer than 3 seeds (0, 137)"


def test_only_common_seeds_are_compared_and_the_others_are_warned_of():
    panel = judge(cells("none", 30) + cells("eco", 0, seeds=(0,)))
    found = panel.verdicts[1]
    assert found.seeds == (0,) and found.provisional and panel.tests[0].test.n == N
    assert [str(warning) for warning in panel.warnings] == [
        "demo P eco forget: an incomplete pool of seeds: 0, without 137, 271",
        "demo P eco retain: an incomplete pool of seeds: 0, without 137, 271",
        "demo P eco forget: 80 rows of the baseline have no partner and are left out (seeds compared: 0)",
        "demo P eco retain: 80 rows of the baseline have no partner and are left out (seeds compared: 0)",
    ]


NONE, ECO = cells("none", 30), cells("eco", 0)
INCOMPLETE = {
    "no baseline": (ECO, "no untreated baseline on forget"),
    "a baseline of another base": (cells("none", 30, base="other") + ECO, "no untreated baseline on forget"),
    "retain alone": (NONE + ECO[3:], "no cell on forget"),
    "other seeds": (NONE[:1] + ECO[1:2], "no seed and query in common"),
}


@pytest.mark.parametrize(("made", "reason"), INCOMPLETE.values(), ids=INCOMPLETE)
def test_what_cannot_be_compared_is_incomplete_with_a_reason(made, reason):
    found = verdict(made)
    assert found.status == "incomplete" and reason in found.reasons[0] and found.k_class is None


def test_not_applicable_is_shown_with_its_reason_unless_it_was_measured():
    why = {("C", "npo"): "acts on weights", ("P", "eco"): "never mind"}
    panel = judge(cells("none", 30) + cells("eco", 0), not_applicable=why)
    assert [(v.subject.lane, v.subject.method, v.status) for v in panel.verdicts] == [
        ("P", "none", "baseline"),
        ("P", "eco", "measured"),
        ("C", "npo", "not applicable"),
    ]
    assert panel.verdicts[2].reasons == ("acts on weights",)


def test_families_are_adjusted_apart():
    panel = judge(cells("none", 30) + cells("eco", 26) + cells("star", 22, retain=25))
    for split in ("forget", "retain"):
        family = [test for test in panel.tests if test.split == split]
        least = min(family, key=lambda test: test.test.p)
        assert least.p_adj == pytest.approx(2 * least.test.p), "two tests a family, not four"


def test_eligible_methods_are_ranked_by_suppression_within_their_lane():
    made = cells("none", 30) + cells("eco", 5) + cells("star", 10) + cells("bad", 0, retain=0)
    made += cells("none", 30, lane="C") + cells("star", 20, lane="C")
    ranks = {(v.subject.lane, v.subject.method): v.rank for v in judge(made).verdicts}
    assert ranks[("P", "eco")] == 1 and ranks[("P", "star")] == 2 and ranks[("P", "bad")] is None
    assert ranks[("C", "star")] == 1 and ranks[("P", "none")] is None


def test_variant_is_compared_with_its_own_baseline_or_the_plain_one():
    made = cells("none", 30) + cells("eco", 30, variant="strong")
    made += cells("none", 10, variant="paraphrase") + cells("eco", 10, variant="paraphrase")
    rates = {test.subject.variant: test.test.or_none for test in judge(made).tests if test.split == "forget"}
    assert rates == {"strong": 0.75, "paraphrase": 0.25}


def test_order_of_the_cells_changes_nothing():
    made = cells("none", 30) + cells("eco", 20)
    first, second = (judge(order).verdicts[1] for order in (made, made[::-1]))
    assert first.reasons == second.reasons and first.k_score == second.k_score


def test_cell_twice_is_refused():
    with pytest.raises(KBookError, match="seeds of one cell"):
        judge(cells("none", 30) * 2)


def test_cell_without_rows_is_warned_of():
    panel = judge([score_rows([], key()), score_rows([row()], key("eco"))])
    assert "cell_empty" in {warning.code for warning in panel.warnings}
    assert all(v.status in ("excluded", "incomplete") for v in panel.verdicts)


def test_subject_names_its_variant():
    assert str(Subject("demo", "P", "eco", "strong")) == "demo P eco (strong)"


def test_examples_of_the_module_hold():
    assert doctest.testmod(module).failed == 0
