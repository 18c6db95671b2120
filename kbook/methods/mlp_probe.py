"""MLP-probe: a nonlinear probe learns to tell forget from retain; every state takes one step down its logit."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from pydantic import Field

from kbook.methods.activations import Edit
from kbook.methods.seeding import generator_for
from kbook.methods.states import DepthParameters, Fit, StateMethod, States
from kbook.models.threads import threads

NO_BETTER = 0.01
"""A probe that beats the majority by no more than this has found nothing."""


class MLPProbeParameters(DepthParameters):
    """Settings of `MLPProbe`."""

    alpha: float = Field(1.0, ge=-1e4, le=1e4, allow_inf_nan=False, description="length of the step, in gradients")
    learning_rate: float = Field(1e-3, gt=0, le=1, description="of AdamW, while the probe is trained")
    steps: int = Field(1000, ge=1, le=1_000_000, description="minibatches the probe is trained on")
    batch: int = Field(64, ge=1, description="states in a minibatch")


@dataclass(frozen=True)
class ProbeStep(Edit):
    """``h - alpha * grad f(h)`` of the probe ``f(h) = w2' GELU(W1 h + b1) + b2``.

    The gradient is written out, ``W1' (w2 * GELU'(W1 h + b1))``: it needs no graph while a model decodes.

    *Shape*: ``w1`` ``(hidden, width)``, ``b1`` and ``w2`` ``(hidden,)``, ``b2`` a scalar.
    """

    w1: torch.Tensor
    b1: torch.Tensor
    w2: torch.Tensor
    b2: torch.Tensor
    alpha: float

    def logit(self, states: torch.Tensor) -> torch.Tensor:
        """How much a state looks like one about a forget person. Shape: ``(..., width)`` to ``(...)``."""
        hidden: torch.Tensor = F.gelu(states @ self.w1.T + self.b1) @ self.w2 + self.b2
        return hidden

    def gradient(self, states: torch.Tensor) -> torch.Tensor:
        """The logit's gradient at each state."""
        w1, b1, w2 = (t.to(states) for t in (self.w1, self.b1, self.w2))
        a = states @ w1.T + b1
        slope = (1 + torch.erf(a / math.sqrt(2))) / 2 + a * torch.exp(-a.square() / 2) / math.sqrt(2 * math.pi)
        return (slope * w2) @ w1

    def change(self, states: torch.Tensor) -> torch.Tensor:
        return states - self.alpha * self.gradient(states)


def train_probe(states: States, settings: MLPProbeParameters, generator: torch.Generator) -> ProbeStep:
    """Train the probe with AdamW on shuffled minibatches.

    Shuffled, because a pass over all forget states and then all retain states leaves the probe with the bias
    of the last.
    """
    values, labels = states.values.float(), states.forget.float()
    w1, b1, w2, b2 = parts = [p.requires_grad_() for p in _start(values.shape[1], generator)]
    probe = ProbeStep(w1, b1, w2, b2, settings.alpha)
    optimizer = torch.optim.AdamW(parts, lr=settings.learning_rate)
    order = torch.empty(0, dtype=torch.long)
    for _ in range(settings.steps):
        if not len(order):
            order = torch.randperm(len(values), generator=generator)
        chosen, order = order[: settings.batch], order[settings.batch :]
        loss = F.binary_cross_entropy_with_logits(probe.logit(values[chosen]), labels[chosen])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return ProbeStep(w1.detach(), b1.detach(), w2.detach(), b2.detach(), settings.alpha)


def _start(width: int, generator: torch.Generator) -> list[torch.Tensor]:
    """Random weights of a probe with a quarter of the width: uniform within 1 / sqrt(inputs)."""
    hidden = max(2, width // 4)
    shapes = ((hidden, width), width), ((hidden,), width), ((hidden,), hidden), ((), hidden)
    return [(2 * torch.rand(shape, generator=generator) - 1) / math.sqrt(inputs) for shape, inputs in shapes]


class MLPProbe(StateMethod):
    """A nonlinear sibling of LEACE: whatever a small network can read off a state is pushed back once.

    Where: output of one layer, all tokens, so all lanes.

    The step is the gradient of the *logit*, neither normalised nor limited: its size depends on how sharp the
    probe has become, and nothing keeps the state near those that the model knows. K-Bench saw it break
    generation wherever it was applied to P.

    Source: K-Bench; there is no paper. K-Bench trains for three epochs over all tokens of 400 prompts, which are
    thousands of minibatches; over name tokens alone a number of minibatches says the same.
    """

    name, title = "mlp_probe", "MLP-probe"
    source = "K-Bench: probe of width d/4, one step down its logit; minibatches shuffled, fitted on name tokens"
    Parameters = MLPProbeParameters
    settings: MLPProbeParameters

    def fit(self, states: States, seed: int) -> Fit:
        with threads(1):
            probe = train_probe(states, self.settings, generator_for("mlp_probe", seed))
        values = states.values.float()
        accuracy = float(((probe.logit(values) > 0) == states.forget).double().mean())
        step = float(probe.gradient(values).norm(dim=1).mean()) * abs(self.settings.alpha)
        facts = {
            "accuracy": round(accuracy, 4),
            "majority": round(states.majority, 4),
            "step_length": round(step, 4),
            "state_length": round(float(values.norm(dim=1).mean()), 4),
        }
        return Fit(probe if accuracy > states.majority + NO_BETTER else None, facts)
