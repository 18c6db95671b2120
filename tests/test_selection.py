"""The rule of selection: the ceiling first, then the leak, then the smaller change; and what if nothing qualifies."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbook.errors import KBookError
from kbook.scoring.selection import CEILING, Candidate, Rates, Sweep, choose, in_words

UNTREATED = Rates(0.90, 0.80)


@pytest.mark.parametrize(
    ("tried", "index", "fallback"),
    [
        ([(0.5, 0.80), (0.4, 0.78), (0.6, 0.80)], 1, False),
        ([(0.5, 0.80), (0.0, 0.74)], 0, False),
        ([(0.5, 0.70), (0.0, 0.75)], 1, False),
        ([(0.4, 0.77), (0.4, 0.79), (0.4, 0.84)], 1, False),
        ([(0.4, 0.79), (0.4, 0.81)], 0, False),
        ([(0.4, 0.95)], 0, False),
        ([(0.0, 0.10), (0.1, 0.30), (0.2, 0.30)], 1, True),
    ],
    ids=[
        "lowest leak among the eligible",
        "a lower leak that costs more than the ceiling does not count",
        "a cost of exactly the ceiling is allowed",
        "of equal leaks the smaller change of retain",
        "of equal changes the first",
        "a retain rate that rises costs nothing",
        "none eligible: the highest retain rate, marked",
    ],
)
def test_what_is_chosen(tried, index, fallback):
    choice = choose(UNTREATED, [Rates(*pair) for pair in tried])
    assert (choice.index, choice.fallback) == (index, fallback)


rates = st.builds(Rates, st.floats(0, 1), st.floats(0, 1))


@given(rates, st.lists(rates, min_size=1, max_size=8))
def test_the_choice_is_eligible_if_anything_is_and_leaks_least(untreated, tried):
    choice = choose(untreated, tried)
    allowed = [r for r in tried if untreated.retain - r.retain <= CEILING + 1e-9]
    assert choice.fallback == (not allowed) and sum(choice.eligible) == len(allowed)
    if allowed:
        assert choice.eligible[choice.index] and tried[choice.index].forget == min(r.forget for r in allowed)
    else:
        assert tried[choice.index].retain == max(r.retain for r in tried)


def test_without_candidates_there_is_no_choice():
    with pytest.raises(KBookError, match="no candidate to choose from"):
        choose(UNTREATED, [])


def candidate(settings, forget, retain):
    return Candidate.of({"settings": settings, "forget": {"graded": forget}, "retain": {"graded": retain}})


@pytest.mark.parametrize(("in_profile", "agrees"), [({"beta": 0.2}, True), ({"beta": 0.1}, False)])
def test_a_profile_agrees_if_it_runs_what_was_chosen(in_profile, agrees):
    tried = candidate({"beta": 0.1}, 0.6, 0.8), candidate({"beta": 0.2}, 0.3, 0.8)
    sweep = Sweep("npo", candidate({}, 0.9, 0.8), tried, in_profile)
    assert sweep.chosen.settings == {"beta": 0.2} and sweep.agrees == agrees


def test_settings_in_words():
    assert in_words({"learning_rate": 1e-4, "depths": [0.25, 0.5], "centred": True}) == (
        "learning_rate=0.0001, depths=[0.25, 0.5], centred=True"
    )
    assert candidate({}, 0, 0).label == "untreated"
