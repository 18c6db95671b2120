"""Negative preference optimisation: forget answers are dispreferred, with no preferred side.

Ascent on the forget answers whose weight fades as the model moves away from where it started, and plain
training on retain documents in the same step.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import cycle
from typing import Any

import torch
import torch.nn.functional as F
from pydantic import Field

from kbook.corpora.documents import Document
from kbook.corpora.injection import demonstration, follow_up, plain_question, write
from kbook.corpora.people import Person
from kbook.corpora.protocol import TOOLS
from kbook.keys import FIELDS
from kbook.methods.contract import FitContext, Intervention, Parameters
from kbook.models.bases import Base
from kbook.models.batching import Batch
from kbook.models.likelihood import sequence_nll, token_loss
from kbook.models.tuning import batches_of, fit


class NPOParameters(Parameters):
    """Settings of `NPO`.

    The papers train with a rate of 1e-5 for 10 epochs at 7 billion parameters. A model of a few million
    takes rates forty times as large in injection, and the same holds for taking facts out.
    """

    beta: float = Field(0.1, gt=0, le=100, description="inverse temperature; towards 0 it is gradient ascent")
    alpha: float = Field(1.0, ge=0, le=100, description="weight of the retain term")
    learning_rate: float = Field(1e-4, gt=0, le=1, description="peak rate of AdamW")
    epochs: int = Field(10, ge=1, le=1000, description="passes over the forget documents")
    batch_tokens: int = Field(1024, ge=64, description="padded tokens of each pool in a step")
    warmup_steps: int = Field(5, ge=0, description="steps in which the rate rises from zero")


@dataclass(frozen=True)
class Contrast:
    """What one step sees; ``reference`` is N0, the start model's summed NLL. Shape: ``(documents,)``."""

    forget: Batch
    reference: torch.Tensor
    retain: Batch


def npo_loss(nll: torch.Tensor, reference: torch.Tensor, beta: float) -> torch.Tensor:
    """``-2 / beta * mean(log sigmoid(beta * (N - N0)))`` of summed sequence NLLs.

    *Shape*: ``(documents,)`` twice. *Unit*: nats. Where N = N0 it is ``2 ln 2 / beta``, with the gradient
    of gradient ascent on N.

    Source: Zhang et al. 2404.05868, equation 3.
    """
    return -2 / beta * F.logsigmoid(beta * (nll - reference.to(nll))).mean()


class NPO(Intervention):
    """NPO with a retain term, all weights trained.

    Learns from the fitting pools alone. The reference is computed once per document from the untouched
    model, so no second model is held while training.
    """

    name, title, family = "npo", "NPO", "weights"
    lanes = ("P",)
    reason = (
        "NPO edits weights; in this lane the fact is not in the weights but is handed to the model as text "
        "at run time, where no training can remove it"
    )
    source = "Zhang et al. 2404.05868, with a retain term as in OpenUnlearning"
    Parameters = NPOParameters
    settings: NPOParameters

    def edit(self, context: FitContext) -> dict[str, Any]:
        base, settings = context.base, self.settings
        rng = random.Random(f"npo/{context.seed}")
        forget = self._batches(base, context.fit_forget, rng)
        retain = self._batches(base, context.fit_retain, rng)
        reference = [nll_of(base.model, batch) for batch in forget]
        model = copy.deepcopy(base.model)

        def epoch(number: int) -> list[Contrast]:
            order = random.Random(f"npo/{context.seed}/{number}")
            kept = cycle(order.sample(retain, len(retain)))
            steps = [Contrast(f, n0, r) for f, n0, r in zip(forget, reference, kept, strict=False)]
            return order.sample(steps, len(steps))

        facts = fit(model, epoch, settings, context.work, self.loss, label=self.name)
        model.save_pretrained(context.work)
        base.tokenizer.save_pretrained(context.work)
        before, after = (_means(m, forget, retain) for m in (base.model, model))
        return {**facts, "nll": {"before": before, "after": after}}

    def loss(self, model: Any, item: Contrast) -> torch.Tensor:
        """NPO on the forget documents plus ``alpha`` times the token mean on retain documents."""
        loss = npo_loss(sequence_nll(model, item.forget), item.reference, self.settings.beta)
        return loss + self.settings.alpha * token_loss(model, item.retain) if self.settings.alpha else loss

    def _batches(self, base: Base, people: Sequence[Person], rng: random.Random) -> list[Batch]:
        documents = [document for person in people for document in told(base, person)]
        return batches_of(base, documents, self.settings.batch_tokens, rng)


def told(base: Base, person: Person) -> list[Document]:
    """What a model tells of a person it knows: direct answers, plain answers and summaries."""
    exchanges = [demonstration(person, field, tools) for field in FIELDS for tools in (TOOLS, ())]
    exchanges += [plain_question(person, field) for field in FIELDS]
    exchanges += [follow_up(person, tools) for tools in (TOOLS, ())]
    return [write(base, exchange) for exchange in exchanges]


@torch.no_grad()
def nll_of(model: Any, batch: Batch) -> torch.Tensor:
    """Summed NLL of each document, without gradients."""
    return sequence_nll(model, batch)


def _means(model: Any, forget: Sequence[Batch], retain: Sequence[Batch]) -> dict[str, float]:
    """Mean NLL per token over the documents of each pool."""
    pools = {"forget": forget, "retain": retain}
    with torch.no_grad():
        nll = {name: torch.cat([sequence_nll(model, b, "mean") for b in pool]) for name, pool in pools.items()}
    return {name: round(float(values.mean()), 4) for name, values in nll.items()}
