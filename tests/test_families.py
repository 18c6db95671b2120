"""Families of questions: a sound one passes, each fault is named, and names of other words are no leak."""

from dataclasses import replace

import pytest

from kbook.construction.families import why_not_family
from kbook.construction.providers import Wording
from kbook.corpora.units import Card

LAMP = Card(
    "a",
    "keeper",
    "name",
    "Ana Bo keeps the lamp of Ax.",
    "Ana Bo",
    "person",
    "Its keeper, Ana Bo, lit the lamp.",
    ("A. Bo",),
)
BOAT = Card("b", "keeper", "name", "Cy Du keeps the lamp of Bo.", "Cy Du", "person", "Its keeper is Cy Du.")
FAMILY = tuple(
    Wording(question, "Ana Bo")
    for question in (
        "Who keeps the lamp of Ax?",
        "What is the name of the keeper of the lamp of Ax?",
        "The lamp of Ax is kept by whom?",
        "Which person keeps the lamp of Ax?",
    )
)


def changed(**fields):
    return (*FAMILY[:3], replace(FAMILY[3], **fields))


def test_a_sound_family_passes_alone_and_beside_a_partner():
    assert why_not_family(LAMP, FAMILY, 4) == why_not_family(LAMP, FAMILY, 4, BOAT) == ""
    assert why_not_family(LAMP, FAMILY[:1], 1) == ""


@pytest.mark.parametrize(
    ("family", "reason"),
    [
        (FAMILY[:3], "wrong number of questions"),
        (changed(question="Tell me who keeps the lamp."), "not a question"),
        (changed(question="?"), "not a question"),
        (changed(question=f"Who keeps the lamp {'x' * 400}?"), "not a question"),
        (changed(answer="Cy Du"), "another answer"),
        (changed(answer=""), "another answer"),
        (changed(question="Does ANA  BO keep the lamp of Ax?"), "answer inside the question"),
        (changed(question="Is it a. bo who keeps the lamp?"), "answer inside the question"),
        (changed(question="Who, if not Cy Du, keeps the lamp?"), "answer of the other unit in the question"),
        (changed(question="What time is it?"), "not grounded in the fact"),
        (changed(question="WHO keeps the lamp, of Ax?"), "two questions alike"),
    ],
)
def test_each_fault_is_named(family, reason):
    assert why_not_family(LAMP, family, 4, BOAT) == reason


def test_the_other_answer_is_no_leak_where_there_is_no_partner():
    family = changed(question="Who, if not Cy Du, keeps the lamp?")
    assert why_not_family(LAMP, family, 4) == ""


def test_an_answer_within_another_word_is_no_leak():
    short = replace(LAMP, answer="Amp", aliases=(), span="Amp lit the lamp.", statement="Amp keeps the lamp of Ax.")
    family = tuple(replace(wording, answer="Amp") for wording in FAMILY)
    assert why_not_family(short, family, 4) == ""


def test_an_answer_without_evidence_is_refused():
    assert why_not_family(replace(LAMP, span="The lamp of Ax is old."), FAMILY, 4) == "answer not in the evidence"
