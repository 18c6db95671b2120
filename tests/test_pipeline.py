"""From articles to a release: sound when the provider is, clean when it is not, and never done twice."""

from dataclasses import replace

import pytest
from tiny_world import TinyWorld, subjects

from kbook.construction.faults import Faults
from kbook.construction.pipeline import construct
from kbook.construction.providers import Comparison, NoUsableReply
from kbook.construction.stages import Settings
from kbook.construction.world_provider import WorldProvider
from kbook.corpora.languages import LANGUAGES
from kbook.corpora.units import ROLES, SETTINGS
from kbook.errors import KBookError
from kbook.store import Store

WORLD = TinyWorld()
SETTINGS_USED = Settings(quota=4, attempts=6)


def made(store, provider=None, settings=SETTINGS_USED, **more):
    return construct(subjects(WORLD), provider or WorldProvider(WORLD), settings, store=store, **more)


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    return made(Store(tmp_path_factory.mktemp("sound")))


@pytest.fixture(scope="module")
def faulty(tmp_path_factory):
    return made(Store(tmp_path_factory.mktemp("faulty")), WorldProvider(WORLD, Faults(0.15, 1)))


def texts(release):
    """All questions and answers by unit statement, role, language: what is in a release whatever its ids."""
    return {
        (unit.card.statement, role, language): [(qa.question, qa.answer) for qa in qas]
        for setting in SETTINGS
        for role in ROLES
        for unit in release.units(role, setting)
        for language, qas in unit.qas.items()
    }


def test_a_sound_provider_gives_a_whole_release(sound):
    release = sound.release
    assert release.languages == LANGUAGES
    assert [(pair.id, pair.source, len(pair.pairs), len(pair.holdout)) for pair in release.topic_pairs] == [
        ("common_ax", None, 4, 4),
        ("common_cu", None, 4, 4),
        ("sw_em", "sw", 4, 4),
    ]
    assert release.topic_pairs[2].rationale == "legal: a fictional act"
    assert release.provenance["made by"] == "world-tiny"
    assert {step.stage for step in sound.funnel.steps} == {
        "candidates", "pairs", "holdout", "questions", "translations", "release",
    }  # fmt: skip
    refused = {reason for step in sound.funnel.steps for reason in step.reasons}
    assert refused == {"beyond the quota"}
    assert sound.funnel.planted == ()


def test_each_question_asks_what_its_unit_says_in_every_language(sound):
    facts = {WORLD.statement(fact, "en"): fact for topic in WORLD.topics for fact in WORLD.facts(topic)}
    for setting in SETTINGS:
        for role in ROLES:
            for unit in sound.release.units(role, setting):
                fact = facts[unit.card.statement]
                for language, qas in unit.qas.items():
                    assert [qa.question for qa in qas] == [WORLD.question(fact, language, n) for n in range(len(qas))]
                    assert {qa.answer for qa in qas} == {WORLD.answer(fact, language)}


def test_both_sides_of_a_pair_have_one_relation_and_different_answers(sound):
    pairs = [pair for topics in sound.release.topic_pairs for pair in topics.pairs]
    assert all(pair.forget.card.relation == pair.retain.card.relation == pair.relation for pair in pairs)
    assert all(pair.forget.card.answer != pair.retain.card.answer for pair in pairs)


def test_planted_faults_are_caught_and_the_release_is_as_sound_as_without_them(sound, faulty):
    planted = faulty.funnel.planted
    assert {each.stage for each in planted} == {"candidates", "questions", "translations"}
    assert sum(each.n_planted for each in planted) > 100
    assert all(each.n_missed == 0 for each in planted)
    clean = {statement: None for statement, *_ in texts(sound.release)}
    world = {WORLD.statement(fact, "en") for topic in WORLD.topics for fact in WORLD.facts(topic)}
    assert set(clean) <= world
    for (statement, role, language), qas in texts(faulty.release).items():
        assert statement in world
        expected = texts(sound.release).get((statement, role, language))
        assert expected in (None, qas)


class Credulous(WorldProvider):
    """A provider whose back-translation check and review believe everything."""

    def compare(self, qa, back):
        return Comparison(True, True, True, True)

    def review(self, card, qa, wording, language):
        return ""


def test_without_comparison_and_review_the_same_faults_reach_the_release(tmp_path, sound):
    careless = made(Store(tmp_path), Credulous(WORLD, Faults(0.15, 1)))
    missed = sum(each.n_missed for each in careless.funnel.planted)
    assert missed > 50
    both = texts(careless.release).items()
    assert any(texts(sound.release).get(place) not in (None, qas) for place, qas in both)


def test_what_is_stored_is_read_and_not_made_again(tmp_path):
    class Counting(WorldProvider):
        calls = 0

        def translate(self, card, qa, language, attempt):
            Counting.calls += 1
            return super().translate(card, qa, language, attempt)

    first = made(Store(tmp_path), Counting(WORLD))
    n = Counting.calls
    again = made(Store(tmp_path), Counting(WORLD))
    assert n > 0 and Counting.calls == n
    assert again.release == first.release and again.funnel == first.funnel
    made(Store(tmp_path), Counting(WORLD), Settings(quota=3))
    assert Counting.calls > n


def test_an_interrupted_construction_goes_on_at_the_first_missing_batch(tmp_path, sound):
    class Failing(WorldProvider):
        left = 400

        def translate(self, card, qa, language, attempt):
            if Failing.left == 0:
                raise KBookError("the server is down")
            Failing.left -= 1
            return super().translate(card, qa, language, attempt)

    with pytest.raises(KBookError, match="the server is down"):
        made(Store(tmp_path), Failing(WORLD))
    Failing.left = 10**6
    whole = made(Store(tmp_path), Failing(WORLD))
    assert whole.release == sound.release
    n_batch = (4 * 8 + 4) * 9
    assert 10**6 - Failing.left == 2 * n_batch


def test_silence_is_counted_and_the_rest_goes_on(tmp_path):
    class Silent(WorldProvider):
        def extract(self, topic, relations, limit):
            if topic.id == "ax":
                raise NoUsableReply
            return super().extract(topic, relations, limit)

    built = made(Store(tmp_path), Silent(WORLD))
    assert [pair.id for pair in built.release.topic_pairs] == ["common_cu", "sw_em"]
    reasons = {step.stage: step.reasons for step in built.funnel.steps if step.setting == "common-goal"}
    assert reasons["candidates"] == {"no usable reply": 1}


def test_a_unit_that_one_language_lacks_is_left_out_with_its_partner(tmp_path):
    class NoThai(WorldProvider):
        def translate(self, card, qa, language, attempt):
            if language == "th" and card.id.startswith("common_ax__target__00"):
                raise NoUsableReply
            return super().translate(card, qa, language, attempt)

    built = made(Store(tmp_path), NoThai(WORLD), Settings(quota=4, attempts=2))
    assert [len(pair.pairs) for pair in built.release.topic_pairs] == [3, 4, 4]
    last = next(step for step in built.funnel.steps if (step.stage, step.setting) == ("release", "common-goal"))
    assert last.reasons == {"a translation was given up": 1}


def test_holdout_units_go_with_the_last_pair_of_their_topics(tmp_path):
    class NoPairs(WorldProvider):
        def write_families(self, cards, n, attempt):
            if n > 1 and cards[0].id.startswith("common_ax"):
                raise NoUsableReply
            return super().write_families(cards, n, attempt)

    built = made(Store(tmp_path), NoPairs(WORLD), Settings(quota=4, attempts=1))
    assert [pair.id for pair in built.release.topic_pairs] == ["common_cu", "sw_em"]
    last = next(step for step in built.funnel.steps if (step.stage, step.setting) == ("release", "common-goal"))
    assert last.reasons == {"its questions were given up": 4, "no pair of its topics is left": 4}
    assert last.n_kept == 4 + len(built.release.units("holdout", "common-goal"))


def test_the_seed_draws_other_holdout_units_and_leaves_the_pairs(tmp_path, sound):
    few = Settings(quota=4, holdout=0.5)
    one, other = (made(Store(tmp_path), settings=few, seed=seed).release for seed in (0, 1))
    assert one.units("forget", "common-goal") == other.units("forget", "common-goal")
    assert one.units("holdout", "common-goal") != other.units("holdout", "common-goal")
    assert len(one.units("holdout", "common-goal")) == 4


def test_fewer_languages_make_a_smaller_release(tmp_path):
    built = made(Store(tmp_path), settings=Settings(quota=2, languages=("ar", "en")))
    assert built.release.languages == ("ar", "en")
    with pytest.raises(ValueError, match="must hold en"):
        Settings(languages=("ar",))


def test_several_workers_give_the_same(tmp_path, sound):
    assert made(Store(tmp_path), replace(WorldProvider(WORLD), workers=3)).release == sound.release


def test_nothing_left_is_an_error_that_says_where_to_look(tmp_path):
    class Mute(WorldProvider):
        def shared_relations(self, target, neighbour):
            raise NoUsableReply

    with pytest.raises(KBookError, match="nothing is left at the end"):
        made(Store(tmp_path), Mute(WORLD))
