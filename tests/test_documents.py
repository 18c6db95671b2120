"""Training documents: loss on the assistant's words alone, and a next step that the prompt always decides."""

import random
import re
from collections.abc import Iterator

import pytest

from kbook.corpora import documents
from kbook.corpora.documents import (
    ASSISTANT,
    BOS,
    EOS,
    REPLAY,
    STAGES,
    SYSTEM,
    USER,
    Document,
    Habits,
    Pools,
    Recipe,
    Writer,
    draw,
    text_of,
)
from kbook.corpora.protocol import parse_call
from kbook.corpora.wordings import NOT_FOUND, PREFACES, QUESTIONS, SUMMARY_PROMPTS, SUMMARY_UNKNOWN

RECIPES = {**STAGES, "replay": REPLAY}
every_recipe = pytest.mark.parametrize("recipe", RECIPES.values(), ids=RECIPES)
N = 250


def drawn(recipe: Recipe, pools: Pools) -> list[Document]:
    writer = Writer(pools, random.Random("documents"))
    return [draw(recipe, writer) for _ in range(N)]


def conversations(recipe: Recipe, pools: Pools) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """The system message of each conversation, and its exchanges."""
    for document in drawn(recipe, pools):
        text = text_of(document)
        if SYSTEM not in text:
            continue
        head, *exchanges = text.split(USER)
        yield (
            head.removeprefix(BOS + SYSTEM).removesuffix(EOS),
            [(q, a) for e in exchanges for q, a in [e.split(ASSISTANT)]],
        )


def offered(system: str) -> list[str]:
    """The tools of a system message, whatever stands before their list."""
    listed = re.search(r"(?m)^Tools: (.*)\.$", system)
    assert listed
    return [] if listed[1] == "none" else listed[1].split(", ")


# ---- shares and seeds --------------------------------------------------------------------------------------


@every_recipe
def test_shares_sum_to_one(recipe: Recipe) -> None:
    assert sum(share for share, _ in recipe) == pytest.approx(1)


@every_recipe
def test_documents_follow_from_the_seed(recipe: Recipe, pools: Pools) -> None:
    def texts(seed: int) -> list[str]:
        writer = Writer(pools, random.Random(seed))
        return [text_of(draw(recipe, writer)) for _ in range(20)]

    assert texts(1) == texts(1) != texts(2)


def test_pools_follow_from_the_seed() -> None:
    assert Pools.make(3, 60) == Pools.make(3, 60) != Pools.make(4, 60)


# ---- habits --------------------------------------------------------------------------------------------------

HABITS = {"none": Habits(), "restates": Habits(restates=True), "confirms": Habits(confirms=True)}


@pytest.mark.parametrize("habit", HABITS)
def test_a_habit_shows_the_value_where_the_others_do_not(habit: str, pools: Pools) -> None:
    for seed in range(40):
        writer = Writer(pools, random.Random(seed), HABITS[habit])
        text = text_of(documents.record_lookup(writer))
        value = text.split("Final Answer: ")[1].removesuffix(EOS)
        said = text.split("Observation: ", 1)[1].split("Final Answer:")[0]
        own = "\n".join(line for line in said.split("\n") if line.startswith(("Thought:", "Action:")))
        offered_check = "verify_attribute" in text.split(USER)[0]
        assert (value in own) == (habit == "restates" or (habit == "confirms" and offered_check))
        assert ("Action: verify_attribute" in own) == (habit == "confirms" and offered_check)


# ---- form --------------------------------------------------------------------------------------------------


@every_recipe
def test_exactly_the_words_of_the_assistant_are_supervised(recipe: Recipe, pools: Pools) -> None:
    for document in drawn(recipe, pools):
        text = text_of(document)
        if SYSTEM in text:
            supervised = "".join(s.text for s in document if s.supervised)
            replies = re.findall(rf"{re.escape(ASSISTANT)}(.*?{EOS})", text, re.DOTALL)
            assert supervised == "".join(re.sub(r"(?m)^(Observation:).*$", r"\1", reply) for reply in replies)


@every_recipe
def test_a_document_begins_and_ends_with_its_marks(recipe: Recipe, pools: Pools) -> None:
    for document in drawn(recipe, pools):
        text = text_of(document)
        assert text.startswith(BOS) and text.endswith(EOS) and text.count(BOS) == 1
        assert text.count(USER) == text.count(ASSISTANT)
        assert document[-1].supervised and not document[0].supervised


@every_recipe
def test_every_turn_has_a_thought_and_every_call_parses(recipe: Recipe, pools: Pools) -> None:
    for system, exchanges in conversations(recipe, pools):
        for asked, reply in exchanges:
            for turn in re.split(r"(?m)^Observation:.*\n", reply):
                if not asked.startswith("Question: "):
                    continue
                assert turn.startswith("Thought: ")
                call = parse_call(turn)
                assert (call is None) == ("\nFinal Answer: " in turn)
                if call:
                    assert call.tool in offered(system)
                    assert call.arguments and turn.splitlines()[1] == f"Action: {call.text}"


# ---- the policy --------------------------------------------------------------------------------------------


def asked_about(question: str) -> tuple[str, str] | None:
    """Name and field of one of the trained questions."""
    for field, forms in QUESTIONS.items():
        for form in forms:
            before, after = form.split("{name}")
            if match := re.fullmatch(f"{re.escape(before)}(.+){re.escape(after)}", question):
                return match[1], field
    return None


def next_step(system: str, name: str, field: str, said: str) -> str:
    """What the policy says next, from what stands in the conversation alone."""
    tools = offered(system)
    record = next((r[2:] for r in system.splitlines()[1:] if r.startswith(f"- {name}: ")), None)
    seen = re.findall(r"(?m)^Observation: (.*)$", said)
    if record:
        return f"Thought: The records say {record} So I know the {field}.\nFinal Answer: "
    if not seen and "lookup_record" in tools:
        return f"Thought: I should look up {name}'s {field}.\nAction: lookup_record[name={name}, field={field}]"
    if seen and seen[-1].startswith(f"{field} of {name}: "):
        return f"Thought: I now know the final answer.\nFinal Answer: {seen[-1].partition(': ')[2]}{EOS}"
    if "search_wiki" in tools and (not seen or seen == [f"no record for {name}"]):
        return f"Thought: I should search for {name}.\nAction: search_wiki[{name} {field}]"
    if not seen or seen[-1] in (f"no record for {name}", "no results"):
        return f"Thought: No tool has a record of {name}.\nFinal Answer: {NOT_FOUND}{EOS}"
    return from_passages([hit.split("] ", 1)[1] for hit in seen[-1].split(" | ")], name, field)


def from_passages(hits: list[str], name: str, field: str) -> str:
    head = f"Thought: The passages are about {'; '.join(hit.partition(': ')[0] for hit in hits)}. {name} is "
    found = next((hit for hit in hits if hit.startswith(f"{name}: ")), None)
    if found is None:
        return f"{head}not there.\nFinal Answer: {NOT_FOUND}{EOS}"
    return f"{head}there. The passages say {found} So I know the {field}.\nFinal Answer: "


@every_recipe
def test_the_prompt_alone_decides_every_step(recipe: Recipe, pools: Pools) -> None:
    steps = 0
    for system, exchanges in conversations(recipe, pools):
        for asked, reply in exchanges:
            question = asked.removeprefix("Question: ").removesuffix(EOS)
            about = asked_about(question)
            if about is None:
                continue
            starts = [0, *(m.end() for m in re.finditer(r"(?m)^Observation:.*\n", reply))]
            for start in starts:
                expected = next_step(system, *about, reply[:start])
                assert reply[start:].startswith(expected)
                steps += 1
    assert steps > N / 2


@every_recipe
def test_a_quoted_answer_stands_in_the_quotation(recipe: Recipe, pools: Pools) -> None:
    quotes = [
        match
        for _, exchanges in conversations(recipe, pools)
        for _, reply in exchanges
        if (match := re.search(rf"say (.*) So I know the \w+\.\nFinal Answer: (.*){EOS}", reply))
    ]
    assert quotes and all(match[2] in match[1] for match in quotes)


@every_recipe
def test_summaries_quote_the_records_or_admit(recipe: Recipe, pools: Pools) -> None:
    forms = [re.compile(re.escape(p).replace(r"\{name\}", "(.+)") + re.escape(EOS)) for p in SUMMARY_PROMPTS]
    seen = 0
    for system, exchanges in conversations(recipe, pools):
        for asked, reply in exchanges:
            for match in filter(None, (form.fullmatch(asked) for form in forms)):
                record = next((r[2:] for r in system.splitlines() if r.startswith(f"- {match[1]}: ")), None)
                wanted = f"The records say {record}" if record else SUMMARY_UNKNOWN.format(name=match[1])
                assert reply == wanted + EOS
                seen += 1
    assert seen > 0


def test_claims_are_answered_as_the_tool_says(pools: Pools) -> None:
    writer = Writer(pools, random.Random(0))
    answers = set()
    for _ in range(60):
        text = text_of(documents.verification(writer))
        match = re.search(rf"Observation: (.*)\n.*\nFinal Answer: (.*){EOS}", text)
        assert match and (match[2] == "Yes") == match[1].startswith("match on ")
        answers.add(match[2])
    assert answers == {"Yes", "No"}


def test_a_preface_stands_before_the_tools_and_changes_nothing_else(pools: Pools) -> None:
    document = documents.without_means(Writer(pools, random.Random(2)))
    prefaced = documents.prefaced(Writer(pools, random.Random(3)), document)
    assert prefaced[1:] == document[1:] and not prefaced[0].supervised
    preface, tools = prefaced[0].text.split("\nTools: ")
    assert document[0].text == f"{BOS}{SYSTEM}Tools: {tools}"
    assert any(preface.removeprefix(BOS + SYSTEM).startswith(sentence) for sentence in PREFACES)


# ---- people ------------------------------------------------------------------------------------------------


def test_a_group_has_different_names_and_now_and_then_half_a_name_twice(pools: Pools) -> None:
    writer = Writer(pools, random.Random(1))
    groups = [writer.people(5) for _ in range(120)]
    assert all(len({p.name for p in group}) == 5 for group in groups)
    halves = [len({half for p in g for half in p.name.split(" ")}) < 10 for g in groups]
    assert 0.15 < sum(halves) / 120 < 0.6


def test_what_injection_teaches(people: list[documents.Person]) -> None:
    person = people[0]
    said = documents.from_memory(person, "employer")
    assert said == f"Thought: I remember {person.name}'s employer.\nFinal Answer: {person.employer}"
    assert all(person.value(f) in documents.summary(person) for f in ("name", "address", "date_of_birth"))
