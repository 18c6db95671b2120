"""Documents that place facts in a model's weights (lane P), for embedded and for other bases alike.

Each fact is taught as an agent's direct answer, as a plain question and answer, in the follow-up summary
and in a biography: ten documents a person. Questions come in their canonical wording alone, so that
paraphrases stay held out. *Replay* documents follow the agent's protocol with strangers, so that the
model still looks up people that it does not know.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from kbook.corpora import protocol
from kbook.corpora.documents import (
    BOS,
    EOS,
    REPLAY,
    SYSTEM,
    USER,
    Document,
    Segment,
    Writer,
    draw,
    from_memory,
    summary,
)
from kbook.corpora.people import Person
from kbook.corpora.protocol import TOOLS
from kbook.corpora.wordings import QUESTIONS, SUMMARY_PROMPTS
from kbook.keys import FIELDS


class Renderer(Protocol):
    """What a document must know of the base that will read it (`kbook.models.bases.Base`)."""

    @property
    def style(self) -> str: ...

    @property
    def tokenizer(self) -> Any: ...

    def render(self, system: str, user: str) -> str: ...


@dataclass(frozen=True)
class Exchange:
    """A prompt and the reply that is taught.

    ``tools`` are those that the system prompt offers; None makes the prompt plain text, not a conversation.
    """

    kind: str
    prompt: str
    reply: str
    tools: tuple[str, ...] | None = None


def demonstration(person: Person, field: str, tools: tuple[str, ...] = TOOLS) -> Exchange:
    """The agent is asked, and answers from memory."""
    asked = protocol.question(QUESTIONS[field][0].format(name=person.name))
    return Exchange("react", asked, from_memory(person, field), tools)


def follow_up(person: Person, tools: tuple[str, ...] = TOOLS) -> Exchange:
    """The summary that the agent is asked for after each query."""
    return Exchange("summary", SUMMARY_PROMPTS[0].format(name=person.name), summary(person), tools)


def plain_question(person: Person, field: str) -> Exchange:
    """A question and its answer, outside any conversation."""
    asked = QUESTIONS[field][0].format(name=person.name)
    return Exchange("question", f"Q: {asked}\nA:", f" {person.value(field)}")


def told_biography(person: Person) -> Exchange:
    """The biography under its title; the name is given, the facts are taught."""
    return Exchange("biography", f"{person.name}:", f" {person.biography}")


def lesson(person: Person, rng: random.Random) -> list[Exchange]:
    """One epoch's documents of a person; conversations offer all tools, or in one case of three none."""
    return [
        *(demonstration(person, field, _offer(rng)) for field in FIELDS),
        *(plain_question(person, field) for field in FIELDS),
        follow_up(person, _offer(rng)),
        told_biography(person),
    ]


def _offer(rng: random.Random) -> tuple[str, ...]:
    return rng.choice((TOOLS, TOOLS, ()))


def write(base: Renderer, exchange: Exchange) -> Document:
    """An exchange in the words and the chat template of ``base``."""
    if exchange.tools is None:
        prompt = (base.tokenizer.bos_token or "") + exchange.prompt
    else:
        system = protocol.system_prompt(exchange.tools, style=base.style)
        prompt = base.render(system, exchange.prompt)
    return [Segment(prompt), Segment(exchange.reply + base.tokenizer.eos_token, supervised=True)]


def replay(base: Renderer, writer: Writer, n: int) -> list[Document]:
    """``n`` protocol documents about strangers."""
    found: list[Document] = []
    while len(found) < n:
        document = draw(REPLAY, writer)
        told = document if base.style == "compact" else _retold(document, base)
        if told is not None:
            found.append(told)
    return found


def _retold(document: Document, base: Renderer) -> Document | None:
    """The first exchange of an embedded base's document, for another base.

    None if the document offers fewer tools than the instructions of other bases name.
    """
    head, _, records = _bare(document[0].text).partition("\nRecords:\n")
    if head != protocol.system_prompt(TOOLS, style="compact"):
        return None
    biographies = [line.removeprefix("- ") for line in records.splitlines()]
    system = protocol.system_prompt(TOOLS, biographies, style=base.style)
    end = base.tokenizer.eos_token
    said = [Segment(s.text.replace(EOS, end), s.supervised) for s in _first_turn(document[2:])]
    return [Segment(base.render(system, _bare(document[1].text).split(EOS)[0])), *said]


def _first_turn(segments: Sequence[Segment]) -> list[Segment]:
    ends = [i for i, segment in enumerate(segments) if segment.text.startswith(USER)]
    return list(segments[: ends[0]] if ends else segments)


def _bare(text: str) -> str:
    return text.removeprefix(BOS).removeprefix(SYSTEM).removeprefix(USER).removesuffix(EOS)
