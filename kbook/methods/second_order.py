"""A second-order optimiser, and unlearning with it (SOUL)."""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import Any, Literal

import torch
from pydantic import Field

from kbook.corpora.documents import Document
from kbook.corpora.people import Person
from kbook.methods.contract import FitContext
from kbook.methods.refusal import refusals
from kbook.methods.weights import Contrast, Weighted, WeightedMethod
from kbook.models.likelihood import token_loss


class Sophia(torch.optim.Optimizer):
    """Momentum divided by a diagonal curvature, and cut off at one: ``-lr * sign(m) * min(|m| / (rho n h), 1)``.

    Where the curvature ``h`` is zero the step is ``lr`` along the momentum's sign. As in the code of SOUL and FALCON,
    ``h`` is the running mean of the squared gradients of the objective itself; Sophia's own estimate draws labels from
    the model. Its state has AdamW's names, for the training loop's checkpoints.

    Args:
        params: what is trained.
        lr: the rate.
        betas: decay of momentum and curvature.
        rho: the share of curvature that divides; smaller cuts off more steps.
        n: tokens of a batch in the curvature's estimate; 5,120 in the public code, whatever the batch.

    Source: Liu et al. 2305.14342, algorithm 3; SophiaG as in OPTML-Group/SOUL.
    """

    def __init__(
        self,
        params: Iterable[torch.nn.Parameter],
        lr: float = 1e-9,
        betas: tuple[float, float] = (0.9, 0.95),
        rho: float = 0.04,
        n: int = 5120,
    ) -> None:
        super().__init__(params, {"lr": lr, "betas": betas, "rho": rho, "n": n})

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    self._step(parameter, group)

    def _step(self, parameter: torch.Tensor, group: dict[str, Any]) -> None:
        state, gradient = self.state[parameter], parameter.grad
        if gradient is None:
            return
        if not state:
            state["step"] = torch.tensor(0.0)
            state["exp_avg"], state["exp_avg_sq"] = torch.zeros_like(parameter), torch.zeros_like(parameter)
        state["step"] += 1
        momentum, curvature = state["exp_avg"], state["exp_avg_sq"]
        momentum.lerp_(gradient, 1 - group["betas"][0])
        curvature.lerp_(gradient**2, 1 - group["betas"][1])
        ratio = (momentum.abs() / (group["rho"] * group["n"] * curvature + 1e-15)).clamp(max=1)
        parameter.sub_(group["lr"] * momentum.sign() * ratio)


class SOULParameters(Weighted):
    """Settings of `SOUL`."""

    learning_rate: float = Field(3e-5, ge=0, le=1, description="peak rate: the largest step of any weight")
    alpha: float = Field(2.0, ge=0, le=1000, description="weight of the retain term")
    objective: Literal["gd", "po"] = Field("gd", description="ascent on answers (gd), or refusals in their place (po)")


class SOUL(WeightedMethod):
    """Second-order unlearning: gradient difference, or refusal tuning, optimised by Sophia.

    Source: Jia et al. 2404.18239 (EMNLP 2024); betas 0.9 and 0.95, rho 0.04; TOFU: gradient difference with rate 5e-6
    and retain weight 2, refusals with rate 1e-5 and weight 5, 5 epochs, weight decay 0.1 (none here). Which loss
    K-Bench's leaderboard used is not known. Pitfall: steps that are cut off are as long for noise as for signal.
    """

    name, title = "soul", "SOUL"
    source = "Jia et al. 2404.18239; SophiaG with squared gradients of the objective, as in its code"
    Parameters = SOULParameters
    settings: SOULParameters
    optimizer = Sophia

    def versions(self, context: FitContext, person: Person, rng: random.Random) -> list[list[Document]]:
        return [refusals(context.base, person, rng)] if self.settings.objective == "po" else []

    def forget_loss(self, model: Any, item: Contrast) -> torch.Tensor:
        if self.settings.objective == "po":
            return token_loss(model, item.versions[0])
        return -token_loss(model, item.forget)
