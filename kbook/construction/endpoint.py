"""A provider that asks language models over the chat-completions protocol.

One model extracts, writes, translates and compares; another, the reviewer, sees none of its verdicts. Replies are
cached by request (`kbook.construction.chat`) and read strictly (`kbook.construction.prompts`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeVar

from kbook.construction.candidates import Candidate
from kbook.construction.chat import ChatClient, Endpoint, Usage
from kbook.construction.prompts import (
    FORMS,
    TASKS,
    Families,
    Finding,
    Kept,
    QuestionText,
    Relations,
    Score,
    Units,
    messages,
    read_reply,
)
from kbook.construction.providers import Comparison, NoUsableReply, Wording
from kbook.construction.topics import Topic
from kbook.corpora.languages import language as language_of
from kbook.corpora.units import QA, Card
from kbook.digests import digest_of
from kbook.keys import base_segment

R = TypeVar("R", Relations, Units, QuestionText, Families, Kept, Finding, Score)
_ANCHOR = ("relation", "slot", "statement", "answer", "answer_type", "span")


@dataclass(frozen=True)
class EndpointProvider:
    """Ask models for everything.

    Args:
        writer: the model that extracts, writes, translates, translates back and compares.
        reviewer: the model that reviews and judges; another one, so that it does not share the writer's errors.
        tries: how often to ask again when a reply is not of the wanted form.
        workers: how many questions may be put at once.
    """

    writer: ChatClient
    reviewer: ChatClient
    tries: int = 2
    workers: int = 4
    sources: tuple[str, ...] = ("kbook.construction.endpoint",)

    @classmethod
    def of(cls, writer: Endpoint, reviewer: Endpoint, cache: Path) -> EndpointProvider:
        """A provider whose replies are stored in a folder, such as ``replies`` in the run store."""
        return cls(ChatClient(writer, cache), ChatClient(reviewer, cache))

    @property
    def name(self) -> str:
        """The models, as the segment of a key."""
        names = (base_segment(client.endpoint.model).replace(":", "-") for client in (self.writer, self.reviewer))
        return "+".join(names)

    @property
    def digest(self) -> str:
        """Digest of models and prompts; the server's address and the key do not count."""
        forms = {form.__name__: text for form, text in FORMS.items()}
        return digest_of([self.writer.endpoint.model, self.reviewer.endpoint.model, TASKS, forms, self.tries])

    @property
    def usage(self) -> dict[str, Usage]:
        """What was asked of each model in this process, and what it cost."""
        return {client.endpoint.model: client.usage for client in (self.writer, self.reviewer)}

    def shared_relations(self, target: Topic, neighbour: Topic) -> tuple[str, ...]:
        data = {"first": _article(target), "second": _article(neighbour)}
        return tuple(self._ask(self.writer, "relations", Relations, data).relations)

    def extract(self, topic: Topic, relations: Sequence[str], limit: int) -> tuple[Candidate, ...]:
        data = {**_article(topic), "relations": list(relations), "limit": limit}
        units = self._ask(self.writer, "extract", Units, data).units[:limit]
        cards = (Card("", **{**unit.model_dump(), "aliases": tuple(unit.aliases)}) for unit in units)
        return tuple(Candidate(card, place) for place, card in enumerate(cards))

    def write_families(self, cards: Sequence[Card], n: int, attempt: int) -> tuple[tuple[Wording, ...], ...]:
        data = {"cards": [_anchor(card) for card in cards], "n": n}
        families = self._ask(self.writer, "write", Families, data, attempt).families
        if len(families) != len(cards):
            raise NoUsableReply
        return tuple(tuple(map(_wording, family)) for family in families)

    def translate(self, card: Card, qa: QA, language: str, attempt: int) -> Wording:
        data = {"card": _anchor(card), **_english(qa), "language": language_of(language).name}
        return _wording(self._ask(self.writer, "translate", QuestionText, data, attempt))

    def back_translate(self, wording: Wording, language: str) -> Wording:
        data = {"question": wording.question, "answer": wording.answer, "language": language_of(language).name}
        return _wording(self._ask(self.writer, "back_translate", QuestionText, data))

    def compare(self, qa: QA, back: Wording) -> Comparison:
        data = {"first": _english(qa), "second": {"question": back.question, "answer": back.answer}}
        return Comparison(**self._ask(self.writer, "compare", Kept, data).model_dump())

    def review(self, card: Card, qa: QA, wording: Wording, language: str) -> str:
        texts = {"question": wording.question, "answer": wording.answer, "language": language_of(language).name}
        data = {"card": _anchor(card), "english": _english(qa), "wording": texts}
        finding = self._ask(self.reviewer, "review", Finding, data)
        return "" if finding.accept else "refused by the reviewer"

    def judge(self, question: str, expected: str, answer: str, language: str) -> float:
        data = {"question": question, "expected": expected, "answer": answer[:2000], "language": language}
        return self._ask(self.reviewer, "judge", Score, data).score

    def _ask(self, client: ChatClient, task: str, form: type[R], data: Mapping[str, Any], attempt: int = 1) -> R:
        """Ask until a reply has the wanted form; each further try is another request."""
        for number in range(self.tries):
            text = client.ask(messages(task, form, data), (attempt - 1) * self.tries + number + 1)
            try:
                return read_reply(text, form)
            except NoUsableReply:
                continue
        raise NoUsableReply


def _article(topic: Topic) -> dict[str, str]:
    return {"topic": topic.name, "article": topic.article}


def _anchor(card: Card) -> dict[str, str]:
    return {name: getattr(card, name) for name in _ANCHOR}


def _english(qa: QA) -> dict[str, str]:
    return {name: text for name, text in asdict(qa).items() if name in ("question", "answer", "layer")}


def _wording(text: QuestionText) -> Wording:
    return Wording(text.question, text.answer, tuple(text.aliases))
