"""Routers and fits as tables: the mixture, what a detector tells of itself, and a no-op that is no failure."""

import math

import pytest
from planted_runs import judged, run
from transcript_factory import rows

from kbook.report import detectors
from kbook.report.detectors import ACCURACY, EXPECTED, SINGULAR, TOLERANCE
from kbook.report.variants import KEPT, LEAK, UNTREATED

# accuracy → leaking on forget and on retain, of 20
PLANTED = {1.0: (2, 16), 0.8: (6, 13), 0.5: (9, 8)}
ORACLES = {f"oracle-{a:g}": a for a in PLANTED}


def runs(planted=PLANTED, untreated=(18, 16)):
    cells = [("none", "", untreated), *(("o3", f"oracle-{a:g}", leaking) for a, leaking in planted.items())]
    return [
        run(rows(20, n), method=method, split=split, variant=variant)
        for method, variant, leaking in cells
        for split, n in zip(("forget", "retain"), leaking, strict=True)
    ]


# ---- routing -----------------------------------------------------------------------------------------------


def test_curves_hold_both_leaks_and_the_mixture_of_the_ends():
    curves = detectors.accuracy_curves(judged(runs()), ORACLES).set_index(["quantity", ACCURACY])
    assert curves.loc[LEAK, "OR(all)"].to_dict() == {0.5: 0.45, 0.8: 0.3, 1.0: 0.1}
    assert curves.loc[KEPT, "OR(all)"].to_dict() == {0.5: 0.4, 0.8: 0.65, 1.0: 0.8}
    expected = curves.loc[EXPECTED]
    assert expected["OR(all)"].to_dict() == pytest.approx({0.5: 0.5, 0.8: 0.8 * 0.1 + 0.2 * 0.9, 1.0: 0.1})
    assert expected[["low", "high"]].isna().all(axis=None)
    measured = curves[curves.index.get_level_values(0) != EXPECTED]
    assert (measured["low"] <= measured["OR(all)"]).all() and (measured["OR(all)"] <= measured["high"]).all()


def test_without_a_perfect_oracle_nothing_is_expected():
    planted = {0.8: (6, 13)}
    curves = detectors.accuracy_curves(judged(runs(planted)), {"oracle-0.8": 0.8})
    assert set(curves["quantity"]) == {LEAK, KEPT}


@pytest.mark.parametrize(("leak", "accuracy"), [(0.1, 1.0), (0.9, 0.0), (0.5, 0.5)])
def test_a_router_is_like_the_oracle_under_which_as_much_leaks(leak, accuracy):
    assert detectors.equivalent_accuracy({"untreated": 0.9, "perfect": 0.1}, leak) == pytest.approx(accuracy)


def test_adapters_that_change_nothing_say_nothing_about_a_router():
    assert math.isnan(detectors.equivalent_accuracy({"untreated": 0.9, "perfect": 0.9}, 0.9))


def test_routers_stand_beside_the_oracle():
    frame = detectors.router_frame(judged(runs()), {"oracle-1": "oracle", "oracle-0.5": "detector"}, "oracle-1")
    assert frame["router"].tolist() == [UNTREATED, "oracle", "detector"]
    alike = frame["like an oracle of"].tolist()
    assert math.isnan(alike[0]) and alike[1:] == pytest.approx([1.0, (0.9 - 0.45) / 0.8])


def test_a_detector_gives_an_account_and_other_fits_give_none():
    told = {"recognised": 0.9, "recognised, paraphrased": 0.7, "false_alarms": 0.1, "false_alarms, paraphrased": 0.2}
    cells = [run([], fit=[{"nu": 0.1, **told}], settings={"nu": 0.1}) for _ in range(2)]
    cells += [run([], fit=[{"oracle_accuracy": 1.0}], settings={"nu": 0.1}), run([])]
    frame = detectors.detector_frame(cells)
    assert frame["messages"].tolist() == ["as fitted", "paraphrased"]
    assert frame["recognised"].tolist() == [0.9, 0.7] and frame["false alarms"].tolist() == [0.1, 0.2]


# ---- fits that find nothing --------------------------------------------------------------------------------


def fit(singular, layer=1, tolerance=0.01):
    found = {"singular": singular, "tolerance": tolerance, "n": 40, "rank": int(singular > tolerance)}
    return {"no_op": singular <= tolerance, "layers": {str(layer): found}}


def leace(singular, *, positions="name", depth=1.0, leaking=12, **names):
    settings = {"positions": positions, "depth": depth}
    return run(rows(20, leaking), fit=[fit(singular)], settings=settings, method="leace", **names)


MODELS = {"P": "injected", "C": "plain", "R-struct": "plain"}


def test_the_same_fit_of_several_cells_counts_once():
    cells = [leace(0.3, lane=lane, split=s) for lane in ("C", "R-struct") for s in ("forget", "retain")]
    frame = detectors.fit_frame([*cells, leace(0.002, lane="P", positions="all")], MODELS)
    assert frame["model"].tolist() == ["plain", "injected"] and frame["layer"].tolist() == [2, 2]
    assert frame["erases"].tolist() == ["a direction", "nothing"]
    assert detectors.fit_frame([run(rows(2))], MODELS).empty


def test_two_depths_of_one_layer_are_one_fit():
    frame = detectors.fit_frame([leace(0.3, depth=0.9), leace(0.3, depth=1.0)], MODELS)
    assert len(frame) == 1


def test_the_tolerance_is_a_line_of_its_own():
    frame = detectors.fit_frame([leace(0.3), leace(0.2, positions="last")], MODELS)
    curves = detectors.singular_curves({"injected": frame})
    assert curves.set_index("positions")[SINGULAR].to_dict() == {"name": 0.3, "last": 0.2, TOLERANCE: 0.01}


def test_labels_by_lot_stand_beside_the_real_ones():
    real, lot = (detectors.fit_frame([leace(s), leace(s / 2, positions="last")], MODELS) for s in (0.3, 0.2))
    frame = detectors.above_chance(real, lot)
    assert frame["labels by lot"].tolist() == [0.2, 0.1] and frame[SINGULAR].tolist() == [0.3, 0.15]
    assert detectors.chance_in_words(frame) == "1.50 to 1.50 times"
    assert "unknown" in detectors.chance_in_words(frame.iloc[:0])


def test_a_no_op_leaves_every_row_and_is_scored_as_no_change():
    splits = ("forget", "retain")
    cells = [run(rows(20, 12), split=split) for split in splits]
    cells += [leace(0.005, variant="idle", split=split) for split in splits]
    cells += [leace(0.3, variant="acts", leaking=2, split=split) for split in splits]
    panel = judged(cells)
    frame = detectors.no_op_frame(panel, cells, {"acts": "acts", "idle": "idle"}).set_index("variant")
    assert frame.loc["idle", ["does", "rows", "rows unchanged", "K-class"]].tolist() == [
        "nothing", 40, 40, "measured failure",
    ]  # fmt: skip
    assert frame.loc["acts", ["does", "rows", "rows unchanged"]].tolist() == ["something", 40, 20]
    assert frame.loc["idle", "K-Score"] == frame.loc[UNTREATED, "K-Score"]
    words = detectors.no_ops_in_words(frame.reset_index())
    assert "leave 40 of 40 rows" in words and words.endswith("measured failure")


def test_where_every_fit_acts_the_words_say_so():
    cells = [run(rows(20, 12)), leace(0.3, variant="acts", leaking=2)]
    frame = detectors.no_op_frame(judged(cells), cells, {"acts": "acts"})
    assert detectors.no_ops_in_words(frame) == "None of these fits is a no-op"
