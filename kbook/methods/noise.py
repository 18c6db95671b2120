"""Noise: an undirected perturbation of next-token logits, to tell targeted erasure from mere disruption."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from pydantic import Field

from kbook.digests import digest_of
from kbook.methods.contract import FitContext, Guard, Intervention, Parameters
from kbook.methods.seeding import generator_for
from kbook.models.decoding import DecodingHook, Pass


class NoiseParameters(Parameters):
    """Settings of `Noise`."""

    sigma: float = Field(
        0.2, ge=0, le=100, allow_inf_nan=False, description="standard deviation of the noise, in logits"
    )


@dataclass(frozen=True)
class LogitNoise(DecodingHook):
    """z + sigma * e, with e standard normal.

    Each draw is named by the seed, the conversation, and how far it has come, so that it depends neither on
    the other rows of a batch nor on what was decoded before.
    """

    by_name: ClassVar[bool] = True

    sigma: float
    seed: int

    def logits(self, step: Pass, values: torch.Tensor) -> torch.Tensor:
        if not self.sigma:
            return values
        width = values.shape[1]
        places = zip(step.rows, map(len, step.texts), map(len, step.written), strict=True)
        drawn = [torch.randn(width, generator=generator_for(self.seed, *place)) for place in places]
        return values + self.sigma * torch.stack(drawn).to(values)


class Noise(Intervention):
    """Gaussian noise on the logits of every token.

    Source: K-Bench's code perturbs logits; its text speaks of activations. This is the former.
    """

    name, title, family = "noise", "Noise", "control"
    source = "control of K-Bench: Gaussian noise on logits"
    Parameters = NoiseParameters
    settings: NoiseParameters

    def guard(self, context: FitContext) -> Guard:
        hook = LogitNoise(self.settings.sigma, context.seed)
        return Guard(hooks=(hook,), digest=digest_of({"sigma": hook.sigma, "seed": hook.seed}))
