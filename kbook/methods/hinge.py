"""Low-rank unlearning with a bounded loss: the inverted hinge, from adapters that start where the facts lie."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import torch
from pydantic import BaseModel, Field

from kbook.methods.contract import FitContext
from kbook.methods.weights import Contrast, LowRank, LowRankMethod, Material
from kbook.models.batching import Batch
from kbook.models.likelihood import predictions, token_loss


def inverted_hinge(logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """``1 + p(y) - max(p(v), v != y)`` of each position: above 1 while the answer is the first choice.

    *Shape*: ``(n, vocabulary)`` and ``(n,)`` to ``(n,)``. *Unit*: none, between 0 and 2.

    Source: Cha et al. 2408.06621, equation 5.
    """
    p = logits.softmax(-1)
    true = p.gather(-1, targets[:, None])
    others = p.scatter(-1, targets[:, None], -1.0)
    return 1 + true[:, 0] - others.amax(-1)


def row_weights(forget: torch.Tensor, retain: torch.Tensor, floor: float) -> torch.Tensor:
    """Weight of each output row, the square root of its summed relative importance, scaled to a mean of 1.

    ``floor`` is added to the retain importance, as a share of its mean. Shape: ``(rows, columns)`` each to ``(rows,)``.
    """
    share = forget / (floor * retain.mean() + retain).clamp(min=torch.finfo(retain.dtype).tiny)
    weights = share.sum(1).sqrt()
    return weights / weights.mean() if weights.any() else torch.ones_like(weights)


def weighted_factors(
    weight: torch.Tensor, rows: torch.Tensor, r: int, scale: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """A and B whose product, times ``scale``, is the best rank-r part of ``weight`` where rows count by ``rows``.

    *Shape*: ``(out, in)``, ``(out,)`` to ``(r, in)`` and ``(out, r)``.

    Source: FILA of Cha et al. 2408.06621; exact SVD where the public code takes a randomised one.
    """
    u, s, vh = torch.linalg.svd(rows[:, None] * weight, full_matrices=False)
    root = (s[:r] / scale).sqrt()
    return root[:, None] * vh[:r], u[:, :r] * root / (rows + 1e-5)[:, None]


def importance(model: Any, batches: Sequence[Batch], modules: Mapping[str, Any]) -> dict[str, torch.Tensor]:
    """Diagonal Fisher of linear weights: squared gradients of each batch's loss, averaged by its tokens."""
    found = {name: torch.zeros_like(m.weight, dtype=torch.float32) for name, m in modules.items()}
    total = 0
    for batch in batches:
        tokens = int((batch.labels[:, 1:] >= 0).sum())
        model.zero_grad()
        token_loss(model, batch).backward()
        for name, module in modules.items():
            found[name] += tokens * module.weight.grad.float() ** 2
        total += tokens
    model.zero_grad()
    return {name: value / max(1, total) for name, value in found.items()}


class ChaParameters(LowRank):
    """Settings of `Cha`."""

    r: int = Field(16, ge=1, le=4096, description="rank of the adapters")
    lora_alpha: float = Field(32.0, gt=0, le=1e5, description="scale of the adapters; the update is lora_alpha / r")
    fila: bool = Field(True, description="start the adapters where forget importance exceeds retain importance")
    floor: float = Field(1e-2, ge=0, le=100, description="added to retain importance, as a share of its mean")


class Cha(LowRankMethod):
    """Inverted hinge loss on forget answers, loss on retain answers, adapters that start by Fisher importance (FILA).

    The loss takes the answer from first place and stops there, so it is bounded. FILA puts the part of each weight
    matrix that matters to forget documents more than to retain documents into the adapter; what is left becomes the
    base, so that the model is the same at the start.

    Source: Cha et al. 2408.06621 (ICLR 2025); rank 32 (4 to 32), scale twice the rank, rate 1e-4 (Llama-2-7B), 5
    epochs, batches of 32. The paper adds an absolute 1e-5 to the retain importance; gradients of a small model are
    far from those of a large one, so here it is a share of the mean. K-Bench's code under this name has no FILA
    (``fila = false``) and trains the injected adapter further for one epoch, which cannot be done once it is merged.
    """

    name, title = "cha", "Cha"
    source = "Cha et al. 2408.06621: inverted hinge and FILA on fresh adapters (K-Bench's own code has no FILA)"
    Parameters: ClassVar[type[BaseModel]] = ChaParameters
    settings: ChaParameters

    def forget_loss(self, model: Any, item: Contrast) -> torch.Tensor:
        found = predictions(model, item.forget)
        return inverted_hinge(found.logits(), found.targets).mean()

    def prepared(self, model: Any, material: Material, context: FitContext) -> tuple[Any, dict[str, Any]]:
        if not self.settings.fila:
            return super().prepared(model, material, context)
        modules = {name: m for name, m in model.named_modules() if _is_adapted(name, m, model)}
        pools = ([group[0] for group in material.forget], material.retain)
        forget, retain = (importance(model, pool, modules) for pool in pools)
        adapted, facts = super().prepared(model, material, context)
        rows = {name: row_weights(forget[name], retain[name], self.settings.floor) for name in modules}
        return _started(adapted, rows), facts


class LoKUParameters(ChaParameters):
    """Settings of `LoKU`."""

    r: int = Field(32, ge=1, le=4096, description="rank of the adapters")
    lora_alpha: float = Field(64.0, gt=0, le=1e5, description="scale of the adapters; the update is lora_alpha / r")
    epochs: int = Field(5, ge=1, le=1000, description="passes over the forget documents")


class LoKU(Cha):
    """The method of `Cha` under its paper's name, with the paper's rank and number of epochs.

    Source: as `Cha`. K-Bench's leaderboard lists it beside its panel's Cha; how the two differ there is not known.
    """

    name, title = "loku", "LoKU"
    source = "Cha et al. 2408.06621, with the paper's rank 32, scale 64 and 5 epochs"
    Parameters = LoKUParameters
    settings: LoKUParameters


def _is_adapted(name: str, module: Any, model: Any) -> bool:
    return isinstance(module, torch.nn.Linear) and module is not model.get_output_embeddings()


@torch.no_grad()
def _started(adapted: Any, rows: Mapping[str, torch.Tensor]) -> Any:
    """Put the weighted low-rank part of every weight into its adapter and take it from the base."""
    for name, module in adapted.get_base_model().named_modules():
        if name in rows:
            (key,) = module.lora_A.keys()
            base, a, b = module.get_base_layer().weight, module.lora_A[key].weight, module.lora_B[key].weight
            scale = module.scaling[key]
            first, second = weighted_factors(base.float(), rows[name], a.shape[0], scale)
            a[: len(first)], b[:, : len(first)] = first.to(a), second.to(b)
            a[len(first) :], b[:, len(first) :] = 0, 0
            base -= (scale * b.float() @ a.float()).to(base)
    return adapted
