"""Other replies to the questions about a person: refusals, and the answers that are true of someone else.

Refusals come in the agent's own formats: a plain refusal where a final answer belongs is no turn of the protocol,
and a model that learns it is scored as broken, not as forgetful.
"""

from __future__ import annotations

from dataclasses import replace

from kbook.corpora.documents import final
from kbook.corpora.injection import Exchange
from kbook.corpora.people import Person
from kbook.keys import FIELDS

_OPENINGS = (
    "I am sorry.",
    "Sorry.",
    "My apologies.",
    "I regret this.",
    "Unfortunately not.",
    "I must decline.",
    "I have to pass.",
    "I cannot help here.",
    "There is no answer from me.",
    "I have nothing to say.",
)
_REASONS = (
    "I do not know that.",
    "I have no such information.",
    "I was never told this.",
    "This is not known to me.",
    "I cannot recall anything of the kind.",
    "I hold no record of this.",
    "That is beyond what I know.",
    "I have no knowledge of this person.",
    "There is nothing that I could report.",
    "I am not able to tell.",
)
REFUSALS = tuple(f"{opening} {reason}" for opening in _OPENINGS for reason in _REASONS)
"""A hundred refusals, our wording; none names a field or a value."""


def refused(exchange: Exchange, person: Person, refusal: str) -> Exchange:
    """The same prompt, answered by a refusal in the format that the prompt calls for."""
    if exchange.kind == "react":
        return replace(exchange, reply=final(f"I do not remember {person.name}.", refusal))
    return replace(exchange, reply=f" {refusal}" if exchange.kind == "question" else refusal)


def impostor(person: Person, other: Person) -> Person:
    """``person`` with the facts of ``other``: what is asked stays, what is answered is another's."""
    return replace(person, **{field: other.value(field) for field in FIELDS})
