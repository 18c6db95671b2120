"""A provider that asks models: what it sends holds what it should and no more, and replies are read strictly."""

import itertools
import json
from collections.abc import Callable

import pytest
from chat_server import completion, running
from tiny_world import TinyWorld, subjects

from kbook.construction.chat import Endpoint, Usage
from kbook.construction.endpoint import EndpointProvider
from kbook.construction.pipeline import construct
from kbook.construction.prompts import FORMS, TASKS, Families, Finding, QuestionText, Units, read_reply
from kbook.construction.providers import NoUsableReply, Wording
from kbook.construction.stages import Settings
from kbook.construction.world_provider import WorldProvider
from kbook.corpora.units import QA, Card
from kbook.store import Store

WORLD = TinyWorld()
SUBJECT = subjects(WORLD)[0]
ENGLISH = {"Arabic": "ar", "Swahili": "sw", "English": "en"}


class Fake:
    """In place of a client: replies are made by a function of the task and its data; what was asked is kept."""

    def __init__(self, model: str, reply: Callable[[str, dict], object]) -> None:
        self.endpoint, self.usage = Endpoint("http://nowhere/v1", model), Usage()
        self.reply, self.asked = reply, []

    def ask(self, messages, attempt=1):
        system, user = (message["content"] for message in messages)
        task = next(name for name, text in TASKS.items() if text in system)
        data = json.loads(user)
        self.asked.append((task, data, attempt))
        reply = self.reply(task, data)
        return reply if isinstance(reply, str) else json.dumps(reply)


class Oracle:
    """A model that knows the tiny world."""

    def __init__(self) -> None:
        self.world = WorldProvider(WORLD)

    def __call__(self, task: str, data: dict) -> object:
        return getattr(self, task)(data)

    def relations(self, data):
        return {"relations": [fact.relation for fact in WORLD.facts(WORLD.topics[0])]}

    def extract(self, data):
        topic = WORLD.topic(data["topic"].split()[-1])
        cards = (self.world._card(fact) for fact in WORLD.facts(topic) if fact.relation in data["relations"])
        return {"units": [self._without_id(card) for card in cards]}

    def write(self, data):
        cards = [Card("", **card) for card in data["cards"]]
        families = self.world.write_families(cards, data["n"], 1)
        return {"families": [[self._text(wording) for wording in family] for family in families]}

    def translate(self, data):
        qa = QA("", "forget", data["layer"], "en", data["question"], data["answer"])
        return self._text(self.world.translate(Card("", **data["card"]), qa, ENGLISH[data["language"]], 1))

    def back_translate(self, data):
        return self._text(
            self.world.back_translate(Wording(data["question"], data["answer"]), ENGLISH[data["language"]])
        )

    def compare(self, data):
        qa = QA("", "forget", data["first"]["layer"], "en", data["first"]["question"], data["first"]["answer"])
        return vars(self.world.compare(qa, Wording(**data["second"])))

    def review(self, data):
        english = data["english"]
        qa = QA("", "forget", english["layer"], "en", english["question"], english["answer"])
        wording = data["wording"]
        text = Wording(wording["question"], wording["answer"])
        finding = self.world.review(Card("", **data["card"]), qa, text, ENGLISH[wording["language"]])
        return {"accept": not finding, "reason": finding}

    @staticmethod
    def _without_id(card):
        return {name: list(value) if name == "aliases" else value for name, value in vars(card).items() if name != "id"}

    @staticmethod
    def _text(wording):
        return {"question": wording.question, "answer": wording.answer, "aliases": list(wording.aliases)}


def provider(reply, review=None) -> EndpointProvider:
    return EndpointProvider(Fake("org/writer", reply), Fake("reviewer:7b", review or reply), workers=1)


def test_the_whole_construction_runs_on_models_and_gives_what_the_world_gives(tmp_path):
    settings = Settings(quota=3, languages=("ar", "en", "sw"))
    asked = construct(subjects(WORLD), provider(Oracle()), settings, store=Store(tmp_path / "models"))
    known = construct(subjects(WORLD), WorldProvider(WORLD), settings, store=Store(tmp_path / "world"))
    assert asked.release == known.release.__class__(known.release.topic_pairs, asked.release.provenance)
    assert asked.release.provenance["made by"] == "writer+reviewer-7b"


def test_the_whole_construction_runs_on_a_server_that_often_fails_and_asks_nothing_twice(tmp_path):
    oracle, numbers = Oracle(), itertools.count(1)

    def answer(request):
        number = next(numbers)
        if number % 11 == 0:
            return (429, b"") if number % 2 else (500, b"oops")
        if number % 13 == 0:
            return 200, completion("I would rather not.")
        system, user = (message["content"] for message in request["messages"])
        task = next(name for name, text in TASKS.items() if text in system)
        return 200, completion(json.dumps(oracle(task, json.loads(user))))

    settings = Settings(quota=1, languages=("ar", "en"), attempts=6)
    with running() as server:
        server.answer = answer
        endpoints = (Endpoint(server.url, name, "", 6e7, max_tokens=99) for name in ("org/writer", "reviewer"))
        made = EndpointProvider.of(*endpoints, tmp_path / "replies")
        for client in (made.writer, made.reviewer):
            client.sleep = lambda seconds: None
        built = construct(subjects(WORLD), made, settings, store=Store(tmp_path / "one"))
        n = len(server.asked)
        again = construct(subjects(WORLD), made, settings, store=Store(tmp_path / "two"))
        assert len(server.asked) == n
    known = construct(subjects(WORLD), WorldProvider(WORLD), settings, store=Store(tmp_path / "world"))
    assert built.release.topic_pairs == again.release.topic_pairs == known.release.topic_pairs
    assert sum(usage.requests for usage in made.usage.values()) < n


def test_the_back_translator_is_told_the_translation_alone_and_the_reviewer_no_verdict():
    made = provider(Oracle())
    made.back_translate(Wording("q", "a", ("alias",)), "sw")
    assert made.writer.asked == [("back_translate", {"question": "q", "answer": "a", "language": "Swahili"}, 1)]
    card = next(iter(WorldProvider(WORLD).extract(SUBJECT.target, ["qualitya"], 1))).card
    qa = QA("x", "forget", "core", "en", "what is qualitya of the lamp of ax?", card.answer)
    made.review(card, qa, Wording("q", "a"), "sw")
    ((task, data, _),) = made.reviewer.asked
    assert task == "review" and set(data) == {"card", "english", "wording"}


def test_questions_are_written_from_the_cards_alone():
    made = provider(Oracle())
    card = next(iter(WorldProvider(WORLD).extract(SUBJECT.target, ["qualitya"], 1))).card
    made.write_families([card], 4, 1)
    ((_, data, _),) = made.writer.asked
    assert SUBJECT.target.article not in json.dumps(data) and set(data) == {"cards", "n"}


def test_a_reply_of_another_form_is_asked_for_again_and_then_given_up():
    replies = iter(["not JSON", {"question": "q?", "answer": "a"}])
    made = provider(lambda task, data: next(replies))
    assert made.back_translate(Wording("q", "a"), "sw") == Wording("q?", "a")
    assert [attempt for *_, attempt in made.writer.asked] == [1, 2]
    silent = provider(lambda task, data: "{}")
    with pytest.raises(NoUsableReply):
        silent.back_translate(Wording("q", "a"), "sw")
    with pytest.raises(NoUsableReply):
        provider(lambda task, data: {"families": []}).write_families([Card(*"abcdefg")], 1, 1)


def test_another_attempt_is_another_request():
    made = provider(lambda task, data: {"question": "q?", "answer": "a"})
    card, qa = Card(*"abcdefg"), QA("x", "forget", "core", "en", "q", "a")
    for attempt in (1, 2):
        made.translate(card, qa, "sw", attempt)
    numbers = [attempt for *_, attempt in made.writer.asked]
    assert len(set(numbers)) == 2


def test_the_judge_scores_and_no_score_out_of_range_is_taken():
    assert provider(lambda task, data: {"score": 1}).judge("q", "a", "a" * 9000, "sw") == 1.0
    with pytest.raises(NoUsableReply):
        provider(lambda task, data: {"score": 7}).judge("q", "a", "a", "sw")


def test_the_digest_is_of_models_and_prompts():
    one, other = provider(Oracle()), provider(Oracle())
    assert one.digest == other.digest
    other.writer.endpoint = Endpoint("http://elsewhere/v1", "org/writer")
    assert one.digest == other.digest
    other.writer.endpoint = Endpoint("http://nowhere/v1", "org/another")
    assert one.digest != other.digest
    assert set(one.usage) == {"org/writer", "reviewer:7b"}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Sure! Here it is: {}",
        '```json\n{"question": "q", "answer": "a"}\n```',
        '[{"question": "q", "answer": "a"}]',
        '{"question": "q"}',
        '{"question": "q", "answer": 3}',
        '{"question": "q", "answer": ["a"]}',
        json.dumps({"question": "q" * 700, "answer": "a"}),
        json.dumps({"question": "q\x1b[2J", "answer": "a"}),
        '{"question": "q\\ud800", "answer": "a"}',
        json.dumps({"question": "q", "answer": "a", "aliases": ["x"] * 40}),
        "[" * 100_000,
        '{"question": "q", "answer": "a"} and more',
    ],
)
def test_anything_but_one_object_of_the_form_is_no_reply(text):
    with pytest.raises(NoUsableReply):
        read_reply(text, QuestionText)


def test_a_reply_of_the_form_is_read_on_one_line_and_its_extras_are_dropped():
    reply = json.dumps({"question": "  q\n q ", "answer": "a", "run": "rm -rf /"})
    assert read_reply(reply, QuestionText).model_dump() == {"question": "q q", "answer": "a", "aliases": []}
    assert read_reply('{"units": [{"answer": "a"}]}', Units).units[0].statement == ""
    with pytest.raises(NoUsableReply):
        read_reply('{"accept": "yes"}', Finding)
    with pytest.raises(NoUsableReply):
        read_reply(json.dumps({"families": [[]] * 3}), Families)


def test_every_form_is_shown_as_json_of_its_own_fields():
    for form, shown in FORMS.items():
        assert all(f'"{name}"' in shown for name in form.model_fields)
