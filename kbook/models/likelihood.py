"""How likely a model finds the supervised words of a document: the one home of next-token losses.

Training, unlearning and membership tests all start from the same per-token losses; only what is summed
differs. Softmaxes are taken in float32 whatever the weights' type, and the output head sees supervised
positions alone.
"""

from __future__ import annotations

from typing import Any, Literal

import torch
import torch.nn.functional as F

from kbook.models.batching import IGNORED, Batch
from kbook.models.fused import hidden_states


def token_loss(model: Any, batch: Batch) -> torch.Tensor:
    """Weighted mean cross-entropy of a batch's supervised tokens.

    *Unit*: nats per token. With weights of 1 this is the loss that `transformers` reports: a mean over
    tokens, not over documents.
    """
    losses, chosen = _token_losses(model, batch)
    weights = batch.weights[:, 1:].to(losses.device)[chosen]
    return (losses * weights).sum() / weights.sum()


def sequence_nll(model: Any, batch: Batch, reduction: Literal["sum", "mean"] = "sum") -> torch.Tensor:
    """Negative log-likelihood of each document's supervised tokens; token weights play no part.

    *Shape*: ``(documents,)``. *Unit*: nats, or nats per token for ``mean``. *Missing*: a document without
    supervised tokens counts 0.

    Args:
        model: a causal language model, adapters and all.
        batch: the documents.
        reduction: ``sum`` is N(x, y) of the papers; ``mean`` divides it by the number of tokens.
    """
    losses, chosen = _token_losses(model, batch)
    rows = chosen.nonzero()[:, 0]
    sums = losses.new_zeros(len(chosen)).index_add(0, rows, losses)
    return sums if reduction == "sum" else sums / chosen.sum(1).clamp(min=1)


def _token_losses(model: Any, batch: Batch) -> tuple[torch.Tensor, torch.Tensor]:
    """Losses of supervised tokens, row by row, and where they stand.

    Shape: ``(n,)`` and ``(documents, tokens - 1)``.
    """
    decoder = model.get_base_model() if hasattr(model, "get_base_model") else model  # adapters sit inside it
    device = decoder.lm_head.weight.device
    hidden = hidden_states(decoder, batch.ids.to(device))[:, :-1]
    targets = batch.labels[:, 1:].to(device)
    chosen = targets != IGNORED
    losses = F.cross_entropy(decoder.lm_head(hidden[chosen]).float(), targets[chosen], reduction="none")
    return losses, chosen
