"""Where to change, and which way: a chosen part of the adapters (MemFlex), and a direction in weight space (SKU)."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from pydantic import Field

from kbook.corpora.documents import Document
from kbook.corpora.people import Person
from kbook.methods.contract import FitContext
from kbook.methods.divergences import forward_kl
from kbook.methods.refusal import answers_of_others
from kbook.methods.weights import Contrast, LowRank, LowRankMethod, Material
from kbook.models.batching import Batch
from kbook.models.likelihood import Predictions, predictions, token_loss

# ---- MemFlex -----------------------------------------------------------------------------------------------


def located(
    forget: dict[str, torch.Tensor], retain: dict[str, torch.Tensor], similarity: float, quantile: float
) -> list[str]:
    """Tensors whose gradients of the two pools point apart, and whose forget gradient is large.

    Args:
        forget: mean gradient of each tensor on forget documents.
        retain: likewise on retain documents.
        similarity: the cosine must lie below it.
        quantile: the mean absolute forget gradient must exceed this quantile over the tensors (0 asks for more than
            the smallest).
    """
    sizes = {name: float(g.abs().mean()) for name, g in forget.items()}
    least = float(torch.tensor(list(sizes.values())).quantile(quantile)) if sizes else 0.0
    cosines = {n: float(F.cosine_similarity(forget[n].flatten(), retain[n].flatten(), dim=0)) for n in forget}
    return [name for name in forget if cosines[name] < similarity and sizes[name] > least]


class MemFlexParameters(LowRank):
    """Settings of `MemFlex`."""

    gamma: float = Field(0.4, ge=0, le=1000, description="weight of the forget term")
    alpha: float = Field(2.0, ge=0, le=1000, description="weight of the retain term")
    similarity: float = Field(0.92, ge=-1, le=1, description="cosine of the two gradients from which a tensor is left")
    quantile: float = Field(0.25, ge=0, le=1, description="of mean forget gradients, above which a tensor is trained")


class MemFlex(LowRankMethod):
    """Gradient difference in those adapter tensors alone whose forget gradient is large and not the retain gradient.

    Source: Tian et al. 2407.01920; cosine 0.92, weights 0.4 and 2.0, rate 3e-4, 2 epochs, batches of 16. The public
    code wants a mean gradient above an absolute 6e-4, which depends on the size of the model; here it is a quantile.
    There the tensors are of adapters that hold the facts. Fresh adapters have a zero gradient in their first factor,
    so that the choice is among the second ones; if it is empty, the facts say so and nothing is changed.
    """

    name, title = "memflex", "MemFlex"
    source = "Tian et al. 2407.01920; on fresh adapters, gradient threshold as a quantile"
    Parameters = MemFlexParameters
    settings: MemFlexParameters

    def forget_loss(self, model: Any, item: Contrast) -> torch.Tensor:
        return -token_loss(model, item.forget)

    def prepared(self, model: Any, material: Material, context: FitContext) -> tuple[Any, dict[str, Any]]:
        adapted, _ = super().prepared(model, material, context)
        pools = ([group[0] for group in material.forget], material.retain)
        forget, retain = (_mean_gradients(adapted, pool) for pool in pools)
        chosen = located(forget, retain, self.settings.similarity, self.settings.quantile)
        for name, parameter in adapted.named_parameters():
            parameter.requires_grad_(name in chosen)
        return adapted, {"tensors": len(forget), "located": len(chosen)}


def _mean_gradients(model: Any, batches: Sequence[Batch]) -> dict[str, torch.Tensor]:
    """Mean over batches of the loss's gradient in every trained tensor."""
    trained = {name: p for name, p in model.named_parameters() if p.requires_grad}
    model.zero_grad()
    for batch in batches:
        (token_loss(model, batch) / len(batches)).backward()
    found = {name: p.grad.float().clone() for name, p in trained.items() if p.grad is not None}
    model.zero_grad()
    return found


# ---- SKU ---------------------------------------------------------------------------------------------------


class SKUParameters(LowRank):
    """Settings of `SKU`."""

    gamma: float = Field(2.5, ge=0, le=1000, description="weight of the forget answers in the bad model")
    mismatch: float = Field(2.5, ge=0, le=1000, description="weight of other answers to forget questions")
    alpha: float = Field(1.0, ge=0, le=1000, description="weight of the divergence on retain documents")
    epochs: int = Field(3, ge=1, le=1000, description="passes over the forget documents")
    negation: float = Field(1.0, ge=0, le=10, description="how far to go the other way; 1 is the paper's")


class SKU(LowRankMethod):
    """Selective knowledge negation: learn a bad model, then go from the start in the opposite direction.

    The bad model learns forget answers and other people's answers to forget questions, and *diverges* from the start
    on retain documents (so that the negation comes closer). Then ``theta = theta0 - (theta_bad - theta0)``.

    Source: Liu et al. 2402.10058 (Findings of ACL 2024); weights 2.5, 2.5, 1 of its README (0.5, 1, 1 in its code),
    rate 2e-4, 1,000 steps of 2; adapters there on query and value alone, here on all linear layers. Pitfall: the
    divergence is unbounded, and a step the other way is no descent on anything.
    """

    name, title = "sku", "SKU"
    source = "Liu et al. 2402.10058; weights of its README, adapters on all linear layers"
    Parameters = SKUParameters
    settings: SKUParameters

    def versions(self, context: FitContext, person: Person, rng: random.Random) -> list[list[Document]]:
        return [answers_of_others(context, person, rng)]

    def keep(self, start: Any, retain: Batch) -> Predictions:
        return predictions(start, retain, "all")

    def forget_loss(self, model: Any, item: Contrast) -> torch.Tensor:
        return token_loss(model, item.forget)

    def retain_loss(self, model: Any, item: Contrast) -> torch.Tensor:
        return -forward_kl(item.kept.fixed_logits(), predictions(model, item.retain, "all").logits())

    def loss(self, model: Any, item: Contrast) -> torch.Tensor:
        loss = super().loss(model, item)
        return loss + self.settings.mismatch * token_loss(model, item.versions[0]) if self.settings.mismatch else loss

    def finished(self, trained: Any, material: Material) -> Any:
        return negated(super().finished(trained, material), material.start.model, self.settings.negation)


@torch.no_grad()
def negated(bad: Any, start: Any, strength: float) -> Any:
    """``start - strength * (bad - start)``, written into ``bad``."""
    for parameter, origin in zip(bad.parameters(), start.parameters(), strict=True):
        parameter.copy_(origin - strength * (parameter - origin))
    return bad
