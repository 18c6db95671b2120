"""The funnel counts what the rows say: nothing is lost between what came, what stayed and the reasons."""

from hypothesis import given
from hypothesis import strategies as st

from kbook.construction.judged import Funnel, Judged, kept

rows = st.lists(
    st.fixed_dictionaries(
        {
            "stage": st.sampled_from(["a", "b"]),
            "setting": st.sampled_from(["x", "y"]),
            "reason": st.sampled_from(["", "", "bad", "worse"]),
            "flag": st.sampled_from(["", "odd"]),
            "fault": st.sampled_from(["", "", "planted"]),
        }
    ),
    max_size=30,
)


@given(rows)
def test_in_is_kept_and_refused(made):
    funnel = Funnel(tuple(made))
    assert sum(step.n_in for step in funnel.steps) == len(made)
    for step in funnel.steps:
        assert step.n_in == step.n_kept + sum(step.reasons.values())
        assert step.n_kept == funnel.n_kept(step.stage, step.setting) >= sum(step.flags.values())
    assert sum(each.n_planted for each in funnel.planted) == sum(bool(row["fault"]) for row in made)
    assert all(0 <= each.n_missed <= each.n_planted for each in funnel.planted)


def test_a_planted_fault_is_caught_by_a_refusal_or_a_flag_and_missed_otherwise():
    row = {"stage": "a", "setting": "x", "flag": "", "reason": "", "fault": "f"}
    made = (row, row | {"reason": "bad"}, row | {"flag": "odd"}, row | {"fault": ""})
    (planted,) = Funnel(made).planted
    assert (planted.n_planted, planted.n_flagged, planted.n_missed) == (3, 1, 1)
    assert planted.reasons == {"": 2, "bad": 1}


def test_kept_counts_can_be_asked_by_field():
    row = {"stage": "a", "setting": "x", "reason": "", "role": "forget"}
    assert Funnel((row, row | {"role": "retain"}, row | {"reason": "bad"})).n_kept("a", "x", role="forget") == 1


def test_kept_are_those_without_a_reason():
    assert kept([Judged(1), Judged(2, "bad"), Judged(3, flag="odd")]) == [1, 3]
