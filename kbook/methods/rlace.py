"""R-LACE: the subspace without which the best linear probe does worst; and the covariance variant of K-Bench.

Two methods under two names. `RLACE` plays the minimax game of the paper. `RLACECovariance` is what K-Bench runs
under the name R-LACE: it takes the directions in which the covariances of forget and retain states differ most,
plays no game, and is blind to a difference of means.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from pydantic import Field

from kbook.methods.activations import LinearErasure, projection
from kbook.methods.seeding import generator_for
from kbook.methods.states import DepthParameters, Fit, StateMethod, States
from kbook.models.threads import threads

EVALUATIONS = 10
"""Times at which a fresh probe judges the projection during a game."""
RIDGE = 1e-3
"""Weight of the squared norm in a fresh probe: in many dimensions it would grow without end."""
FLAT = 1e-6
"""Differences of covariance below this share of the largest covariance are rounding."""


class CovarianceParameters(DepthParameters):
    """Settings of `RLACECovariance`."""

    rank: int = Field(4, ge=1, description="directions taken out")
    centred: bool = Field(False, description="measure states from their mean, so that the common part stays")


class RLACEParameters(CovarianceParameters):
    """Settings of `RLACE`.

    The paper's code plays up to 75 000 rounds at a rate of 0.005 on vectors of 768 dimensions; here states are
    scaled to unit variance a dimension, a higher rate serves, and the game is shorter.
    """

    rank: int = Field(1, ge=1, description="directions taken out")
    steps: int = Field(2000, ge=1, le=1_000_000, description="rounds of the game")
    learning_rate: float = Field(0.05, gt=0, le=10, description="of both players")
    weight_decay: float = Field(1e-4, ge=0, le=1, description="of both players")
    batch: int = Field(128, ge=1, description="states in a round")
    tolerance: float = Field(0.0015, ge=0, le=0.5, description="the game ends once a probe is this near the majority")
    components: int = Field(
        128, ge=1, le=4096, description="principal components of the states in which the game is played"
    )


def fantope(matrix: torch.Tensor, rank: int) -> torch.Tensor:
    """The nearest symmetric matrix with eigenvalues within 0 and 1 that sum to ``rank``.

    *Shape*: ``(width, width)`` to the same. The eigenvalues are lowered by one number, found by bisection, and
    cut off.

    Source: Ravfogel et al. 2201.12091, section 3.2.
    """
    values, vectors = torch.linalg.eigh((matrix + matrix.T) / 2)
    low, high = values.min() - 1, values.max()
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if (values - middle).clamp(0, 1).sum() > rank else (low, middle)
    return (vectors * (values - high).clamp(0, 1)) @ vectors.T


@dataclass
class Game:
    """Both players: a linear probe that minimises its loss, and a projection that maximises it.

    ``min over probe, max over P of mean loss(label, probe'(I - P) h)``. Gradients are written out: with the
    residual r = sigmoid(logit) - label, the loss moves with the probe by ``(I - P) H'r`` and with P by
    ``-sym(H'r probe')``.

    *Shape*: ``values`` ``(n, width)``, ``labels`` ``(n,)``.
    """

    values: torch.Tensor
    labels: torch.Tensor
    settings: RLACEParameters
    generator: torch.Generator

    def __post_init__(self) -> None:
        width = self.values.shape[1]
        drawn = torch.randn((width, width), generator=self.generator, dtype=self.values.dtype)
        self.projection = fantope(0.1 * (drawn + drawn.T) / 2, self.settings.rank)
        self.probe, self.bias = torch.zeros(width, dtype=self.values.dtype), 0.0

    def play(self) -> None:
        """One round: a step of the projection, then a step of the probe."""
        settings = self.settings
        chosen = torch.randint(len(self.values), (settings.batch,), generator=self.generator)
        values, labels = self.values[chosen], self.labels[chosen]
        pull, _ = self._gradient(values, labels)
        ascent = -(torch.outer(pull, self.probe) + torch.outer(self.probe, pull)) / 2
        stepped = self.projection + settings.learning_rate * (ascent - settings.weight_decay * self.projection)
        self.projection = fantope(stepped, settings.rank)
        pull, lean = self._gradient(values, labels)
        slope = pull - self.projection @ pull + settings.weight_decay * self.probe
        self.probe = self.probe - settings.learning_rate * slope
        self.bias -= settings.learning_rate * (lean + settings.weight_decay * self.bias)

    def _gradient(self, values: torch.Tensor, labels: torch.Tensor) -> tuple[torch.Tensor, float]:
        seen = self.probe - self.projection @ self.probe
        residual = (torch.sigmoid(values @ seen + self.bias) - labels) / len(labels)
        return values.T @ residual, float(residual.sum())

    def directions(self) -> torch.Tensor:
        """The leading eigenvectors of the relaxed projection. Shape: ``(width, rank)``."""
        return torch.linalg.eigh(self.projection).eigenvectors[:, -self.settings.rank :]


def probe_accuracy(train: torch.Tensor, labels: torch.Tensor, test: torch.Tensor, truth: torch.Tensor) -> float:
    """How often a logistic probe, fitted afresh on ``train`` by Newton's method, is right on ``test``."""
    inputs, judged = (torch.cat([x, x.new_ones(len(x), 1)], dim=1) for x in (train, test))
    weights = inputs.new_zeros(inputs.shape[1])
    ridge = RIDGE * torch.eye(len(weights), dtype=weights.dtype)
    for _ in range(30):
        sure = torch.sigmoid(inputs @ weights)
        slope = inputs.T @ (sure - labels) / len(inputs) + RIDGE * weights
        curvature = (inputs * (sure * (1 - sure))[:, None]).T @ inputs / len(inputs) + ridge
        step = torch.linalg.solve(curvature, slope)
        weights = weights - step
        if step.norm() < 1e-6 * (1 + weights.norm()):
            break
    return float(((judged @ weights > 0) == (truth > 0.5)).double().mean())


def minimax(states: States, settings: RLACEParameters, generator: torch.Generator) -> tuple[torch.Tensor, Any]:
    """Play the game; return the best directions found, orthonormal, and facts.

    Played among the leading principal components of the states, scaled by one number: a projection that the
    game can prefer lies in their span, and a round costs the cube of the dimensions. The best directions are
    those after which a fresh probe on held-out prompts is nearest to the majority.

    *Shape*: directions ``(width, rank)``.
    """
    basis, mean, scale = _components(states.values, settings.components)
    fitted, held_out = (((s.values - mean) @ basis / scale, s.forget.double()) for s in states.split())
    _, judged = states.split()

    def accuracy(directions: torch.Tensor) -> float:
        values = [part - part @ directions @ directions.T for part in (fitted[0], held_out[0])]
        return probe_accuracy(values[0], fitted[1], values[1], held_out[1])

    rank = min(settings.rank, basis.shape[1])
    game = Game(*fitted, settings.model_copy(update={"rank": rank}), generator)
    before = accuracy(torch.zeros((basis.shape[1], 1), dtype=basis.dtype))
    best, distance, after = game.directions(), float("inf"), before
    played, every = 0, max(1, settings.steps // EVALUATIONS)
    while played < settings.steps and distance >= settings.tolerance:
        for _ in range(min(every, settings.steps - played)):
            game.play()
            played += 1
        now = accuracy(game.directions())
        if abs(now - judged.majority) < distance:
            best, distance, after = game.directions(), abs(now - judged.majority), now
    facts = {
        "accuracy_before": round(before, 4),
        "accuracy_after": round(after, 4),
        "majority": round(judged.majority, 4),
        "rounds": played,
        "rank": rank,
        "components": basis.shape[1],
    }
    return basis @ best, facts


def _components(values: torch.Tensor, most: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Leading principal directions, the mean, and the scale that gives unit variance a dimension."""
    mean = values.mean(0)
    _, sizes, directions = torch.linalg.svd(values - mean, full_matrices=False)
    kept = max(1, int((sizes > sizes[0] * 1e-6).sum()))
    basis = directions[: min(kept, most)].T
    scale = ((values - mean) @ basis).square().mean().sqrt()
    return basis, mean, scale.clamp(min=1e-12)


class RLACE(StateMethod):
    """Erase the rank-k subspace that hurts the best linear probe most.

    Where: output of one layer, all tokens, so all lanes. ``h - U U' h``; U spans the top eigenvectors of the
    relaxed projection at the end of the game.

    Alternating gradient steps, the projection kept in the Fantope (symmetric, eigenvalues within 0 and 1, trace k)
    after each. Accuracy is not monotone, so the best projection on the way is kept. With more dimensions than
    people a probe finds a way around any few directions: the facts say how much was left.

    Source: Ravfogel et al. 2201.12091 and its published code (rank 1, weight decay 1e-4, batches of 128, stopping
    rule); depth 0.5 as in K-Bench.
    """

    name, title = "rlace", "R-LACE"
    source = "Ravfogel et al. 2201.12091: the minimax game, in leading principal components of name tokens' states"
    Parameters = RLACEParameters
    settings: RLACEParameters

    def fit(self, states: States, seed: int) -> Fit:
        with threads(1):
            directions, facts = minimax(states, self.settings, generator_for("rlace", seed))
        if facts["accuracy_before"] <= facts["majority"] + self.settings.tolerance:
            return Fit(None, facts)
        return Fit(_without(directions, states, self.settings.centred), facts)


class RLACECovariance(StateMethod):
    """Erase the directions in which forget and retain states differ most in covariance.

    Where: output of one layer, all tokens, so all lanes. ``h - U U' h``; U holds the eigenvectors of
    ``S_forget - S_retain`` with the k largest absolute eigenvalues.

    Not R-LACE: no game is played, and a plain difference of means is invisible to it. Without centring it takes
    the common part of the states along U with it; K-Bench saw generation collapse on P.

    Source: K-Bench, which calls it R-LACE (rank 4, depth 0.5).
    """

    name, title = "rlace_cov", "R-LACE (covariance)"
    source = "K-Bench's R-LACE: leading directions of the difference of class covariances, rank 4"
    Parameters = CovarianceParameters
    settings: CovarianceParameters

    def fit(self, states: States, seed: int) -> Fit:
        pools = [_covariance(states.of(forget)) for forget in (True, False)]
        difference = pools[0] - pools[1]
        values, vectors = torch.linalg.eigh(difference)
        order = values.abs().argsort(descending=True)[: self.settings.rank]
        flat = FLAT * max(float(pool.abs().max()) for pool in pools)
        order = order[values[order].abs() > flat]
        facts = {"eigenvalues": [round(float(v), 6) for v in values[order]], "rank": len(order)}
        return Fit(_without(vectors[:, order], states, self.settings.centred) if len(order) else None, facts)


def _covariance(values: torch.Tensor) -> torch.Tensor:
    centred = values - values.mean(0)
    return centred.T @ centred / max(1, len(values) - 1)


def _without(directions: torch.Tensor, states: States, centred: bool) -> LinearErasure:
    return projection(directions, states.values.mean(0) if centred else None)
