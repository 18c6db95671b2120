"""What is wrong with an extracted unit is found and named; a sound one is kept, whatever comes with it."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbook.construction.candidates import NOT_IN_SPAN, Candidate, answers_directly, judge_candidates, normal_name
from kbook.construction.judged import kept
from kbook.corpora.units import Card

ARTICLE = "The lamp is old. It  opened on\n3 May 2031. Its keeper is Ana Bo."
OPENED = Card(
    "a",
    "opening_date",
    "day of opening",
    "The lamp opened on 3 May 2031.",
    "3 May 2031",
    "date",
    "It opened on 3 May 2031.",
)
KEEPER = Card(
    "b", "keeper", "name of the keeper", "Ana Bo keeps the lamp.", "Ana Bo", "person", "Its keeper is Ana Bo."
)
RELATIONS = ("Opening-Date", "keeper")


def judged(*cards, article=ARTICLE, relations=RELATIONS):
    return judge_candidates([Candidate(card, n) for n, card in enumerate(cards)], article, relations)


def test_sound_units_are_kept_without_a_flag():
    assert [(each.reason, each.flag) for each in judged(OPENED, KEEPER)] == [("", "")] * 2


@pytest.mark.parametrize(
    ("card", "reason"),
    [
        *(
            (replace(OPENED, **{field: " "}), f"missing field: {field}")
            for field in ("relation", "slot", "statement", "answer", "answer_type", "span")
        ),
        (replace(OPENED, span="It opened on 4 May 2031."), "span not in the article"),
        (replace(OPENED, relation="height"), "relation not shared by both topics"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_fault_of_its_own_is_named_and_spoils_no_other(card, reason):
    first, second = judged(card, KEEPER)
    assert (first.reason, second.reason) == (reason, "")


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"statement": "the LAMP opened  on 3 May 2031."}, "duplicate statement"),
        ({"statement": "On 3 May 2031 it opened.", "relation": "opening date"}, "duplicate relation and answer"),
        ({"statement": "The lamp closed.", "answer": "3 May"}, ""),
    ],
    ids=["statement", "relation and answer", "neither"],
)
def test_of_two_alike_the_first_is_kept(change, reason):
    assert [each.reason for each in judged(OPENED, replace(OPENED, id="c", **change))] == ["", reason]


def test_one_that_was_refused_does_not_make_the_next_a_duplicate():
    broken = replace(OPENED, span="nowhere to be found")
    assert [each.reason for each in judged(broken, OPENED)] == ["span not in the article", ""]


def test_an_answer_outside_its_span_is_flagged_and_kept_and_an_alias_in_the_span_is_enough():
    elsewhere = replace(OPENED, span="The lamp is old.")
    (one,) = judged(elsewhere)
    assert one.kept and one.flag == NOT_IN_SPAN
    (other,) = judged(replace(elsewhere, aliases=("old",)))
    assert other.kept and not other.flag
    assert not answers_directly(replace(elsewhere, aliases=("", " ")))


@given(st.permutations(range(4)))
def test_the_order_of_the_list_does_not_count_the_priority_does(order):
    cards = [OPENED, replace(OPENED, id="c"), KEEPER, replace(KEEPER, id="d", slot="")]
    candidates = [Candidate(card, n) for n, card in enumerate(cards)]
    shuffled = judge_candidates([candidates[n] for n in order], ARTICLE, RELATIONS)
    assert shuffled == judge_candidates(candidates, ARTICLE, RELATIONS)
    assert [each.card.id for each in kept(shuffled)] == ["a", "b"]


def test_the_label_of_a_planted_fault_changes_no_judgement():
    plain = judged(OPENED, replace(OPENED, id="c"))
    labelled = judge_candidates([replace(each.item, fault="planted") for each in plain], ARTICLE, RELATIONS)
    assert [each.reason for each in labelled] == [each.reason for each in plain]


@given(st.text(max_size=30))
def test_a_normal_name_is_its_own_normal_name(text):
    assert normal_name(normal_name(text)) == normal_name(text)
