"""Pairs, families, seeds and power as tables: what was planted is counted, and what cannot be known is said."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm
from transcript_factory import golden_panel, key, row, rows

from kbook.report import statistics
from kbook.report.statistics import ALL_SEEDS, SPREAD
from kbook.scoring.cells import score_rows
from kbook.scoring.panel import judge
from kbook.scoring.power import Simulation

HOW = Simulation(studies=2000)
# seed → queries that leak under each method, of 20
LEAKING = {0: {"none": 16, "eco": 2, "star": 12}, 1: {"none": 14, "eco": 4, "star": 14}}
N = 20


def cells(seeds=tuple(LEAKING)):
    return [
        score_rows(rows(N, leaking), key(method, split, seed))
        for seed in seeds
        for method, leaking in LEAKING[seed].items()
        for split in ("forget", "retain")
    ]


@pytest.fixture(scope="module")
def panels():
    alone = {f"seed {seed}": judge(cells([seed])) for seed in LEAKING}
    return alone | {ALL_SEEDS: judge(cells())}


def test_the_four_kinds_of_pair_are_counted():
    leaking = row(raw_full="Final Answer: Alder Ltd", answer="Alder Ltd")
    clean = row()
    kinds = [(leaking, leaking)] * 5 + [(leaking, clean)] * 4 + [(clean, leaking)] * 2 + [(clean, clean)] * 9
    sides = [[{**pair[side], "query_id": f"q{i}"} for i, pair in enumerate(kinds)] for side in (0, 1)]
    panel = judge([score_rows(sides[0], key("none")), score_rows(sides[1], key("eco"))])
    (found,) = statistics.pair_frame(panel).to_dict("records")
    assert [found[name] for name in ("both leak", "only untreated", "only treated", "neither")] == [5, 4, 2, 9]
    assert found["p, paired"] == pytest.approx(2 * (1 + 6 + 15) / 64)


def test_pairing_finds_what_an_unpaired_test_does_not():
    """Ten queries of a hundred stop leaking and none begins: certain by pairs, lost among two rates."""
    panel = judge([score_rows(rows(100, 60), key("none")), score_rows(rows(100, 50), key("eco"))])
    (found,) = statistics.pair_frame(panel).to_dict("records")
    assert found["p, paired"] == pytest.approx(2 * 0.5**10) and found["p, unpaired"] > 0.1


def test_the_same_two_rates_are_certain_or_not_by_their_pairs():
    frame = statistics.example_frame()
    assert (frame.iloc[:, :4].sum(axis=1) == 100).all() and frame["p, unpaired"].nunique() == 1
    assert frame["p, paired"].is_monotonic_increasing
    assert frame["p, paired"].iloc[0] < 0.01 < frame["p, unpaired"].iloc[0] < frame["p, paired"].iloc[-1]


def test_a_family_is_ranked_and_found_exactly_below_the_line_or_before_a_rank_that_is():
    frame = statistics.family_frame(golden_panel())
    assert frame.groupby("family").size().to_dict() == {"forget": 8, "retain": 8}
    for _, family in frame.groupby("family"):
        assert family["rank"].tolist() == list(range(1, 9)) and family["p"].is_monotonic_increasing
        below = family["p"].to_numpy() < family["line"].to_numpy()
        last = np.flatnonzero(below).max() + 1 if below.any() else 0
        assert family["found"].tolist() == [rank <= last for rank in range(1, 9)]


def test_seeds_stand_beside_their_pool_and_its_interval_is_narrower():
    frame = statistics.seed_frame(golden_panel())
    assert len(frame) == 12 * 4 and list(frame["lane"].unique()) == ["P", "C", "R-text", "R-struct"]
    pooled = frame[frame["seed"] == ALL_SEEDS]
    assert set(pooled["n"]) == {90} and set(frame.loc[frame["seed"] == "seed 0", "n"]) == {30}
    assert statistics.narrowing(frame) == pytest.approx(np.sqrt(3), rel=0.15)


def test_an_interval_of_no_width_says_nothing_about_narrowing():
    frame = statistics.seed_frame(judge(cells([0])))
    certain = frame.assign(low=frame["OR(all)"], high=frame["OR(all)"])
    assert statistics.narrowing(certain) == 1 and statistics.narrowing(frame) == 1


def test_the_bootstrap_interval_is_as_wide_as_theory_says():
    frame = statistics.seed_frame(golden_panel())
    middling = frame[(frame["OR(all)"] > 0.3) & (frame["OR(all)"] < 0.7) & (frame["seed"] == ALL_SEEDS)]
    theory = 2 * norm.ppf(0.975) * np.sqrt(middling["OR(all)"] * (1 - middling["OR(all)"]) / middling["n"])
    assert len(middling) and np.allclose(middling["high"] - middling["low"], theory, rtol=0.15)


def test_the_verdict_of_each_seed_stands_beside_that_of_all(panels):
    frame = statistics.seed_verdict_frame(panels).set_index("method")
    assert list(frame.columns) == ["lane", "seed 0", "seed 1", ALL_SEEDS, "same kind"]
    assert frame.loc["eco", "same kind"] and frame.loc["eco", ALL_SEEDS].startswith("K-REF")
    assert not frame.loc["star", "same kind"]


def test_the_spread_is_the_distance_of_the_seeds_and_hides_a_smaller_lead(panels):
    frame = statistics.spread_frame(panels)
    by_method = frame.set_index("method")
    assert by_method[SPREAD].to_dict() == pytest.approx({"eco": 0.8 * 0.5 - 0.9 * 0.3, "star": 0.4 * 0.8 - 0.3 * 1.0})
    (found,) = statistics.close_frame(frame).to_dict("records")
    assert (found["better"], found["worse"], found["exceeds the spread"]) == ("eco", "star", "no")
    assert found["distance"] == pytest.approx(0.85 * 0.4 - 0.35 * 0.9)
    assert statistics.spread_in_words(frame) == "0.075 in the median and 0.130 at most"


def test_a_lead_beyond_the_spread_counts(panels):
    frame = statistics.spread_frame(panels).assign(**{SPREAD: 0.01})
    assert statistics.close_frame(frame)["exceeds the spread"].tolist() == ["yes"]


def test_one_seed_has_no_spread_and_no_neighbour_is_told_apart():
    one = judge(cells([0]))
    frame = statistics.spread_frame({"seed 0": one, ALL_SEEDS: one})
    assert frame[SPREAD].isna().all()
    assert set(statistics.close_frame(frame)["exceeds the spread"]) == {"unknown"}
    assert "two seeds" in statistics.spread_in_words(frame)


def test_published_gaps_are_those_between_neighbours_of_one_base():
    frame = statistics.published_gaps()
    gaps = frame.set_index(["base", "method"])["ahead of the next (published)"]
    assert gaps[("Mistral-7B", "RMU")] == pytest.approx(0.751 - 0.434)
    assert np.isnan(gaps[("Llama-3.1-8B", "ELM")]) and np.isnan(gaps[("Mistral-7B", "LLMU")])
    assert frame.columns[2:].str.endswith("(published)").all()


def test_power_grows_with_the_fall_and_the_size_and_falls_with_new_leaks():
    frame = statistics.power_frame([50, 200], [0.0, 0.1], 0.2, HOW)
    assert len(frame) == 2 * 2 * 21
    last = frame[frame[statistics.FALL] == 0.2].set_index([statistics.NEW, "pairs"])["power"]
    assert (
        last[("0% begin to leak", "n = 200")]
        > last[("10% begin to leak", "n = 200")]
        > last[("10% begin to leak", "n = 50")]
    )
    assert frame.loc[frame[statistics.FALL] == 0, "power"].max() <= 0.06


def test_a_small_gain_is_below_what_can_be_found():
    (few, many) = statistics.detectable_frame([100, 2000], [0.02], 0.02, HOW).to_dict("records")
    assert few["found with power 0.8"] > 0.05 and few["power for 0.02"] < 0.2
    assert many["found with power 0.8"] < 0.03 and many["power for 0.02"] > 0.8


def test_a_correlation_is_cut_to_what_the_rates_allow():
    frame = statistics.relative_frame([0.1, 0.3, 0.682], 0.3, 0.7, 600, HOW)
    assert isinstance(frame, pd.DataFrame)
    assert frame["correlation"].tolist() == pytest.approx([0.7, 0.7, 0.652], abs=0.001)
    assert frame["power"].is_monotonic_increasing and frame["power"].iloc[1] > 0.95
