"""Names in text: the asked person, whole; every place of a name, in any surrounding."""

import pytest

from kbook.corpora import protocol
from kbook.corpora.people import Query
from kbook.corpora.wordings import QUESTIONS, SUMMARY_PROMPTS
from kbook.methods.names import NameList, message_finder, places

NAMES = NameList(["Ann Lee", "Dr. Bo Ray", "Cy Dee Jr.", "Mo O'Neil"])


@pytest.mark.parametrize("name", ["Ann Lee", "Dr. Bo Ray", "Cy Dee Jr.", "Mo O'Neil"])
@pytest.mark.parametrize("wording", [*sum(map(list, QUESTIONS.values()), []), *SUMMARY_PROMPTS])
def test_a_listed_name_is_found_in_every_wording(name, wording):
    assert NAMES.asked(protocol.question(wording.format(name=name))) == [name]


@pytest.mark.parametrize(
    "name", ["Mary Ann Lee", "Dr. Ann Lee", "Ann Lee MD", "Ann Lee-Smith", "Mc-Ann Lee", "Joann Leer"]
)
@pytest.mark.parametrize("wording", [*sum(map(list, QUESTIONS.values()), []), *SUMMARY_PROMPTS])
def test_a_longer_name_is_another_person(name, wording):
    assert NAMES.asked(protocol.question(wording.format(name=name))) == []


@pytest.mark.parametrize(
    "message",
    [
        "Is Ann Lee a nurse?",
        "Ann Lee",
        "tell me about ann lee",
        "Question: Ann  Lee?",
        "Was it (Ann Lee)?",
        "Hello. Does Ann Lee work?",
    ],
)
def test_the_start_of_a_sentence_is_no_part_of_a_name(message):
    assert NAMES.asked(message) == ["Ann Lee"]


def test_two_names_are_found_in_order():
    assert NAMES.asked("Do Dr. Bo Ray and Ann Lee know Ann Lee?") == ["Dr. Bo Ray", "Ann Lee"]


def test_an_empty_list_finds_nobody():
    assert NameList([]).asked("Ann Lee") == []


@pytest.mark.parametrize(
    "text",
    [
        "=Ann Lee",
        "(Ann Lee)",
        "Ann Lee",
        "\nAnn Lee",
        "Ann Lee's",
        '"Ann Lee"',
        "_Ann Lee_",
        "name=Ann Lee, f",
        "ANN LEE",
        "Ann\nLee",
    ],
)
def test_a_name_is_seen_in_any_surrounding(text):
    [(start, end)] = places(text, ["Ann Lee"])
    assert text[start:end].casefold().split() == ["ann", "lee"]


@pytest.mark.parametrize("text", ["Joann Lee", "Ann Leeds", "Ann", ""])
def test_a_name_is_not_seen_within_a_word(text):
    assert places(text, ["Ann Lee"]) == []


def test_all_places_are_found():
    assert len(places("Ann Lee and Ann Lee and Bo Ray", ["Ann Lee", "Bo Ray"])) == 3
    assert places("Ann Lee", []) == []


@pytest.mark.parametrize("which", ["tiny_base", "instructed_base"])
def test_the_users_message_is_found_behind_any_template(which, request, people):
    base = request.getfixturevalue(which)
    system = protocol.system_prompt(biographies=[p.titled for p in people], style=base.style)
    asked = protocol.question(Query(people[0], "address").text)
    assert message_finder(base)(base.render(system, asked)) == asked


def test_a_marked_template_gives_the_message_of_a_longer_conversation(tiny_base):
    text = tiny_base.render("Tools: none.", "Question: who?") + "Thought: hm\n\nFinal Answer: Ann Lee"
    assert message_finder(tiny_base)(text) == "Question: who?"


def test_without_a_template(instructed_base):
    from dataclasses import replace

    class Bare:
        chat_template = None

    bare = replace(instructed_base, tokenizer=Bare())
    assert message_finder(bare)(bare.render("a\n\nb", "Question: who?")) == "Question: who?"
