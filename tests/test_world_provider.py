"""A provider from tables: what it makes passes every check, and each fault that it plants is caught by one."""

from dataclasses import replace

import pytest
from tiny_world import TinyWorld, subjects

from kbook.construction.candidates import judge_candidates
from kbook.construction.families import why_not_family
from kbook.construction.faults import Faults
from kbook.construction.providers import Wording
from kbook.construction.translation import translate, why_not_wording
from kbook.construction.world_provider import WorldProvider
from kbook.corpora.languages import LANGUAGES
from kbook.corpora.units import FAMILY, QA
from kbook.errors import KBookError

WORLD = TinyWorld()
SUBJECT = subjects(WORLD)[0]
SOUND = WorldProvider(WORLD)
ALWAYS = WorldProvider(WORLD, Faults(1.0, 7))
RELATIONS = SOUND.shared_relations(SUBJECT.target, SUBJECT.neighbour)
CARDS = [replace(each.card, id=f"c{n}") for n, each in enumerate(SOUND.extract(SUBJECT.target, RELATIONS, 30))]
OTHER = [replace(each.card, id=f"o{n}") for n, each in enumerate(SOUND.extract(SUBJECT.neighbour, RELATIONS, 30))]


def question(card, place=0):
    layer, wording = FAMILY[place], SOUND.write_families([card], 4, 1)[0][place]
    return QA(f"{card.id}-{place}", "forget", layer, "en", wording.question, wording.answer, wording.aliases)


def test_what_it_extracts_passes_the_checks():
    found = SOUND.extract(SUBJECT.target, RELATIONS, 30)
    assert len(found) == WORLD.n
    assert all(each.kept and not each.flag for each in judge_candidates(found, SUBJECT.target.article, RELATIONS))
    assert len(SOUND.extract(SUBJECT.target, RELATIONS[:2], 30)) == 2
    assert len(SOUND.extract(SUBJECT.target, RELATIONS, 4)) == 4


def test_every_extraction_fault_is_refused_or_flagged_and_spoils_no_sound_unit():
    found = [
        replace(each, card=replace(each.card, id=str(n)))
        for n, each in enumerate(ALWAYS.extract(SUBJECT.target, RELATIONS, 30))
    ]
    judged = judge_candidates(found, SUBJECT.target.article, RELATIONS)
    faulty = [each for each in judged if each.item.fault]
    assert len(faulty) == WORLD.n
    assert all(not each.kept or each.flag for each in faulty)
    assert all(each.kept and not each.flag for each in judged if not each.item.fault)


def test_its_families_pass_and_its_faults_do_not():
    for card, partner in zip(CARDS, OTHER, strict=True):
        sound, beside = SOUND.write_families([card, partner], 4, 1)
        assert why_not_family(card, sound, 4, partner) == why_not_family(partner, beside, 4, card) == ""
        for family, one, other in zip(
            ALWAYS.write_families([card, partner], 4, 1), (card, partner), (partner, card), strict=True
        ):
            reason = why_not_family(one, family, 4, other)
            assert family[3].fault and (reason or ALWAYS.review(one, question(one, 3), family[3], "en"))


@pytest.mark.parametrize("language", [code for code in LANGUAGES if code != "en"])
def test_its_translations_pass_and_its_faults_do_not(language):
    for card in CARDS[:3]:
        for place in range(4):
            sound = translate(SOUND, card, question(card, place), language, attempts=1)
            assert [attempt.reason for attempt in sound] == [""]
            faulty = translate(ALWAYS, card, question(card, place), language, attempts=1)
            assert faulty[0].wording.fault and faulty[0].reason


def test_back_translation_is_blind_and_says_what_the_text_says():
    right, other = question(CARDS[0]), question(CARDS[1])
    german = SOUND.translate(CARDS[0], right, "de", 1)
    back = SOUND.back_translate(german, "de")
    assert (back.question, back.answer) == (right.question, right.answer)
    about_another = SOUND.back_translate(SOUND.translate(CARDS[1], other, "de", 1), "de")
    assert SOUND.compare(right, about_another).lost == "intent"
    unknown = SOUND.back_translate(Wording("Wie spät ist es?", "zwölf"), "de")
    assert (unknown.question, unknown.answer) == ("Wie spät ist es?", "zwölf")


def test_comparison_tells_what_was_lost():
    asked = question(CARDS[0])
    same = Wording(asked.question, asked.answer)
    assert SOUND.compare(asked, same).lost == ""
    assert SOUND.compare(asked, replace(same, answer=asked.aliases[0])).lost == ""
    assert SOUND.compare(asked, replace(same, answer=f"{asked.answer} and more")).lost == "boundary"
    assert SOUND.compare(asked, replace(same, answer="nothing like it")).lost == "answer"
    assert SOUND.compare(asked, replace(same, question=question(CARDS[0], 2).question)).lost == "role"


def test_an_untranslated_answer_passes_back_translation_and_is_found_by_the_reviewer_alone():
    asked = question(CARDS[0])
    thai = replace(SOUND.translate(CARDS[0], asked, "th", 1), answer=asked.answer)
    assert why_not_wording(thai, "th") == SOUND.compare(asked, SOUND.back_translate(thai, "th")).lost == ""
    assert SOUND.review(CARDS[0], asked, thai, "th") == "answer not as the language says it"


def test_the_judge_takes_every_form_of_the_answer_and_no_other():
    wording = SOUND.translate(CARDS[0], question(CARDS[0]), "ja", 1)
    scores = [
        SOUND.judge(wording.question, wording.answer, text, "ja") for text in (wording.answer, *wording.aliases, "x")
    ]
    assert scores == [1.0, 1.0, 0.0]


def test_faults_follow_from_the_seed_alone():
    def made(seed):
        return [WorldProvider(WORLD, Faults(0.5, seed)).translate(card, question(card), "sw", 1) for card in CARDS]

    assert made(1) == made(1) != made(2)
    assert {wording.fault for wording in made(1)} > {""}
    assert SOUND.name == "world-tiny" and ALWAYS.name == "world-tiny-faults-1"
    assert len({SOUND.digest, ALWAYS.digest, WorldProvider(WORLD, Faults(1.0, 8)).digest}) == 3


def test_a_unit_or_question_of_another_world_is_refused():
    with pytest.raises(KBookError, match="world tiny has no such fact"):
        SOUND.write_families([replace(CARDS[0], statement="Water is wet.")], 1, 1)
    with pytest.raises(KBookError, match="world tiny never asks this"):
        SOUND.translate(CARDS[0], replace(question(CARDS[0]), question="Is water wet?"), "de", 1)
