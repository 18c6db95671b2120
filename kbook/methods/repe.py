"""RepE: the direction from retain to forget states is taken out of every state."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from kbook.methods.activations import projection
from kbook.methods.states import Fit, StateMethod, StateParameters, States

SHORTEST = 1e-6
"""A difference of means below this share of the length of states is rounding, not a direction."""


class RepEParameters(StateParameters):
    """Settings of `RepE`."""

    depths: tuple[Annotated[float, Field(ge=0, le=1)], ...] = Field(
        (0.5,), min_length=1, description="layers, as fractions of the depth, each with its own direction"
    )
    alpha: float = Field(
        1.0, ge=-100, le=100, allow_inf_nan=False, description="share of the component removed; 2 mirrors it"
    )
    centred: bool = Field(False, description="measure states from their mean, so that the common part stays")


class RepE(StateMethod):
    """``h - alpha (h'v) v``, with v the unit vector from the mean retain to the mean forget state.

    Where: output of the chosen layers, all tokens, so all lanes.

    This is K-Bench's edit. The paper's own controls add the direction, or add it with the sign of ``h'v``; its
    projection operator is described but not implemented in the published code. Without centring, whatever all
    states have in common along v is removed as well, from forget and retain alike; a few outlying dimensions
    may dominate v.

    Source: Zou et al. 2310.01405; difference of means and projection as in K-Bench.
    """

    name, title = "repe", "RepE"
    source = "Zou et al. 2310.01405; difference of means, projected out, as in K-Bench (depth 0.5)"
    Parameters = RepEParameters
    settings: RepEParameters

    @property
    def depths(self) -> tuple[float, ...]:
        return self.settings.depths

    def fit(self, states: States, seed: int) -> Fit:
        means = {forget: states.of(forget).mean(0) for forget in (True, False)}
        direction = means[True] - means[False]
        length = float(direction.norm())
        middle = (means[True] + means[False]) / 2
        if length <= SHORTEST * float(states.values.norm(dim=1).mean()):
            return Fit(None, {"length": length})
        unit = (direction / length)[:, None]
        facts = {"length": round(length, 6), "common": round(float(middle @ unit[:, 0]), 6)}
        return Fit(projection(unit, middle if self.settings.centred else None, self.settings.alpha), facts)
