"""Units are what their place says: roles, layers, languages and ids; anything else is refused by name."""

from dataclasses import replace

import pytest
from unit_factory import COMMON, FRENCH, card, release, topic_pair, unit

from kbook.corpora.languages import LANGUAGES
from kbook.corpora.units import QA, ROLES, SETTINGS, Release, TopicPair, Unit, source_of
from kbook.errors import KBookError


@pytest.mark.parametrize("role", ROLES)
def test_units_and_questions_of_a_role_are_those_of_its_setting(role):
    made = release()
    n = {"common-goal": (2, 1), "conditioned": (3, 1)}
    for setting, (matched, spare) in n.items():
        units = made.units(role, setting)
        assert len(units) == (spare if role == "holdout" else matched)
        asked = made.qas(role, setting, "th")
        assert {(qa.role, qa.language) for qa in asked} == {(role, "th")}
        assert len(asked) == len(units) * (1 if role == "holdout" else 4)
        assert all(qa.layer == "core" for qa in made.qas(role, setting, "th", "core"))


def test_layers_part_the_questions():
    made = release()
    core, surface = (made.qas("forget", "common-goal", "en", layer) for layer in ("core", "surface"))
    assert len(core) == 2 and len(surface) == 6
    assert {*core, *surface} == set(made.qas("forget", "common-goal", "en"))


def test_a_source_language_chooses_conditioned_pairs_and_leaves_the_common_goal_whole():
    made = release(topic_pair(COMMON), topic_pair(FRENCH, n=3), topic_pair("sw_boats", n=1))
    assert len(made.units("forget", "conditioned")) == 4
    assert len(made.units("forget", "conditioned", "fr")) == 3
    assert made.units("forget", "conditioned", "de") == ()
    assert made.units("forget", "common-goal", "de") == made.units("forget", "common-goal")


def test_the_digest_is_of_the_units_and_not_of_who_made_them():
    made = release()
    assert made.digest == replace(made, provenance={"provider": "another"}).digest
    assert made.digest != release(topic_pair(COMMON)).digest


def test_languages_are_those_of_every_unit_in_the_order_of_the_book():
    assert release(languages=("th", "ar")).languages == ("ar", "th")
    assert release().languages == LANGUAGES


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda made: made.units("keep", "conditioned"), "unknown role 'keep'"),
        (lambda made: made.units("forget", "condition"), "Did you mean conditioned"),
        (lambda made: made.units("forget", "conditioned", "fx"), "unknown language 'fx'"),
        (lambda made: made.qas("forget", "conditioned", "en", "deep"), "unknown layer 'deep'"),
    ],
    ids=["role", "setting", "source", "layer"],
)
def test_unknown_names_are_refused(ask, message):
    with pytest.raises(KBookError, match=message):
        ask(release())


def test_a_language_that_the_release_lacks_is_refused():
    with pytest.raises(KBookError, match="unknown language 'ja'"):
        release(languages=("en", "de")).qas("forget", "common-goal", "ja")


def changed(pair: TopicPair, **family: object) -> TopicPair:
    """The first question of the first unit to forget, in Swahili, with other fields."""
    first = pair.pairs[0]
    qas = first.forget.qas["sw"]
    forget = Unit(first.forget.card, {**first.forget.qas, "sw": (replace(qas[0], **family), *qas[1:])})
    return replace(pair, pairs=(replace(first, forget=forget), *pair.pairs[1:]))


def short(pair: TopicPair) -> TopicPair:
    first = pair.pairs[0]
    forget = Unit(first.forget.card, {**first.forget.qas, "sw": first.forget.qas["sw"][:3]})
    return replace(pair, pairs=(replace(first, forget=forget), *pair.pairs[1:]))


def without_swahili(pair: TopicPair) -> TopicPair:
    qas = {language: qas for language, qas in pair.holdout[0].qas.items() if language != "sw"}
    return replace(pair, holdout=(Unit(pair.holdout[0].card, qas),))


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda pair: changed(pair, role="retain"), f"{COMMON}-forget-0: question .* is marked retain, sw"),
        (lambda pair: changed(pair, language="de"), f"{COMMON}-forget-0: question .* is marked forget, de"),
        (lambda pair: changed(pair, layer="surface"), "its questions in sw are surface, surface"),
        (lambda pair: changed(pair, question=" "), "question .* or its answer is empty"),
        (lambda pair: changed(pair, answer=""), "question .* or its answer is empty"),
        (short, "its questions in sw are core, surface, surface"),
        (without_swahili, f"{COMMON}-spare-0: it has questions in other languages than the rest .sw"),
        (lambda pair: replace(pair, holdout=(unit(card(f"{COMMON}-forget-1"), "holdout"),)), "used twice, as forget"),
        (lambda pair: replace(pair, pairs=pair.pairs[:1] * 2), "stands for more than one pair of units"),
        (lambda pair: replace(pair, source="fr"), f"{COMMON}: its source language is fr"),
        (lambda pair: replace(pair, setting="conditioned", source="fr"), "unknown source language"),
    ],
)
def test_what_is_not_as_its_place_says_is_refused_by_name(spoil, message):
    Release((topic_pair(),))
    with pytest.raises(KBookError, match=message):
        Release((spoil(topic_pair()),))


def test_a_topic_pair_twice_and_a_question_twice_are_refused():
    with pytest.raises(KBookError, match=f"id {COMMON} stands for more than one topic pair"):
        Release((topic_pair(), topic_pair()))
    with pytest.raises(KBookError, match="stands for more than one question"):
        Release((changed(topic_pair(), id=f"{COMMON}-retain-0-sw-0"),))


def test_the_source_language_begins_the_id_of_a_conditioned_pair_only():
    assert source_of("sw_two_lamps", "conditioned") == "sw"
    assert source_of("sw_two_lamps", "common-goal") is None
    with pytest.raises(KBookError, match="source language of a conditioned topic pair 'swahili'"):
        source_of("swahili_two", "conditioned")


def test_a_unit_knows_its_questions_by_language():
    one = unit(card("lamp"), "forget", ("en",))
    assert [type(qa) for qa in one.qas["en"]] == [QA] * 4


def test_a_cut_keeps_the_first_of_each_kind():
    made = release(topic_pair(COMMON), topic_pair("common_mills"), topic_pair(FRENCH, n=3), topic_pair("sw_boats", n=1))
    small = made.cut(("en", "fr"), topic_pairs=1, conditioned=1, unit_pairs=2, holdout=1)
    assert [pair.id for pair in small.topic_pairs] == [COMMON, FRENCH]
    assert small.languages == ("en", "fr") and [len(pair.pairs) for pair in small.topic_pairs] == [2, 2]
    assert small.units("forget", "conditioned", "fr")[0].card == made.units("forget", "conditioned", "fr")[0].card
    everything = made.cut(LANGUAGES, topic_pairs=9, conditioned=9, unit_pairs=9, holdout=9)
    assert everything.digest == made.digest
    with pytest.raises(KBookError, match="unknown language 'xx'"):
        made.cut(("xx",), topic_pairs=1, conditioned=1, unit_pairs=1, holdout=1)


def test_every_question_has_its_place():
    made = release()
    assert len(made.places) == sum(len(made.qas(r, s, t)) for r in ROLES for s in SETTINGS for t in LANGUAGES)
    unit = made.units("retain", "conditioned")[1]
    place = made.places[unit.qas["sw"][2].id]
    assert (place.qa, place.variant, place.unit, place.topic) == (unit.qas["sw"][2], 2, unit.card.id, FRENCH)
    assert place.source == "fr" and made.places[made.qas("forget", "common-goal", "fr")[0].id].source == ""
