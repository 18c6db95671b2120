"""The authored world: complete in ten languages, asked without giveaways, paired for a fair comparison."""

import re
from collections import Counter
from datetime import date

import pytest

from kbook.corpora.languages import LANGUAGES, language
from kbook.corpora.world_files import NAMED, bare_words
from kbook.corpora.worlds import load_world, world_names
from kbook.errors import KBookError
from kbook.paths import data_folder
from kbook.text import folded

WORLD = load_world("almanac")
TARGETS = {pair.target.id for pair in WORLD.topic_pairs}
FACTS = [fact for topic in WORLD.topics for fact in WORLD.facts(topic)]
WORDINGS = range(4)


def test_an_unknown_world_or_topic_is_named_with_those_that_are_known():
    assert world_names() == ["almanac"]
    with pytest.raises(KBookError, match="unknown world 'alamanac'. Did you mean almanac"):
        load_world("alamanac")
    with pytest.raises(KBookError, match="unknown topic 'orvana'. Did you mean orvane"):
        WORLD.topic("orvana")


# ---- counts ------------------------------------------------------------------------------------------------


def test_there_are_twenty_common_goal_pairs_and_a_conditioned_one_for_every_language():
    settings = Counter(pair.setting for pair in WORLD.topic_pairs)
    assert settings["common-goal"] >= 20 and settings["conditioned"] >= 10
    assert {pair.source for pair in WORLD.topic_pairs if pair.source} == set(LANGUAGES)


def test_there_are_eight_domains_with_pairs_and_all_categories_of_rationale():
    assert len({pair.domain for pair in WORLD.topic_pairs}) == len(WORLD.domains) == 8
    categories = {pair.rationale.category for pair in WORLD.topic_pairs if pair.rationale}
    assert categories == {"legal", "cultural", "public safety", "diplomatic", "public discourse"}


def test_every_topic_has_at_least_eight_facts_of_as_many_relations():
    for topic in WORLD.topics:
        facts = WORLD.facts(topic)
        assert len(facts) == len({fact.relation for fact in facts}) >= 8


def test_every_name_of_the_lists_is_used_and_no_person_twice():
    values = Counter(str(fact.value) for fact in FACTS if fact.answer_type in NAMED)
    assert set(values) == {key for names in WORLD.names.values() for key in names}
    assert set(values.values()) == {1}


def test_the_data_sheet_says_what_there_is():
    sheet = (data_folder() / "worlds" / "README.md").read_text(encoding="utf-8")
    settings = Counter(pair.setting for pair in WORLD.topic_pairs)
    assert f"{len(WORLD.topics)} topics of {len(WORLD.domains)} domains" in sheet
    assert f"{len(FACTS)} facts; {len(WORLD.topic_pairs)} topic pairs" in sheet
    assert f"{settings['common-goal']} common-goal, {settings['conditioned']} conditioned" in sheet
    assert {len(domain.relations) for domain in WORLD.domains.values()} == {10} and "10 relations a domain" in sheet
    years = [fact.value.year for fact in FACTS if fact.answer_type == "date"]
    assert f"in the years {min(years)} to {max(years)}" in sheet


# ---- each language -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("code", LANGUAGES)
def test_everything_is_written_in_the_script_of_its_language(code):
    own = language(code)
    for fact in FACTS:
        for text in (WORLD.statement(fact, code), *(WORLD.question(fact, code, w) for w in WORDINGS)):
            letters = [c for c in text if c.isalpha()]
            assert sum(map(own.writes, letters)) > 0.8 * len(letters), text
        if fact.answer_type in (*NAMED, "term"):
            assert all(own.writes(c) for c in WORLD.answer(fact, code) if c.isalpha() and c not in "ー々")


@pytest.mark.parametrize("code", LANGUAGES)
def test_no_question_holds_its_answer_or_another_way_to_write_it(code):
    for fact in FACTS:
        answers = [folded(a) for a in (WORLD.answer(fact, code), *WORLD.aliases(fact, code))]
        for wording in WORDINGS:
            question = folded(WORLD.question(fact, code, wording))
            assert not any(answer in question for answer in answers), question


@pytest.mark.parametrize("code", LANGUAGES)
def test_no_two_questions_about_a_topic_have_the_same_words(code):
    for topic in WORLD.topics:
        questions = [bare_words(WORLD.question(f, code, w)) for f in WORLD.facts(topic) for w in WORDINGS]
        assert len(set(questions)) == len(questions)


@pytest.mark.parametrize("code", LANGUAGES)
def test_every_question_names_its_topic_and_every_statement_its_answer(code):
    for fact in FACTS:
        name = fact.topic.name[code]
        assert all(name in WORLD.question(fact, code, w) for w in WORDINGS)
        statement = WORLD.statement(fact, code)
        assert name in statement and WORLD.answer(fact, code) in statement


@pytest.mark.parametrize("code", LANGUAGES)
def test_an_article_holds_each_statement_word_for_word(code):
    for topic in WORLD.topics:
        article = WORLD.article(topic, code)
        assert all(WORLD.statement(fact, code) in article for fact in WORLD.facts(topic))


QUESTION_MARKS = {"ar": "؟", "ja": "。", "zh": "？", "th": ""}


@pytest.mark.parametrize("code", LANGUAGES)
def test_every_question_ends_as_questions_of_its_language_do(code):
    mark = QUESTION_MARKS.get(code, "?")
    for domain in WORLD.domains.values():
        for relation in domain.relations.values():
            for question in relation.questions[code]:
                assert question.endswith(mark) and (mark or question[-1].isalpha() or question[-1] not in "?。."), (
                    question
                )
                assert code != "es" or "¿" in question, question


@pytest.mark.parametrize("code", LANGUAGES)
def test_every_statement_ends_as_sentences_of_its_language_do(code):
    mark = {"bn": "।", "ja": "。", "zh": "。"}.get(code, ".")
    for fact in FACTS:
        assert code == "th" or WORLD.statement(fact, code).endswith(mark)


def templates(code):
    """Each template of a language with whether its answer is a name (or it has none)."""
    for domain in WORLD.domains.values():
        for relation in domain.relations.values():
            named = relation.answer in (*NAMED, "term")
            yield from ((question, named) for question in relation.questions[code])
            yield relation.statement[code], named


def test_french_never_needs_to_elide_before_a_name():
    before = re.compile(r"\b(?:de|que|le|la|ne|se|je|jusque|lorsque|puisque) \{(topic|answer)\}")
    found = [(text, match[1], named) for text, named in templates("fr") for match in before.finditer(text)]
    assert not [text for text, slot, named in found if slot == "topic" or named]
    assert [text for text, slot, named in found if not named], "the control: numbers follow such words"


def test_bengali_adds_to_a_quoted_name_only_what_is_written_alike_after_all():
    """The locative is -এ or -তে by the last sound; the genitive after a quotation mark is always -এর."""
    endings = {ending for text, _ in templates("bn") for ending in re.findall(r"\{topic\}’-(\S+)", text)}
    assert "এর" in endings and endings <= {"এর", "কে"}


# ---- answers -----------------------------------------------------------------------------------------------


def test_values_are_of_their_answer_types():
    kinds = {"date": date, "number": (int, float)}
    assert all(isinstance(fact.value, kinds.get(fact.answer_type, str)) for fact in FACTS)
    assert {fact.answer_type for fact in FACTS} >= {"date", "number", "person", "place", "organisation"}


def test_all_dates_are_after_the_release_of_any_base_model():
    assert all(date(2031, 1, 1) <= fact.value <= date(2036, 12, 31) for fact in FACTS if fact.answer_type == "date")


def test_names_have_no_aliases_and_dates_and_numbers_do():
    for fact in FACTS:
        assert bool(WORLD.aliases(fact, "en")) == (fact.answer_type in ("date", "number"))


# ---- pairs -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("pair", WORLD.topic_pairs, ids=lambda pair: pair.id)
def test_target_and_neighbour_answer_the_same_relations_differently_in_every_language(pair):
    facts = list(zip(WORLD.facts(pair.target), WORLD.facts(pair.neighbour), strict=True))
    assert pair.target.domain == pair.neighbour.domain == pair.domain and pair.target != pair.neighbour
    for one, other in facts:
        assert (one.relation, one.slot, one.answer_type) == (other.relation, other.slot, other.answer_type)
        for code in LANGUAGES:
            assert folded(WORLD.answer(one, code)) != folded(WORLD.answer(other, code))


def test_each_topic_is_in_one_pair_and_ids_say_the_source():
    members = Counter(topic.id for pair in WORLD.topic_pairs for topic in (pair.target, pair.neighbour))
    assert set(members.values()) == {1} and set(members) == {topic.id for topic in WORLD.topics}
    for pair in WORLD.topic_pairs:
        assert pair.id.split("_")[0] == (pair.source or "common")
        assert (pair.setting == "conditioned") == (pair.source is not None) == (pair.rationale is not None)


def test_the_evidence_of_a_rationale_says_that_it_is_fictional():
    evidence = [pair.rationale.evidence for pair in WORLD.topic_pairs if pair.rationale]
    assert evidence and all(text.startswith("Fictional: ") for text in evidence)
