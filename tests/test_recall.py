"""Abilities of a multilingual base: who knows all passes, who says nothing fails; only core wordings are taught."""

import pytest

from kbook.corpora.languages import LANGUAGES
from kbook.corpora.multilingual import DEMANDS, Library
from kbook.models import recall
from kbook.models.recall import TAUGHT_TOPICS, Tasks, measure

N_TASKS = 7


@pytest.fixture(scope="module")
def library():
    return Library.make("almanac", 5, (4, 2, 1))


@pytest.fixture(scope="module")
def tasks(library):
    return Tasks(library, 5)


@pytest.fixture
def answering(monkeypatch, tiny_base, tasks):
    """Measure with a stand-in that maps a prompt to its answer, and with teaching that only writes the lessons down."""
    puts = [put for code in LANGUAGES for of in (tasks.of, tasks.of_taught) for _, puts, _ in of(code) for put in puts]
    known = {recall.prompt(tiny_base, put.question, put.system): put.answer for put in puts}
    lessons = []

    def run(answer):
        monkeypatch.setattr(recall, "ask", lambda base, prompts, **_: [answer(known[text]) for text in prompts])
        monkeypatch.setattr(recall, "teach", lambda base, documents, *_: lessons.extend(documents))
        monkeypatch.setattr(recall, "load_base", lambda folder: tiny_base)
        return measure(tiny_base, tasks.library, n=tasks.n), lessons

    return run


def test_who_knows_all_passes_and_who_says_nothing_does_not(answering):
    all_known, lessons = answering(lambda answer: answer)
    assert {a.answer for a in all_known} == {1.0} and all(a.passed for a in all_known)
    assert len(all_known) == N_TASKS * len(LANGUAGES) and {a.n for a in all_known} == {5}
    assert [a.task.split(": ")[1] for a in all_known[:10]] == list(LANGUAGES)
    silent, _ = answering(lambda answer: "")
    assert {a.answer for a in silent} == {0.0}
    assert {a.task.split(":")[0] for a in silent if not a.passed} == {
        "known, core wording",
        "taught, core wording",
        "taught, other wordings",
    }


def test_what_is_taught_is_new_in_the_core_wording_and_in_every_language(tasks, library):
    lessons = tasks.lessons()
    per_topic = len(tasks.fresh.facts(tasks.fresh.topics[0]))
    assert len(lessons) == TAUGHT_TOPICS * per_topic * len(LANGUAGES)
    told = {put.question for put in lessons}
    names = {form for topic in library.world.topics for form in topic.name.values()}
    assert names.isdisjoint({form for topic in tasks.fresh.topics for form in topic.name.values()})
    for code in LANGUAGES:
        core, others = (puts for _, puts, _ in tasks.of_taught(code))
        assert {put.question for put in core} <= told
        assert told.isdisjoint({put.question for put in others})


def test_a_question_to_be_read_has_its_answer_in_the_prompt_and_a_demand_names_another_language(tasks):
    for code in LANGUAGES:
        found = {name: puts for name, puts, _ in tasks.of(code)}
        assert all(put.answer in put.system for put in found["read in the prompt"])
        turned = found["known, answer demanded in another language"]
        assert all(put.system in DEMANDS.values() and put.system != DEMANDS[code] for put in turned)
        assert not any(put.system for put in found["known, core wording"])
