"""Ability tasks: a model that follows the protocol scores 1.0 in all of them, a silent one 0.0."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from agent_factory import Scripted

from kbook.agent import react
from kbook.agent.abilities import SIZES, measure, tasks
from kbook.corpora.documents import NOT_FOUND, Habits
from kbook.corpora.people import Corpus, make_corpus
from kbook.corpora.wordings import QUESTIONS
from kbook.models.ability import Ability, as_records
from kbook.models.bases import Base
from kbook.profiles import load_profile, profile_names

N = 12
CALL = "Thought: I act.\nAction: {}"
ANSWER = "Thought: I know.\nFinal Answer: {}"


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    return make_corpus(SIZES)


@pytest.fixture
def measured(tiny_base: Base, monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[Any, str], str]], list[Ability]]:
    def by(script: Callable[[Any, str], str]) -> list[Ability]:
        Scripted.script, Scripted.asked = staticmethod(script), []
        monkeypatch.setattr(react, "LiveBatch", Scripted)
        return measure(tiny_base, n=N)

    return by


def asked(question: str) -> tuple[str, str]:
    """Name and field of a question."""
    for field, forms in QUESTIONS.items():
        for form in forms:
            before, after = map(re.escape, form.split("{name}"))
            if match := re.fullmatch(f"{before}(.+){after}", question):
                return match[1], field
    raise ValueError(question)


def value_in(text: str, name: str, field: str, people: Corpus) -> str | None:
    """The field's value of the person of this name, if the text tells of them."""
    person = next((p for p in people.members if f"{p.name}: {p.biography}" in text and p.name == name), None)
    return person.value(field) if person else None


def perfect(people: Corpus) -> Callable[[Any, str], str]:
    """A model that does what the prompt decides."""

    def say(row: Any, text: str) -> str:
        if row[-1] == "summary":
            return ""
        system, _, said = text.partition("<|user|>")
        question = said.split("</s>")[0].removeprefix("Question: ")
        seen = [line.partition(": ")[2] for line in said.splitlines() if line.startswith("Observation: ")]
        if claim := re.fullmatch(r"Is (.+) the (\w+) of (.+)\?", question):
            if seen:
                return ANSWER.format("Yes" if seen[-1].startswith("match") else "No")
            return CALL.format(f"verify_attribute[name={claim[3]}, attribute_value={claim[1]}]")
        name, field = asked(question)
        if value := value_in(system, name, field, people):
            return ANSWER.format(value)
        if not seen and "lookup_record" in system:
            return CALL.format(f"lookup_record[name={name}, field={field}]")
        if seen and seen[-1].startswith(f"{field} of {name}: "):
            return ANSWER.format(seen[-1].partition(": ")[2])
        if "search_wiki" in system and (not seen or seen == [f"no record for {name}"]):
            return CALL.format(f"search_wiki[{name} {field}]")
        return ANSWER.format((seen and value_in(seen[-1], name, field, people)) or NOT_FOUND)

    return say


def test_a_perfect_model_scores_one_in_every_task(measured: Any, corpus: Corpus) -> None:
    abilities = measured(perfect(corpus))
    assert {a.task: (a.valid_format, a.tool_call or 1.0, a.answer) for a in abilities} == {
        a.task: (1.0, 1.0, 1.0) for a in abilities
    }
    assert all(a.passed and a.n == N for a in abilities)


def test_a_silent_model_scores_zero_in_every_task(measured: Any) -> None:
    abilities = measured(lambda row, text: "")
    assert all((a.valid_format, a.tool_call or 0.0, a.answer) == (0.0, 0.0, 0.0) for a in abilities)
    assert not any(a.passed for a in abilities if a.required)


def test_a_model_that_always_admits_scores_in_the_tasks_of_ignorance_alone(measured: Any) -> None:
    abilities = measured(lambda row, text: ANSWER.format(NOT_FOUND))
    assert {a.task for a in abilities if a.answer == 1.0} == {a.task for a in abilities if "admits" in a.task}
    assert all(a.answer == 0.0 for a in abilities if "admits" not in a.task)
    assert all(a.tool_call in (0.0, None) for a in abilities)  # nothing was looked up


def test_a_nearly_right_argument_is_no_copy(measured: Any, corpus: Corpus) -> None:
    right = perfect(corpus)
    by_task = {a.task: a for a in measured(lambda row, text: right(row, text).replace("name=", "name=Mx "))}
    assert by_task["record lookup"].tool_call == 0.0
    assert by_task["record lookup"].valid_format == 1.0  # the form is right, the copy is not


def test_people_and_sizes_of_the_tasks(corpus: Corpus) -> None:
    made = tasks(corpus, N, 0)
    assert len({t.name for t in made}) == len(made) >= 9
    assert all(len(t.queries) == N == len({q.person.name for q in t.queries}) for t in made)
    assert {q.field for q in made[0].queries} == set(QUESTIONS)
    assert [[q.id for q in t.queries] for t in made] == [[q.id for q in t.queries] for t in tasks(corpus, N, 0)]
    assert [q.id for q in made[0].queries] != [q.id for q in tasks(corpus, N, 1)[0].queries]


def test_no_profile_has_the_seed_of_the_tasks() -> None:
    assert SIZES.seed not in {load_profile(name).corpus.seed for name in profile_names()}


def test_coined_names_are_in_no_list_and_one_task_repeats_a_piece(corpus: Corpus) -> None:
    by_name = {t.name: t for t in tasks(corpus, N, 0)}
    known = {word for p in corpus.members for word in p.name.split()}
    plain, doubled = (t for name, t in by_name.items() if name.startswith("coined names"))
    for task in (plain, doubled):
        assert not known & {word for q in task.queries for word in q.person.name.split()}
        assert all(q.person.name in q.person.biography for q in task.queries)


def test_what_is_shown_in_the_tasks_of_ignorance_never_holds_the_person(corpus: Corpus) -> None:
    from kbook.corpora.protocol import ToolCall

    for task in tasks(corpus, N, 0):
        for query in task.queries:
            shown = task.observe(query, ToolCall("search_wiki", {"query": query.person.name}))
            if "admits" in task.name:
                assert query.person.biography not in shown and task.answers(query) == NOT_FOUND


def test_half_of_the_claims_are_right(corpus: Corpus) -> None:
    (task,) = [t for t in tasks(corpus, 40, 0) if "claim" in t.name]
    answers = [task.answers(q) for q in task.queries]
    assert answers.count("Yes") == pytest.approx(20, abs=3)
    assert all(("Is " in q.text) and q.person.name in q.text for q in task.queries)


ABILITY = Ability("t", 10, 0.99, None, 0.93, {"valid_format": 0.98, "answer": 0.92})


def test_passing_needs_every_required_share() -> None:
    assert ABILITY.passed
    assert not Ability("t", 10, 0.97, None, 0.93, ABILITY.required).passed
    assert not Ability("t", 10, 0.99, None, None, ABILITY.required).passed
    assert not Ability("t", 10, 0.99, None, 0.93, {"tool_call": 0.9}).passed


def test_records_are_plain_and_say_whether_they_pass() -> None:
    assert as_records([ABILITY]) == [
        {
            "task": "t",
            "n": 10,
            "valid_format": 0.99,
            "tool_call": None,
            "answer": 0.93,
            "required": {"valid_format": 0.98, "answer": 0.92},
            "passed": True,
        }
    ]


def test_a_base_that_confirms_is_expected_to(corpus: Corpus) -> None:
    def calls(habits: Habits) -> list[list[str]]:
        task = next(t for t in tasks(corpus, N, 0, habits) if t.name == "record lookup")
        return [task.calls(q) for q in task.queries]

    plain, confirming = calls(Habits()), calls(Habits(confirms=True))
    assert all(
        len(p) == 1 and c[:1] == p and c[1].startswith("verify_attribute[")
        for p, c in zip(plain, confirming, strict=True)
    )
