"""How likely a model finds the supervised words of a document: the one home of next-token losses.

Training, unlearning and membership tests all start from the same predictions at the same positions; only
what is made of them differs. Softmaxes are taken in float32 whatever the weights' type, and the output head sees the
chosen positions alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import torch
import torch.nn.functional as F

from kbook.models.batching import IGNORED, Batch
from kbook.models.fused import hidden_states

Reduction = Literal["sum", "mean"]


@dataclass(frozen=True)
class Predictions:
    """What a model predicts at the chosen positions of a batch, row by row, before its output head.

    Kept without gradients, it is what a method remembers of the model that it started from: a vector a position
    instead of a second model. The head must then stay as it was.

    Args:
        states: final hidden states. Shape: ``(n, width)``.
        targets: the token that stands after each position. Shape: ``(n,)``.
        chosen: where the positions are. Shape: ``(documents, tokens - 1)``.
        head: from hidden states to logits.
    """

    states: torch.Tensor
    targets: torch.Tensor
    chosen: torch.Tensor
    head: Any

    def logits(self) -> torch.Tensor:
        """Next-token logits in float32. Shape: ``(n, vocabulary)``."""
        logits: torch.Tensor = self.head(self.states).float()
        return logits

    @torch.no_grad()
    def fixed_logits(self) -> torch.Tensor:
        """`logits` as constants: no gradient reaches the head that they were remembered with."""
        return self.logits()

    def losses(self) -> torch.Tensor:
        """Cross-entropy of each target, in nats. Shape: ``(n,)``."""
        return F.cross_entropy(self.logits(), self.targets, reduction="none")

    def by_document(self, values: torch.Tensor, reduction: Reduction = "sum") -> torch.Tensor:
        """Sum or average values of positions over each document; one without positions counts 0.

        Shape: ``(n,)`` to ``(documents,)``.
        """
        rows = self.chosen.nonzero()[:, 0]
        sums = values.new_zeros(len(self.chosen)).index_add(0, rows, values)
        return sums if reduction == "sum" else sums / self.chosen.sum(1).clamp(min=1)


def predictions(model: Any, batch: Batch, where: Literal["supervised", "all"] = "supervised") -> Predictions:
    """What a model predicts where a batch is supervised, or before every real token.

    Args:
        model: a causal language model, adapters and all.
        batch: the documents.
        where: ``all`` leaves out only what would predict a pad.
    """
    decoder = decoder_of(model)
    device = decoder.lm_head.weight.device
    hidden = hidden_states(decoder, batch.ids.to(device))[:, :-1]
    targets = batch.ids[:, 1:].to(device)
    chosen = (batch.labels[:, 1:] != IGNORED if where == "supervised" else batch.mask[:, 1:].bool()).to(device)
    return Predictions(hidden[chosen], targets[chosen], chosen, decoder.lm_head)


def decoder_of(model: Any) -> Any:
    """The causal language model itself, whether or not adapters sit inside it."""
    return model.get_base_model() if hasattr(model, "get_base_model") else model


def token_loss(model: Any, batch: Batch) -> torch.Tensor:
    """Weighted mean cross-entropy of a batch's supervised tokens.

    *Unit*: nats per token. With weights of 1 this is the loss that `transformers` reports: a mean over
    tokens, not over documents.
    """
    found = predictions(model, batch)
    weights = batch.weights[:, 1:].to(found.states.device)[found.chosen]
    return (found.losses() * weights).sum() / weights.sum()


def sequence_nll(model: Any, batch: Batch, reduction: Reduction = "sum") -> torch.Tensor:
    """Negative log-likelihood of each document's supervised tokens; token weights play no part.

    *Shape*: ``(documents,)``. *Unit*: nats, or nats per token for ``mean``. *Missing*: a document without
    supervised tokens counts 0.

    Args:
        model: a causal language model, adapters and all.
        batch: the documents.
        reduction: ``sum`` is N(x, y) of the papers; ``mean`` divides it by the number of tokens.
    """
    found = predictions(model, batch)
    return found.by_document(found.losses(), reduction)
