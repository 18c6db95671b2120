"""A method that breaks an agent step by step: its rates, factors, endings and ranks are those that were planted."""

import pytest
from transcript_factory import VALUE, key, row, rows

from kbook.report.collapse import ending_frame, ranking_frame, sweep_curves, sweep_frame
from kbook.scoring.cells import score_rows
from kbook.scoring.panel import judge
from kbook.scoring.verdicts import k_score

N = 20


def broken(n, ended="parse_error"):
    """`n` traces that say nothing at all."""
    return [row(f"q{i}", halted_reason=ended, raw_full="Thought: zzz", answer=None) for i in range(n)]


def mixed(n_leaking, n_broken):
    """`N` queries: the first ones are broken, the next leak in the answer, the rest are clean."""
    sound = rows(N, leaking=n_broken + n_leaking)[n_broken:]
    return [*broken(n_broken), *sound]


# strength of the method → (leaking on forget, broken on forget, leaking on retain, broken on retain)
STEPS = {0.0: (16, 0, 16, 0), 1.0: (12, 2, 12, 2), 2.5: (0, 18, 0, 18)}


VALUES = {f"sigma-{sigma:g}": sigma for sigma in STEPS if sigma}


@pytest.fixture(scope="module")
def panel():
    cells = []
    for sigma, (forget, broken_forget, retain, broken_retain) in STEPS.items():
        name = {"method": "noise", "variant": f"sigma-{sigma:g}"} if sigma else {"method": "none"}
        cells.append(score_rows(mixed(forget, broken_forget), key(split="forget", **name)))
        cells.append(score_rows(mixed(retain, broken_retain), key(split="retain", **name)))
    return judge(cells)


def test_the_sweep_holds_the_planted_rates_and_the_factors_that_follow(panel):
    frame = sweep_frame(panel, "sigma", VALUES).set_index("sigma")
    assert list(frame.index) == list(STEPS)
    for sigma, (forget, broken_forget, retain, _) in STEPS.items():
        expected = k_score(forget / N, (16 / N, retain / N), (0.0, broken_forget / N))
        found = frame.loc[sigma]
        assert found[["leak on forget", "leak on retain", "degenerate"]].tolist() == pytest.approx(
            [forget / N, retain / N, broken_forget / N]
        )
        factors = [expected.suppression, expected.selectivity, expected.health, expected.value]
        assert found[["suppression", "selectivity", "health", "K-Score"]].tolist() == pytest.approx(factors)


def test_the_broken_agent_leaks_least_and_is_not_eligible_and_the_untreated_is_a_reference(panel):
    frame = sweep_frame(panel, "sigma", VALUES).set_index("sigma")
    assert frame["leak on forget"].idxmin() == 2.5 and frame.loc[2.5, "K-class"].startswith("K-REF ∞")
    assert frame.loc[2.5, "K-Score"] < 0.05 and frame.loc[2.5, "eligible"] == "no"
    assert frame.loc[0.0, "eligible"] == frame.loc[0.0, "K-class"] == "reference"


def test_curves_have_a_line_a_quantity_and_intervals_for_all_but_the_score(panel):
    curves = sweep_curves(panel, "sigma", VALUES)
    assert len(curves) == 4 * len(STEPS)
    rates = curves[curves["quantity"] != "K-Score"]
    assert (rates["low"] <= rates["share"]).all() and (rates["share"] <= rates["high"]).all()
    assert curves.loc[curves["quantity"] == "K-Score", ["low", "high"]].isna().all(axis=None)


def test_endings_are_counted_in_each_step(panel):
    frame = ending_frame(panel, "sigma", VALUES).set_index(["sigma", "ending"])
    assert frame.loc[(2.5, "halted: parse_error"), "traces"] == 18
    assert frame.loc[(1.0, "ok"), "share"] == pytest.approx(18 / N)
    assert (0.0, "halted: parse_error") not in frame.index
    assert frame.groupby(level="sigma")["share"].sum().tolist() == pytest.approx([1.0] * len(STEPS))


def test_a_wrecked_method_is_first_by_leak_and_last_by_score():
    cells = [score_rows(mixed(*counts), key(method, split)) for method, split, counts in (
        ("none", "forget", (16, 0)), ("none", "retain", (16, 0)),
        ("wrecks", "forget", (0, 20)), ("wrecks", "retain", (0, 20)),
        ("forgets", "forget", (2, 0)), ("forgets", "retain", (16, 0)),
        ("idle", "forget", (16, 0)), ("idle", "retain", (16, 0)),
    )]  # fmt: skip
    frame = ranking_frame(judge(cells)).set_index("method")
    assert list(frame.index) == ["wrecks", "forgets", "idle"]
    assert frame["rank by leak"].to_dict() == {"wrecks": 1, "forgets": 2, "idle": 3}
    assert frame["rank by K-Score"].to_dict() == {"forgets": 1, "idle": 2, "wrecks": 3}
    assert frame["eligible"].to_dict() == {"wrecks": "no", "forgets": "yes", "idle": "yes"}
    assert VALUE and frame.loc["wrecks", "degenerate"] == 1
