"""Other answers in place of the forgotten ones: refusals (IDK, FLAT) and answers that are another's (LLMU)."""

from __future__ import annotations

import random
from typing import Any, Literal

import torch
from pydantic import Field

from kbook.corpora.documents import Document
from kbook.corpora.people import Person
from kbook.corpora.refusals import REFUSALS, impostor, refused
from kbook.methods.contract import FitContext
from kbook.methods.divergences import soft_cross_entropy, variational_loss
from kbook.methods.weights import Contrast, TrainedMethod, Training, Weighted, WeightedMethod, told_exchanges, written
from kbook.models.bases import Base
from kbook.models.batching import Batch
from kbook.models.likelihood import Predictions, predictions, token_loss


def refusals(base: Base, person: Person, rng: random.Random) -> list[Document]:
    """What is asked about a person, each time refused in other words."""
    return written(base, [refused(e, person, rng.choice(REFUSALS)) for e in told_exchanges(person)])


def answers_of_others(context: FitContext, person: Person, rng: random.Random) -> list[Document]:
    """What is asked about a person, answered with the facts of one of the retain pool."""
    return written(context.base, told_exchanges(impostor(person, rng.choice(context.fit_retain))))


# ---- IDK ---------------------------------------------------------------------------------------------------


class IDK(TrainedMethod):
    """Refusal tuning: refusals of the forget questions and the answers of retain people, trained as one batch.

    The loss is one mean over all supervised tokens of both, so that long answers weigh more than short refusals.

    Source: TOFU 2401.06121, its ``idk`` branch; refusals are a hundred of our own, in the agent's formats. Papers: as
    GA. Whether K-Bench means this or OpenUnlearning's ``IdkDPO`` is not known; the latter is `DPO`. Pitfall: refusals
    that are no turn of the protocol break the agent.
    """

    name, title = "idk", "IDK"
    source = "TOFU 2401.06121 (idk, cross-entropy); refusals of our own in the agent's formats"

    def versions(self, context: FitContext, person: Person, rng: random.Random) -> list[list[Document]]:
        return [refusals(context.base, person, rng)]

    def loss(self, model: Any, item: Contrast) -> torch.Tensor:
        both = (predictions(model, batch).losses() for batch in (item.versions[0], item.retain))
        return torch.cat(list(both)).mean()


# ---- FLAT --------------------------------------------------------------------------------------------------

Divergence = Literal["tv", "kl", "pearson", "js", "hellinger", "neyman", "reverse_kl"]


class FLATParameters(Training):
    """Settings of `FLAT`."""

    divergence: Divergence = Field("tv", description="f-divergence that is maximised between refusals and answers")


class FLAT(TrainedMethod):
    """Loss adjustment with forget data and refusals alone: an f-divergence between the two kinds of answer grows.

    Works on mean token probabilities, not on their logarithms: of each document, then of the batch.

    Source: Wang et al. 2410.11143 (ICLR 2025); total variation, rate 1e-5, 5 epochs, batches of 64. The public code
    counts ignored positions as zeros, so that its value depends on the length of the prompt; here supervised tokens
    alone count. Pitfalls: no retain term; and where all tokens are already sure or lost, gradients vanish.
    """

    name, title = "flat", "FLAT"
    source = "Wang et al. 2410.11143; total variation; mean over supervised tokens alone, refusals of our own"
    Parameters = FLATParameters
    settings: FLATParameters

    def versions(self, context: FitContext, person: Person, rng: random.Random) -> list[list[Document]]:
        return [refusals(context.base, person, rng)]

    def loss(self, model: Any, item: Contrast) -> torch.Tensor:
        refusal, answer = (self._probability(model, batch) for batch in (item.versions[0], item.forget))
        return variational_loss(refusal, answer, self.settings.divergence)

    def _probability(self, model: Any, batch: Batch) -> torch.Tensor:
        found = predictions(model, batch)
        return found.by_document(torch.exp(-found.losses()), "mean").mean()


# ---- LLMU --------------------------------------------------------------------------------------------------


class LLMUParameters(Weighted):
    """Settings of `LLMU`."""

    gamma: float = Field(0.5, ge=0, le=1000, description="weight of the ascent on forget answers")
    mismatch: float = Field(1.0, ge=0, le=1000, description="weight of the other answers")
    answers: int = Field(1, ge=1, le=20, description="other answers to each forget question")


class LLMU(WeightedMethod):
    """Ascent on forget answers, descent on answers that are another person's, and the start's predictions on retain.

    Source: Yao et al. 2310.10683; weights 0.5, 1, 1, rate 2e-6, at most 1,000 steps of 2, 5 random answers (one here,
    see ``answers``; they come from the retain pool). As in the public code the retain term is a cross-entropy, equal to
    the KL but for a constant. Its stop rule compares a negative loss with +100 and never fires; there is none here
    but the loop's own. Pitfall: unbounded, as all ascent.
    """

    name, title = "llmu", "LLMU"
    source = "Yao et al. 2310.10683; one other answer a question, drawn from the retain pool"
    Parameters = LLMUParameters
    settings: LLMUParameters

    def versions(self, context: FitContext, person: Person, rng: random.Random) -> list[list[Document]]:
        return [answers_of_others(context, person, rng) for _ in range(self.settings.answers)]

    def keep(self, start: Any, retain: Batch) -> Predictions:
        return predictions(start, retain, "all")

    def forget_loss(self, model: Any, item: Contrast) -> torch.Tensor:
        return -token_loss(model, item.forget)

    def retain_loss(self, model: Any, item: Contrast) -> torch.Tensor:
        return soft_cross_entropy(item.kept.fixed_logits().softmax(-1), predictions(model, item.retain, "all").logits())

    def loss(self, model: Any, item: Contrast) -> torch.Tensor:
        loss = super().loss(model, item)
        if not self.settings.mismatch:
            return loss
        others = torch.stack([token_loss(model, other) for other in item.versions]).mean()
        return loss + self.settings.mismatch * others
