"""Variants of a method stand in the order given, behind the untreated agent, with the rates that were planted."""

import pytest
from planted_runs import judged, run
from transcript_factory import rows

from kbook.report.tables import ABSENT
from kbook.report.variants import BROKEN, KEPT, LEAK, UNTREATED, variant_frame, variant_rates

NAMES = {"much": 2.0, "little": 0.5}
# variant → leaking on forget, leaking on retain, of 20
PLANTED = {"": (16, 14), "little": (8, 14), "much": (0, 2), "other": (1, 1)}


@pytest.fixture(scope="module")
def panel():
    runs = []
    for variant, leaking in PLANTED.items():
        for lane in ("R-text", "P"):
            for split, n in zip(("forget", "retain"), leaking, strict=True):
                method = "eco" if variant else "none"
                runs.append(run(rows(20, n), method=method, split=split, lane=lane, variant=variant))
    return judged(runs)


def test_a_row_holds_both_leaks_and_both_verdicts(panel):
    frame = variant_frame(panel, "strength", NAMES)
    assert frame["lane"].tolist() == ["P"] * 3 + ["R-text"] * 3
    assert frame["strength"].tolist() == [UNTREATED, 2.0, 0.5] * 2
    first = frame[frame["lane"] == "P"].set_index("strength")
    assert first[LEAK].tolist() == [0.8, 0.0, 0.4] and first[KEPT].tolist() == [0.7, 0.1, 0.7]
    assert first[BROKEN].tolist() == [0, 0, 0]
    assert first.loc[UNTREATED, "K-class"] == "reference" and first.loc[2.0, "K-class"].startswith("K-REF")
    assert first.loc[UNTREATED, "selectivity"] == ABSENT and first.loc[2.0, "selectivity"].startswith("broken")


def test_what_is_not_named_is_left_out_and_rates_have_intervals(panel):
    rates = variant_rates(panel, "strength", NAMES)
    assert set(rates["strength"]) == {2.0, 0.5} and set(rates["quantity"]) == {LEAK, KEPT, BROKEN}
    assert (rates["low"] <= rates["share"]).all() and (rates["share"] <= rates["high"]).all()
    assert set(rates["n"]) == {20} and len(rates) == 2 * 2 * 3


def test_without_retain_rows_that_side_is_missing():
    panel = judged([run(rows(20, 16)), run(rows(20, 4), method="eco", variant="much")])
    frame = variant_frame(panel, "strength", NAMES)
    assert frame[KEPT].isna().all() and frame["selectivity"].tolist() == [ABSENT, ABSENT]
    assert frame[LEAK].tolist() == [0.8, 0.2]
