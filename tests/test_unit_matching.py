"""The matcher of units: one to one, the same for any order, and each exclusion for its own reason."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbook.construction.candidates import Candidate
from kbook.construction.judged import kept
from kbook.construction.matching import MatchRule, match_units
from kbook.corpora.units import Card
from kbook.text import folded

RULE = MatchRule()


def card(id: str, answer: str, **fields: str) -> Card:
    said = f"The opening date of {id} is {answer}."
    plain = {
        "relation": "opening_date",
        "slot": "day of opening",
        "answer_type": "date",
        "span": said,
        "statement": said,
    }
    return Card(id=id, answer=answer, **{**plain, **fields})


ONE, OTHER = card("a", "3 May 2031"), card("b", "9 June 2031")


def match(one=ONE, other=OTHER, rule=RULE):
    return match_units([Candidate(one, 0)], [Candidate(other, 0)], rule)


def test_two_units_of_one_schema_are_matched_with_full_score():
    (found,) = match()
    assert found.kept and found.item.score == pytest.approx(1.0)
    assert (found.item.target, found.item.neighbour) == (ONE, OTHER)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"answer_type": "person"}, "answer types of different families"),
        ({"slot": "name of keeper"}, "weak: slots differ"),
        ({"span": "It was long ago."}, "no direct support in a span"),
        ({"answer": "3 may  2031", "span": "on 3 May 2031"}, "identical answers"),
        ({"answer": " ".join("abcdefghijklm"), "span": " ".join("abcdefghijklm")}, "overlong answer"),
    ],
)
def test_each_exclusion_has_its_reason(change, reason):
    (found,) = match(other=replace(OTHER, **change))
    assert found.reason == reason


def test_types_of_one_family_may_be_matched_and_rank_below_equal_types():
    near = card("c", "June 2031", answer_type="month")
    found = match_units([Candidate(ONE, 0)], [Candidate(near, 0), Candidate(OTHER, 5)], RULE)
    assert [each.item.neighbour.id for each in found] == ["b", "c"]
    assert [each.item.agreement for each in found] == [1.0, 0.5]
    (alone,) = match(other=near)
    assert alone.kept


def test_a_low_score_is_refused_where_the_rule_asks_for_more():
    near = replace(OTHER, answer_type="month", slot="month of opening day")
    (found,) = match(other=near)
    assert found.kept and found.item.score < 0.8
    (strict,) = match(other=near, rule=MatchRule(min_score=0.8))
    assert strict.reason == "low score"


def test_units_of_another_relation_are_not_even_looked_at_and_spelling_does_not_make_another():
    assert match(other=replace(OTHER, relation="closing_date")) == ()
    (found,) = match(other=replace(OTHER, relation="Opening-Date"))
    assert found.kept


def test_better_support_wins_and_then_the_earlier_unit():
    vague = card("v", "7 July 2031", span="on 7 July 2031")
    found = match_units([Candidate(ONE, 0)], [Candidate(vague, 0), Candidate(OTHER, 9)], RULE)
    assert kept(found)[0].neighbour == OTHER
    later = card("d", "8 July 2031")
    found = match_units([Candidate(ONE, 0)], [Candidate(later, 3), Candidate(OTHER, 1)], RULE)
    assert kept(found)[0].neighbour == OTHER


def test_a_statement_is_not_used_twice_under_two_ids():
    twin = replace(ONE, id="z", answer="4 May 2031", span="on 4 May 2031")
    found = match_units(
        [Candidate(ONE, 0), Candidate(twin, 1)], [Candidate(OTHER, 0), Candidate(card("d", "1 May"), 1)], RULE
    )
    assert len(kept(found)) == 1
    assert {each.reason for each in found if not each.kept} == {"a unit or statement of it is matched already"}


cards = st.builds(
    lambda id, relation, slot, kind, answer, place: Candidate(
        card(f"{id}", f"{answer} May", relation=relation, slot=slot, answer_type=kind), place
    ),
    st.integers(0, 30),
    st.sampled_from(["opening", "keeper"]),
    st.sampled_from(["day", "day of opening", "name"]),
    st.sampled_from(["date", "month", "person"]),
    st.integers(1, 9),
    st.integers(0, 9),
)
pools = st.lists(cards, max_size=8, unique_by=lambda each: each.card.id)


@given(pools, pools, st.randoms(use_true_random=False))
def test_matches_are_one_to_one_sound_and_the_same_for_any_order(targets, neighbours, random):
    neighbours = [replace(each, card=replace(each.card, id=f"n{each.card.id}")) for each in neighbours]
    found = match_units(targets, neighbours, RULE)
    chosen = kept(found)
    for side in ("target", "neighbour"):
        ids = [getattr(each, side).id for each in chosen]
        statements = [folded(getattr(each, side).statement) for each in chosen]
        assert len(ids) == len(set(ids)) and len(statements) == len(set(statements))
    for each in chosen:
        assert each.target.relation == each.neighbour.relation
        assert folded(each.target.answer) != folded(each.neighbour.answer)
        assert each.score >= RULE.min_score
    random.shuffle(targets)
    random.shuffle(neighbours)
    assert match_units(targets, neighbours, RULE) == found


@given(pools, pools)
def test_nothing_eligible_is_left_unmatched_on_both_sides(targets, neighbours):
    neighbours = [replace(each, card=replace(each.card, id=f"n{each.card.id}")) for each in neighbours]
    found = match_units(targets, neighbours, RULE)
    used = {name for each in kept(found) for c in (each.target, each.neighbour) for name in (c.id, folded(c.statement))}
    for each in found:
        names = {name for c in (each.item.target, each.item.neighbour) for name in (c.id, folded(c.statement))}
        assert each.kept or each.reason != "a unit or statement of it is matched already" or names & used
