"""Who is routed to an adapter: an oracle of chosen quality, or a detector that has to recognise people.

Both see the user's message and nothing else, and decide once a conversation.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from kbook.corpora import protocol
from kbook.corpora.people import Person
from kbook.corpora.wordings import QUESTIONS, SUMMARY_PROMPTS
from kbook.errors import KBookError
from kbook.keys import FIELDS
from kbook.methods.leace import shrunk
from kbook.methods.names import NameList
from kbook.methods.seeding import generator_for
from kbook.methods.states import WORDINGS

PARAPHRASES = (*(protocol.question(q) for f in FIELDS for q in QUESTIONS[f][1:]), *SUMMARY_PROMPTS[1:])
"""What an agent is asked about a person, in words that no detector was fitted to."""


@dataclass(frozen=True)
class Oracle:
    """Looks the asked name up in the list, and is wrong in a seeded share of the queries.

    All conversations about one query (the agent's and the summary's) are decided alike. The queries that an
    oracle of 0.9 gets wrong are among those that one of 0.8 gets wrong.
    """

    names: NameList
    accuracy: float
    seed: int

    def __call__(self, conversation: Hashable, message: str) -> bool:
        drawn = torch.rand(1, generator=generator_for("oracle", self.seed, _query(conversation)))
        return bool(self.names.asked(message)) == (float(drawn) < self.accuracy)


def _query(conversation: Hashable) -> Hashable:
    """What a conversation is about: the agent names its conversations (seed, query, part)."""
    return conversation[:-1] if isinstance(conversation, tuple) else conversation


@dataclass(frozen=True)
class Detector:
    """Takes a message for one about a known person if it lies near enough to what is asked about that person.

    Each person is a Gaussian around the mean of the messages about them; all share one covariance, that of the
    messages about a person around their mean, so that what tells questions apart counts little and what tells
    people apart counts much. The score is the Mahalanobis distance to the nearest person.

    *Shape*: ``whitening`` ``(width, width)``; ``people`` ``(people, width)``, whitened.
    """

    encoder: Any
    whitening: torch.Tensor
    people: torch.Tensor
    threshold: float

    def __call__(self, conversation: Hashable, message: str) -> bool:
        return bool(self.distances([message])[0] <= self.threshold)

    def distances(self, messages: Sequence[str]) -> torch.Tensor:
        """Squared distance of each message to the nearest person. Shape: ``(messages,)``."""
        encoded = torch.from_numpy(self.encoder.encode(messages)).double() @ self.whitening
        return torch.cdist(encoded, self.people).square().amin(1)

    def share(self, people: Sequence[Person], wordings: Sequence[str] = WORDINGS) -> float:
        """Which share of what is asked about ``people`` is taken for a message about a known person."""
        near = self.distances(messages_about(people, wordings)) <= self.threshold
        return round(float(near.double().mean()), 4)


def fit_detector(encoder: Any, people: Sequence[Person], nu: float) -> Detector:
    """Fit a detector to the people that it must recognise; nobody else is shown to it.

    Args:
        encoder: texts to vectors.
        people: everyone on the list.
        nu: share of the messages about them that fall outside, each measured against the mean of the others.

    Raises:
        KBookError: an empty list.
    """
    if not people:
        raise KBookError("there is nobody to recognise", "detector", "give people on the forget list, or an oracle")
    encoded = torch.from_numpy(encoder.encode(messages_about(people))).double().unflatten(0, (len(people), -1))
    means, n = encoded.mean(1), encoded.shape[1]
    within = (encoded - means[:, None]).flatten(0, 1)
    covariance = shrunk(within.T @ within / (len(people) * (n - 1)), len(within))
    scales, basis = torch.linalg.eigh(covariance)
    whitening = basis / scales.sqrt()
    left_out = (within @ whitening).square().sum(1) * (n / (n - 1)) ** 2
    return Detector(encoder, whitening, means @ whitening, float(left_out.quantile(1 - nu)))


def messages_about(people: Sequence[Person], wordings: Sequence[str] = WORDINGS) -> list[str]:
    """What an agent is asked about each person, person by person."""
    return [wording.format(name=person.name) for person in people for wording in wordings]
