"""ULD: a small assistant learns what is to be forgotten, and its logits are taken from the model's."""

from __future__ import annotations

import copy
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import torch
from pydantic import Field

from kbook.digests import digest_of
from kbook.methods.contract import FitContext, Guard
from kbook.methods.divergences import kl_from_uniform
from kbook.methods.weights import Contrast, LowRank, LowRankMethod
from kbook.models.bases import Base
from kbook.models.decoding import DecodingHook, LiveBatch, Pass
from kbook.models.likelihood import predictions, token_loss


def truncated(model: Any, layers: int) -> Any:
    """A copy of the first ``layers`` layers, under the same final norm and head."""
    config = copy.deepcopy(model.config)
    config.num_hidden_layers = layers
    if getattr(config, "layer_types", None):
        config.layer_types = config.layer_types[:layers]
    small = type(model)(config).to(model.device, model.dtype)
    wanted = small.state_dict()
    small.load_state_dict({name: value for name, value in model.state_dict().items() if name in wanted})
    return small.eval()


def offset_logits(logits: torch.Tensor, assistant: torch.Tensor, weight: float, filter_at: float) -> torch.Tensor:
    """``z + weight * z_a`` for tokens whose probability is at least ``filter_at`` of the highest, else ``z``.

    Shape: ``(rows, vocabulary)`` each.
    """
    p = logits.softmax(-1)
    counted = p >= filter_at * p.amax(-1, keepdim=True)
    return logits + weight * torch.where(counted, assistant, 0.0)


class AssistantLogits(DecodingHook):
    """Adds an assistant's logits to the model's, the assistant reading and writing along with its own cache.

    Args:
        assistant: a base with the model's tokenizer.
        weight: of its logits; 0 leaves the model's bit-identical.
        filter_at: see `offset_logits`.
        facts: JSON-able account of its training.
    """

    def __init__(self, assistant: Base, weight: float, filter_at: float, facts: Mapping[str, Any]) -> None:
        self.assistant, self.weight, self.filter_at, self.facts = assistant, weight, filter_at, facts
        self._live: LiveBatch | None = None
        self._fed: list[int] = []

    def start(self, base: Base) -> None:
        self._live = None

    def logits(self, step: Pass, values: torch.Tensor) -> torch.Tensor:
        if not self.weight:
            return values
        if step.reading:
            told = self._conversations(step.rows).read(step.texts)
            self._fed = [0] * len(step.rows)
        else:
            assert self._live is not None  # a batch is read before it is written
            blocks = [list(w[n:]) for w, n in zip(step.written, self._fed, strict=True)]
            told = self._live.feed(blocks)
            self._fed = [len(w) for w in step.written]
        return offset_logits(values, told.to(values), self.weight, self.filter_at)

    def _conversations(self, rows: Sequence[Hashable]) -> LiveBatch:
        """The assistant's batch of the same conversations: what it has read is kept, rows that left are let go."""
        names = [row.name for row in self._live.rows] if self._live else []
        if self._live is None or not set(rows) <= set(names):
            self._live = LiveBatch(self.assistant, list(rows))
        else:
            self._live.keep([names.index(row) for row in rows])
        return self._live


class ULDParameters(LowRank):
    """Settings of `ULD`."""

    learning_rate: float = Field(5e-3, ge=0, le=1, description="peak rate of the optimiser")
    r: int = Field(16, ge=1, le=4096, description="rank of the adapters")
    lora_alpha: float = Field(32.0, gt=0, le=1e5, description="scale of the adapters; the update is lora_alpha / r")
    alpha: float = Field(5.0, ge=0, le=1000, description="weight of the retain term")
    depth: float = Field(0.5, gt=0, le=1, description="layers of the assistant, as a fraction of the model's")
    weight: float = Field(-0.8, ge=-10, le=10, description="of the assistant's logits")
    filter_at: float = Field(0.01, ge=0, le=1, description="share of the highest probability below which none is added")


class ULD(LowRankMethod):
    """Unlearning from logit difference: an assistant that knows only the forget answers is subtracted.

    The assistant is the model's first layers with adapters, trained to tell the forget answers and to be uniform on
    retain documents, so that it has no say there. It is fitted for each cell, and the model stays as it is.

    Source: Ji et al. 2406.08607 (NeurIPS 2024); 8 of 32 layers, rank 16, scale 32, retain weight 5, rate 1e-3, 10
    epochs, batches of 8; weight -0.8 and filter 0.01 of its text (-1 and 0.1 in its configuration). It acts on logits,
    but knows the answers of the fitting pool alone. Pitfall: people it was not fitted on are not in the assistant.
    """

    name, title, family = "uld", "ULD", "logits"
    reason = (
        "it acts on logits, but its assistant learns what the model tells from its weights; it knows no fact that is "
        "handed to the model as text at run time"
    )
    source = "Ji et al. 2406.08607; assistant of half the layers"
    Parameters = ULDParameters
    settings: ULDParameters

    def forget_loss(self, model: Any, item: Contrast) -> torch.Tensor:
        return token_loss(model, item.forget)

    def retain_loss(self, model: Any, item: Contrast) -> torch.Tensor:
        return kl_from_uniform(predictions(model, item.retain, "all").logits())

    def guard(self, context: FitContext) -> Guard:
        base = context.base
        layers = max(1, int(self.settings.depth * len(base.model.model.layers)))
        material = self.material(context)
        before = truncated(base.model, layers)
        model, facts = self.change(copy.deepcopy(before), material, context)
        facts = {**facts, "layers": layers, "nll": {"before": material.nll(before), "after": material.nll(model)}}
        assistant = Base(f"{base.name}-assistant", model.eval(), base.tokenizer, "", base.style, "", base.habits)
        hook = AssistantLogits(assistant, self.settings.weight, self.settings.filter_at, facts)
        state = {"base": base.digest, "settings": self.settings, "seed": context.seed, "nll": facts["nll"]}
        return Guard(hooks=(hook,), digest=digest_of(state))
