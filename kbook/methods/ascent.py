"""Gradient ascent on the forget answers: alone, against a retain term, and with weights on tokens.

The loss of fine-tuning runs backwards, so that the answers become unlikely. It has no lower bound: a run that goes
on too long ends in gibberish, which a leak rate alone takes for forgetting. Token weights (WGA, SatImp) let the
ascent fade where a token has become unlikely.
"""

from __future__ import annotations

from typing import Any

import torch
from pydantic import Field

from kbook.methods.weights import Contrast, TrainedMethod, Weighted, WeightedMethod
from kbook.models.likelihood import predictions, token_loss


def weighted_ascent(losses: torch.Tensor, up: float, down: float = 0.0) -> torch.Tensor:
    """``-mean_t(w_t * loss_t)`` with ``w = p^up * (1 - p)^down`` taken as a constant, ``p = exp(-loss)``.

    *Shape*: ``(tokens,)``. *Unit*: nats. ``up = down = 0`` is gradient ascent.
    """
    p = torch.exp(-losses.detach())
    return -(p**up * (1 - p) ** down * losses).mean()


class GA(TrainedMethod):
    """Gradient ascent: the token-mean loss of the forget answers, negated; no retain term.

    Source: Jang et al. 2210.01504, Yao et al. 2310.10683; as ``GradAscent`` of OpenUnlearning. Papers: rate 1e-5, 5
    (TOFU) or 10 (OpenUnlearning) epochs, batches of 32 to 64. Pitfall: unbounded, so it destroys the model if it goes
    on; K-Bench's own runs degenerate on all queries.
    """

    name, title = "ga", "GA"
    source = "Jang et al. 2210.01504; Yao et al. 2310.10683; token mean as in OpenUnlearning"

    def loss(self, model: Any, item: Contrast) -> torch.Tensor:
        return -token_loss(model, item.forget)


class GD(WeightedMethod):
    """Gradient difference: ascent on forget documents and descent on retain documents in the same step.

    Source: Liu et al. 2203.12817, TOFU 2401.06121; as ``GradDiff`` of OpenUnlearning, both weights 1. Pitfalls: the
    forget term is still unbounded, and outweighs the retain term as it grows.
    """

    name, title = "gd", "GD"
    source = "Liu et al. 2203.12817; TOFU 2401.06121; as in OpenUnlearning"

    def forget_loss(self, model: Any, item: Contrast) -> torch.Tensor:
        return -token_loss(model, item.forget)


class WGAParameters(Weighted):
    """Settings of `WGA`."""

    beta: float = Field(1.0, ge=0, le=100, description="power of a token's probability in its weight; 0 is ascent")


class WGA(WeightedMethod):
    """Ascent whose weight on a token is its probability to the power ``beta``, so that it fades as it succeeds.

    Source: Wang et al. 2502.19301 (ICLR 2025); ``beta`` 1 and rate 1e-5 as in OpenUnlearning (the code of the G-effect
    study falls back to 5). Pitfall: a weight that is not detached changes the gradient's sign for likely tokens.
    """

    name, title = "wga", "WGA"
    source = "Wang et al. 2502.19301; as in OpenUnlearning, with a retain term"
    Parameters = WGAParameters
    settings: WGAParameters

    def forget_loss(self, model: Any, item: Contrast) -> torch.Tensor:
        return weighted_ascent(predictions(model, item.forget).losses(), self.settings.beta)


class SatImpParameters(Weighted):
    """Settings of `SatImp`."""

    alpha: float = Field(0.1, ge=0, le=1000, description="weight of the retain term")
    saturation: float = Field(5.0, ge=0, le=100, description="power of a token's probability (beta 1)")
    importance: float = Field(1.0, ge=0, le=100, description="power of what is left to one (beta 2)")


class SatImp(WeightedMethod):
    """Ascent weighted by saturation and importance: ``p^b1 (1 - p)^b2``, least on tokens that are sure or lost.

    Source: 2505.11953 (ICML 2025); powers 5 and 1. OpenUnlearning holds the same ratio of forget to retain in two
    opposite ways, 0.1 to 1 in its configuration and 1 to 0.1 in its class and README: this is the latter. Pitfall:
    an answer that the model is sure of weighs almost nothing at first, so the edit starts slowly.
    """

    name, title = "satimp", "SatImp"
    source = "2505.11953; weights of forget and retain as in OpenUnlearning's class (1 and 0.1)"
    Parameters = SatImpParameters
    settings: SatImpParameters

    def forget_loss(self, model: Any, item: Contrast) -> torch.Tensor:
        losses = predictions(model, item.forget).losses()
        return weighted_ascent(losses, self.settings.saturation, self.settings.importance)
