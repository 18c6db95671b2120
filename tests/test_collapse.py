"""A method that breaks an agent step by step: its rates, factors, endings and ranks are those that were planted."""

import math

import pytest
from planted_panel import mixed, planted_panel
from transcript_factory import key

from kbook.report import collapse
from kbook.report.collapse import ending_frame, ranking_frame, sweep_curves, sweep_frame
from kbook.report.fits import NO_OP, Note
from kbook.scoring.cells import score_rows
from kbook.scoring.panel import judge
from kbook.scoring.verdicts import k_score
from kbook.store import Spec, Store

N = 20


# strength of the method → (leaking on forget, broken on forget, leaking on retain, broken on retain)
STEPS = {0.0: (16, 0, 16, 0), 1.0: (12, 2, 12, 2), 2.5: (0, 18, 0, 18)}


VALUES = {f"sigma-{sigma:g}": sigma for sigma in STEPS if sigma}


@pytest.fixture(scope="module")
def panel():
    cells = []
    for sigma, (forget, broken_forget, retain, broken_retain) in STEPS.items():
        name = {"method": "noise", "variant": f"sigma-{sigma:g}"} if sigma else {"method": "none"}
        cells.append(score_rows(mixed(N, forget, broken_forget), key(split="forget", **name)))
        cells.append(score_rows(mixed(N, retain, broken_retain), key(split="retain", **name)))
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


WRECKS, FORGETS, IDLE = (0, 20, 0, 20), (2, 0, 16, 0), (16, 0, 16, 0)
HALF = (0, 8, 16, 0)  # of the sixteen queries that leaked, eight fall silent and eight break


@pytest.fixture(scope="module")
def methods():
    return planted_panel(N, {"none": IDLE, "wrecks": WRECKS, "forgets": FORGETS, "idle": IDLE, "half": HALF})


def test_a_wrecked_method_is_first_by_leak_and_last_by_score():
    frame = ranking_frame(planted_panel(N, {"none": IDLE, "wrecks": WRECKS, "forgets": FORGETS, "idle": IDLE}))
    frame = frame.set_index("method")
    assert list(frame.index) == ["wrecks", "forgets", "idle"]
    assert frame["rank by leak"].to_dict() == {"wrecks": 1, "forgets": 2, "idle": 3}
    assert frame["rank by K-Score"].to_dict() == {"forgets": 1, "idle": 2, "wrecks": 3}
    assert frame["eligible"].to_dict() == {"wrecks": "no", "forgets": "yes", "idle": "yes"}
    assert frame.loc["wrecks", "degenerate"] == 1


def test_points_hold_what_is_suppressed_and_what_is_left_of_it(methods):
    points = collapse.score_points(ranking_frame(methods), ["wrecks", "forgets"])
    values = points.set_index(["method", "figure"])["value"]
    assert values["wrecks", "suppression"] == 1 and values["wrecks", "K-Score"] == pytest.approx(0, abs=1e-9)
    assert values["forgets", "suppression"] == values["forgets", "K-Score"] == pytest.approx(0.9)
    assert points["method"].drop_duplicates().tolist()[:2] == ["wrecks", "forgets"]


def test_suppression_is_split_into_silence_and_breaking(methods):
    frame = collapse.breaking_frame(methods, ["half"]).set_index("method")
    counts = frame[["leaked untreated", "no longer leak", "of these broken"]]
    assert counts.loc["wrecks"].tolist() == [16, 16, 16] and counts.loc["half"].tolist() == [16, 16, 8]
    assert counts.loc["forgets"].tolist() == [16, 14, 0] and counts.loc["idle"].tolist() == [16, 0, 0]
    assert frame["by breaking"].to_dict() == {"half": True, "forgets": False, "idle": False, "wrecks": True}
    assert math.isnan(frame.loc["idle", "share broken"])
    assert collapse.breakers_in_words(frame.reset_index()) == "half (P), wrecks (P)"


def test_a_query_that_never_leaked_is_not_suppressed_when_it_breaks():
    """Four never leaked; the method breaks exactly them."""
    before = score_rows(mixed(N, 16, 0), key())
    wrecks = [{**row, "query_id": f"q{16 + i}"} for i, row in enumerate(mixed(4, 0, 4))]
    after = score_rows([*mixed(N, 16, 0)[:16], *wrecks], key("ga"))
    (row,) = collapse.breaking_frame(judge([before, after]), ["ga"]).to_dict("records")
    assert (row["no longer leak"], row["of these broken"], row["by breaking"]) == (0, 0, False)


def test_nobody_breaks_is_said_in_words_and_an_idle_fit_is_named(methods):
    frame = collapse.breaking_frame(methods, [], [Note("demo", "P", "idle", NO_OP, "")]).set_index("method")
    assert frame["fit"].to_dict() == {"forgets": "–", "half": "–", "wrecks": "–", "idle": NO_OP}
    assert collapse.breakers_in_words(frame.loc[["forgets"]].reset_index()) == "none"


def test_rates_and_endings_are_of_the_chosen_methods_alone(methods):
    rates = collapse.breaker_rates(methods, ["wrecks"])
    assert rates["method"].drop_duplicates().tolist() == ["none", "wrecks"]
    broken = rates.set_index(["method", "quantity"])["share"]
    assert broken["wrecks", "degenerate"] == 1 and broken["none", "degenerate"] == 0
    endings = collapse.breaker_endings(methods, ["wrecks", "half"]).set_index(["method and lane", "ending"])
    assert endings.loc[("half, P", "halted: parse_error"), "share"] == pytest.approx(8 / N)
    assert ("wrecks, P", "ok") not in endings.index and endings.index[0][0] == "wrecks, P"


def test_a_trace_to_read_is_a_silent_wreck_of_each_method_and_lane(tmp_path):
    store = Store(tmp_path)

    def run(method, lane, split, counts):
        place = key(method, split, lane=lane)
        return store.rows(place, Spec({"m": method}, ()), [0], lambda _: mixed(N, *counts), seed=0)

    runs = [
        run("ga", "P", "forget", (4, 16)),
        run("rlace", "C", "forget", (16, 0)),
        run("rlace", "P", "retain", (0, 20)),
    ]
    ((method, lane, found, row),) = collapse.wrecks(runs, ["rlace", "ga"])
    assert (method, lane, found.key) == ("ga", "P", runs[0].key) and row["halted_reason"] == "parse_error"
    assert collapse.wrecks(runs, ["rlace"]) == []
