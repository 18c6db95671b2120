"""Documents for injection: what is taught, in which wording, for which base."""

import random

import pytest

from kbook.corpora import documents, injection, protocol
from kbook.corpora.documents import Writer, text_of
from kbook.corpora.injection import demonstration, follow_up, lesson, plain_question, replay, told_biography, write
from kbook.corpora.protocol import TOOLS
from kbook.corpora.wordings import QUESTIONS, SUMMARY_PROMPTS
from kbook.keys import FIELDS


@pytest.fixture
def person(people):
    return people[0]


@pytest.mark.parametrize("tools", [TOOLS, ()], ids=["tools", "no tools"])
def test_a_demonstration_is_what_the_embedded_bases_were_trained_to_read(tiny_base, person, tools):
    asked = protocol.question(QUESTIONS["employer"][0].format(name=person.name))
    by_hand = [
        documents.system(tools),
        documents.user(asked),
        documents.say(documents.from_memory(person, "employer")),
    ]
    assert text_of(write(tiny_base, demonstration(person, "employer", tools))) == text_of(by_hand)


def test_a_demonstration_ends_in_the_value(tiny_base, person):
    *_, reply = write(tiny_base, demonstration(person, "address"))
    assert reply.supervised
    assert reply.text.endswith(f"Final Answer: {person.address}</s>")


def test_plain_forms(tiny_base, person):
    question = write(tiny_base, plain_question(person, "occupation"))
    assert text_of(question) == f"<s>Q: What is {person.name}'s occupation?\nA: {person.occupation}</s>"
    assert text_of(write(tiny_base, told_biography(person))) == f"<s>{person.titled}</s>"


def test_the_name_is_given_and_the_facts_are_taught(tiny_base, person):
    for exchange in (told_biography(person), follow_up(person), plain_question(person, "address")):
        prompt, reply = write(tiny_base, exchange)
        assert not prompt.supervised
        assert person.name in prompt.text and person.address not in prompt.text
        assert reply.supervised and person.address in reply.text


def test_the_summary_answers_the_prompt_that_the_agent_uses(tiny_base, person):
    prompt, reply = write(tiny_base, follow_up(person))
    assert SUMMARY_PROMPTS[0].format(name=person.name) in prompt.text
    assert all(person.value(f) in reply.text for f in FIELDS)


def test_a_lesson_has_ten_documents_and_paraphrases_are_held_out(tiny_base, person):
    rng = random.Random(0)
    lessons = [lesson(person, rng) for _ in range(30)]
    assert {len(one) for one in lessons} == {10}
    said = "\n".join(text_of(write(tiny_base, e)) for one in lessons for e in one)
    for field in FIELDS:
        assert QUESTIONS[field][0].format(name=person.name) in said
        assert not any(q.format(name=person.name) in said for q in QUESTIONS[field][1:])
    assert SUMMARY_PROMPTS[1].format(name=person.name) not in said


def test_conversations_come_with_all_tools_or_none(person):
    rng = random.Random(0)
    offers = [e.tools for _ in range(30) for e in lesson(person, rng) if e.tools is not None]
    assert set(offers) == {TOOLS, ()}
    assert 0.5 < offers.count(TOOLS) / len(offers) < 0.8


def test_same_generator_same_lesson(person):
    assert lesson(person, random.Random(3)) == lesson(person, random.Random(3))


def test_replay_for_an_embedded_base_is_its_own_protocol(tiny_base, pools):
    told = replay(tiny_base, Writer(pools, random.Random(1)), 20)
    writer = Writer(pools, random.Random(1))
    assert told == [documents.draw(documents.REPLAY, writer) for _ in range(20)]


def test_another_base_gets_its_own_template_and_instructions(instructed_base, person):
    text = text_of(write(instructed_base, demonstration(person, "employer")))
    assert text.startswith("<turn>user\nYou answer questions about people.")
    assert text.endswith(f"Final Answer: {person.employer}</s>")
    assert "<|" not in text


def test_replay_for_another_base_has_no_marker_of_the_embedded_ones(instructed_base, pools):
    told = replay(instructed_base, Writer(pools, random.Random(1)), 40)
    assert len(told) == 40
    for document in told:
        text = text_of(document)
        assert not any(mark in text for mark in ("<|", "Tools: ", "<s>"))
        assert text.count("Question: ") + text.count("Summarize") + text.count("Tell me all") == 1
        assert document[-1].supervised and document[-1].text.endswith("</s>")


def test_replay_keeps_records_and_observations(instructed_base, pools):
    told = [text_of(d) for d in replay(instructed_base, Writer(pools, random.Random(1)), 60)]
    assert any("Records:\n- " in text for text in told)
    assert any("Observation: no record for" in text for text in told)


def test_several_questions_are_cut_after_the_first(tiny_base, instructed_base, pools):
    writer = Writer(pools, random.Random(2))
    document = documents.record_lookup(writer, questions=2)
    document[0] = documents.system(TOOLS)
    told = injection._retold(document, instructed_base)
    assert text_of(told).count("Question: ") == 1
    assert text_of(told).count("Final Answer:") == 2  # once in the instructions


def test_fewer_tools_than_the_instructions_name_are_not_told(instructed_base, pools):
    document = documents.record_lookup(Writer(pools, random.Random(2)))
    document[0] = documents.system(TOOLS[:1])
    assert injection._retold(document, instructed_base) is None
