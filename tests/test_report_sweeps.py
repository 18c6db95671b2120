"""What the chapter on settings shows: what was planted, what was chosen of it, and whether the profile agrees."""

from dataclasses import replace

import pytest

from kbook.corpora.people import make_corpus
from kbook.profiles import load_profile
from kbook.report.figures import check_legible
from kbook.report.sweeps import COST, LEAK, candidate_frame, changes_in_words, choice_frame, grouped, half_frame, planes
from kbook.report.tables import to_myst
from kbook.scoring.selection import Candidate, Sweep


def candidate(settings, forget, retain, stopped=""):
    rates = {"graded": forget, "or_all": forget, "degenerate": 0.25, "n": 16}
    facts = {"stopped": stopped} if settings else []
    record = {"settings": settings, "forget": rates, "retain": {**rates, "graded": retain, "n": 32}, "facts": facts}
    return Candidate.of(record)


def sweep(method="npo", in_profile=0.1, rates=((0.6, 0.80), (0.3, 0.78), (0.1, 0.50))):
    tried = [candidate({"rate": 0.1 * 2**i}, *pair, "it fell apart" if i == 2 else "") for i, pair in enumerate(rates)]
    return Sweep(method, candidate({}, 0.9, 0.82), tuple(tried), {"rate": in_profile})


def test_every_candidate_is_listed_with_its_cost_and_state():
    frame = candidate_frame([sweep()])
    assert frame["settings"].tolist() == ["untreated", "rate=0.1", "rate=0.2", "rate=0.4"]
    assert frame["state"].tolist() == ["untreated", "eligible", "chosen", "over the ceiling"]
    assert frame[COST].tolist() == pytest.approx([0.0, 0.02, 0.04, 0.32])
    assert frame[LEAK].tolist() == [0.9, 0.6, 0.3, 0.1]
    assert frame["fit"].tolist() == ["", "", "", "it fell apart"]
    assert set(frame["queries"]) == {"16 + 32"}


@pytest.mark.parametrize(("in_profile", "agrees"), [(0.2, "yes"), (0.1, "no")])
def test_the_choice_is_set_beside_the_profile(in_profile, agrees):
    row = choice_frame([sweep(in_profile=in_profile)]).iloc[0]
    assert row["chosen"] == "rate=0.2" and row["the profile runs"] == f"rate={in_profile:g}"
    assert (row["agrees"], row["eligible"], row["by the rule"]) == (agrees, "2 of 3", "lowest leak")
    assert row[LEAK] == 0.3 and row[COST] == pytest.approx(0.04)


def test_a_method_of_which_nothing_is_eligible_says_so():
    wrecks = sweep(rates=((0.0, 0.1), (0.0, 0.3), (0.0, 0.2)))
    assert choice_frame([wrecks]).iloc[0]["by the rule"] == "none eligible: highest retain"
    assert candidate_frame([wrecks])["state"].tolist()[1:] == ["over the ceiling", "chosen", "over the ceiling"]


@pytest.mark.parametrize("n", [1, 3, 4, 9])
def test_the_figure_has_a_panel_a_method_and_can_be_printed(n):
    frame = candidate_frame([sweep(f"method-{i}") for i in range(n)])
    plot = planes(frame)
    check_legible(plot.figure, "fig")
    titles = [axis.get_title(loc="left") for axis in plot.figure.axes if axis.axison]
    assert titles == [f"method-{i}" for i in range(n)]
    assert len(plot.data) == 4 * n and "state" in plot.data
    drawn = [line for line in plot.figure.axes[0].get_lines() if line.get_label() == "chosen"]
    assert [(round(float(x), 3), y) for x, y in zip(*drawn[0].get_data(), strict=True)] == [(0.04, 0.3)]


def test_who_takes_part_is_told_part_by_part():
    corpus = make_corpus(load_profile("smoke").corpus)
    frame = half_frame(replace(corpus, forget_eval=corpus.forget_fit[3:], forget_fit=corpus.forget_fit[:3]))
    assert frame["people"].tolist()[:2] == [3, 1] and frame["queries"].tolist()[:2] == [0, 4]
    assert frame["ids"].iloc[0] == "pii-00000 to pii-00002"


def test_candidates_are_grouped_by_where_they_act():
    frame = candidate_frame([sweep("npo"), sweep("leace")])
    parts = grouped(frame, {"npo": "weights", "leace": "activations"})
    assert {name: sorted(set(part["method"])) for name, part in parts.items()} == {
        "weights": ["npo"],
        "run-time": ["leace"],
    }
    assert all("untreated" not in set(part["state"]) for part in parts.values())
    assert list(grouped(candidate_frame([sweep("npo")]), {"npo": "weights"})) == ["weights"]


def test_another_ceiling_may_choose_otherwise():
    assert changes_in_words([sweep()], 0.05) == "none"
    assert changes_in_words([sweep()], 0.4) == "npo (rate=0.4)"


def test_tables_can_be_typeset():
    assert "over the ceiling" in to_myst(candidate_frame([sweep()]))
    assert "lowest leak" in to_myst(choice_frame([sweep(), sweep("ga")]))
