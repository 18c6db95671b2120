"""Steering hidden states of forget documents: to a fixed random vector (RMU), or away from what they were (FALCON).

The loss is read off one layer's output where answers are written, and a few feed-forward output matrices are trained.
Which layer and which matrices is a fraction of the depth, so that it means the same for four layers and for thirty-two.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from pydantic import BaseModel, Field

from kbook.methods.activations import Change, at_depth, changed_outputs
from kbook.methods.contract import FitContext
from kbook.methods.second_order import Sophia
from kbook.methods.seeding import generator_for
from kbook.methods.weights import Contrast, Material, Weighted, WeightedMethod
from kbook.models.batching import IGNORED, Batch


@contextmanager
def captured(*modules: Any) -> Iterator[dict[Any, tuple[torch.Tensor, torch.Tensor]]]:
    """Input and output of modules, as of their last call inside. Shape of each: ``(documents, tokens, width)``."""
    seen: dict[Any, tuple[torch.Tensor, torch.Tensor]] = {}

    def noting(module: Any) -> Change:
        def note(given: torch.Tensor, output: torch.Tensor) -> torch.Tensor:
            seen[module] = given, output
            return output

        return note

    with changed_outputs({module: noting(module) for module in modules}):
        yield seen


def read_through(model: Any, ids: torch.Tensor) -> torch.Tensor:
    """Final hidden states of right-padded ``ids``, by the stock forward pass, in which hooks take part."""
    states: torch.Tensor = model.model(input_ids=ids.to(model.device), use_cache=False).last_hidden_state
    return states


class SteeringParameters(Weighted):
    """Settings that `RMU` and `FALCON` share."""

    depth: float = Field(0.5, ge=0, le=1, description="layer that is steered, as a fraction of the depth")
    matrices: int = Field(3, ge=1, description="feed-forward output matrices that are trained, up to that layer")


class SteeringMethod(WeightedMethod):
    """Trains the output matrices of the feed-forward parts of a few layers, by the states of the last of them."""

    Parameters: ClassVar[type[BaseModel]] = SteeringParameters
    settings: SteeringParameters

    def states(self, model: Any, batch: Batch) -> torch.Tensor:
        """The steered layer's output where the next token is supervised. Shape: ``(n, width)``, float32."""
        layers = model.model.layers
        layer = layers[at_depth(len(layers), self.settings.depth)]
        chosen = batch.labels[:, 1:] != IGNORED
        with captured(layer) as seen:
            read_through(model, batch.ids)
        return seen[layer][1][:, :-1][chosen.to(model.device)].float()

    def keep(self, start: Any, retain: Batch) -> torch.Tensor:
        return self.states(start, retain)

    def prepared(self, model: Any, material: Material, context: FitContext) -> tuple[Any, dict[str, Any]]:
        layer = at_depth(len(model.model.layers), self.settings.depth)
        first = max(0, layer + 1 - self.settings.matrices)
        model.requires_grad_(False)
        for trained in model.model.layers[first : layer + 1]:
            trained.mlp.down_proj.requires_grad_(True)
        return model, {"layer": layer, "trained layers": list(range(first, layer + 1))}


# ---- RMU ---------------------------------------------------------------------------------------------------


def random_direction(width: int, *names: Any) -> torch.Tensor:
    """A unit vector along a draw from the unit cube. Shape: ``(width,)``."""
    return F.normalize(torch.rand(width, generator=generator_for(*names)), dim=0)


class RMUParameters(SteeringParameters):
    """Settings of `RMU`."""

    learning_rate: float = Field(5e-3, ge=0, le=1, description="peak rate of the optimiser")
    alpha: float = Field(10.0, ge=0, le=1e5, description="weight of the retain term")
    steering: float = Field(
        2.0, ge=0, le=1e4, description="length of the target, in mean lengths of the start's states"
    )


class RMU(SteeringMethod):
    """Representation misdirection: forget states are drawn to a fixed random vector, retain states to where they were.

    Mean squared error over dimensions and answer tokens, for both.

    Source: Li et al. 2403.03218 (WMDP); for Zephyr layer 7 of 32, the matrices of layers 5 to 7, target length 6.5,
    retain weight 1,200, rate 5e-5, 150 batches of 4; OpenUnlearning trains all weights with length 2 and weight 1, on
    answer tokens, as here. The target's length is relative here: it must exceed that of the states to be noticed
    behind the next norm, and an absolute number means something else in each model.
    """

    name, title = "rmu", "RMU"
    source = "Li et al. 2403.03218; answer tokens as in OpenUnlearning, length relative to the start's states"
    Parameters = RMUParameters
    settings: RMUParameters

    def references(self, start: Any, groups: Sequence[tuple[Batch, ...]]) -> list[Any]:
        states = torch.cat([self.states(start, group[0]) for group in groups])
        length = self.settings.steering * states.norm(dim=-1).mean()
        return [length * random_direction(states.shape[-1], self.name).to(states)] * len(groups)

    def forget_loss(self, model: Any, item: Contrast) -> torch.Tensor:
        states = self.states(model, item.forget)
        return F.mse_loss(states, item.reference.expand_as(states))

    def retain_loss(self, model: Any, item: Contrast) -> torch.Tensor:
        return F.mse_loss(self.states(model, item.retain), item.kept)


# ---- FALCON ------------------------------------------------------------------------------------------------


def steering_vector(states: torch.Tensor, *names: Any) -> torch.Tensor:
    """A unit vector that depends on all states and leads back to none of them.

    The diagonal direction, six times through a saturated map that stretches the principal directions of ``states``
    a thousandfold, with a little noise. Shape: ``(n, width)`` to ``(width,)``.

    Source: FALCON's code (3b13b2e, falcon/algorithms.py).
    """
    width = states.shape[-1]
    _, s, vh = torch.linalg.svd(states.float(), full_matrices=False)
    stretch = 1000 * torch.sigmoid(s / s[0])
    noise = torch.randn((width, width), generator=generator_for(*names)).to(vh)
    mixing = torch.tanh(torch.eye(width).to(vh) + (vh.T * stretch) @ vh + 0.01 * noise)
    vector = F.normalize(torch.ones(width).to(vh), dim=0)
    for _ in range(6):
        vector = F.normalize(torch.tanh(vector @ mixing), dim=0)
    return vector


def contrastive_loss(
    states: torch.Tensor, positive: torch.Tensor, negative: torch.Tensor, temperature: float
) -> torch.Tensor:
    """InfoNCE with cosines: near the positive, away from the negative of the same position.

    *Shape*: ``(n, width)``, ``(width,)``, ``(n, width)`` to a scalar. *Unit*: nats.
    """
    near = F.cosine_similarity(states, positive.expand_as(states), dim=-1)
    away = F.cosine_similarity(states, negative, dim=-1)
    return F.softplus((away - near) / temperature).mean()


def merged_gradient(
    forget: torch.Tensor, retain: torch.Tensor, conflict: tuple[float, float], agreement: tuple[float, float]
) -> torch.Tensor:
    """One tensor's gradient out of two: if they conflict, the forget gradient loses its part along the other.

    Args:
        forget: gradient of the forget term.
        retain: of the retain term, same shape.
        conflict: weights of the two if their cosine is negative.
        agreement: and if it is not.
    """
    along = (forget * retain).sum()
    if along < 0:
        across = forget - along / (retain * retain).sum() * retain
        return conflict[0] * across + conflict[1] * retain
    return agreement[0] * forget + agreement[1] * retain


def with_gradients(parameters: Iterable[torch.Tensor], gradients: Iterable[torch.Tensor]) -> torch.Tensor:
    """A zero whose gradient in each parameter is the given one: how gradients that no loss has enter a loss."""
    terms = [((p - p.detach()) * g.detach()).sum() for p, g in zip(parameters, gradients, strict=True)]
    return torch.stack(terms).sum()


class FALCONParameters(SteeringParameters):
    """Settings of `FALCON`."""

    learning_rate: float = Field(1e-2, ge=0, le=1, description="peak rate: the largest step of any weight")
    alpha: float = Field(10.0, ge=0, le=1e5, description="weight of the retain term")
    temperature: float = Field(0.7, gt=0, le=100, description="of the contrastive loss")
    conflict: tuple[float, float] = Field((0.8, 1.2), description="weights of forget and retain gradients at odds")
    agreement: tuple[float, float] = Field((0.1, 1.9), description="and of gradients that agree")


class FALCON(SteeringMethod):
    """Contrastive steering of one layer, with gradients of the two terms that are kept out of each other's way.

    Forget states come near a vector that is made from them but leads nowhere, and away from what they were; retain
    states keep their direction. The two gradients are merged tensor by tensor and stepped by Sophia.

    Source: Hu et al. 2502.01472 (NeurIPS 2025) and its code; layers 5 to 7 of 32, temperature 0.7, retain weight 100
    (with which a small model hardly moves; 10 here), rate 5e-5, at most 80 batches, weight decay 1e-3 (none here), rho
    0.9. The paper picks the layer by mutual
    information of the two pools; here it is a setting, as in the code's default. Everything is compared by
    cosine, so that the steering coefficient of the code's settings has no effect; there is none here.
    """

    name, title = "falcon", "FALCON"
    source = "Hu et al. 2502.01472 and its code; layer by depth, not by mutual information"
    Parameters = FALCONParameters
    settings: FALCONParameters
    optimizer = partial(Sophia, rho=0.9)

    def remember(self, start: Any, group: tuple[Batch, ...]) -> tuple[torch.Tensor, torch.Tensor]:
        states = self.states(start, group[0])
        return states, steering_vector(states, self.name)

    def forget_loss(self, model: Any, item: Contrast) -> torch.Tensor:
        before, vector = item.reference
        return contrastive_loss(self.states(model, item.forget), vector, before, self.settings.temperature)

    def retain_loss(self, model: Any, item: Contrast) -> torch.Tensor:
        return 1 - F.cosine_similarity(self.states(model, item.retain), item.kept, dim=-1).mean()

    def loss(self, model: Any, item: Contrast) -> torch.Tensor:
        trained = [p for p in model.parameters() if p.requires_grad]
        forget_loss = self.settings.gamma * self.forget_loss(model, item)
        retain_loss = self.settings.alpha * self.retain_loss(model, item)
        forget, retain = (torch.autograd.grad(loss, trained) for loss in (forget_loss, retain_loss))
        how = (self.settings.conflict, self.settings.agreement)
        merged = [merged_gradient(f, r, *how) for f, r in zip(forget, retain, strict=True)]
        return (forget_loss + retain_loss).detach() + with_gradients(trained, merged)
