"""Where the leak is: does the lane of a secret decide through which channels it comes out?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from kbook.keys import LANES
from kbook.scoring.cells import CellScores, Floats, cer_available
from kbook.scoring.inference import channel_shares, known_mean, threshold_tau, tv_distance, within_distance

EXEMPT_PAIR = {"R-text", "R-struct"}


@dataclass(frozen=True)
class LanePair:
    """Distance between the baselines of two lanes, and whether it exceeds τ."""

    first: str
    second: str
    distance: float
    n_seeds: int
    exempt: bool
    exceeds: bool


@dataclass(frozen=True)
class Topology:
    """Within-lane distances, τ, and the distance of each pair of lanes, for one base."""

    base: str
    within: Mapping[str, float]
    tau: float
    pairs: tuple[LanePair, ...]

    @property
    def holds(self) -> bool | None:
        """Whether every pair that is not exempt exceeds τ; None when that cannot be judged."""
        judged = [pair for pair in self.pairs if not pair.exempt]
        if np.isnan(self.tau) or not judged or any(np.isnan(pair.distance) for pair in judged):
            return None
        return all(pair.exceeds for pair in judged)


def topology(baseline: Sequence[CellScores]) -> Topology:
    """Compare the leak topologies of the lanes of one base.

    Args:
        baseline: the untreated forget cells of one base, all lanes and seeds.

    Shape: L lanes → L within-lane distances, L(L - 1)/2 pairs.
    Unit: distances are fractions in [0, 1].
    Missing: a pair of lanes is compared over the seeds that both have; without one its distance is nan.
    Source: protocol A §3, channel shares to hypothesis.
    """
    shares = {lane: _shares(baseline, lane) for lane in LANES}
    shares = {lane: by_seed for lane, by_seed in shares.items() if by_seed}
    within = {lane: within_distance(np.array([*by_seed.values()])) for lane, by_seed in shares.items()}
    tau = threshold_tau(list(within.values()))
    pairs = tuple(_pair(first, second, shares, tau) for first, second in combinations(shares, 2))
    return Topology(baseline[0].key.base if baseline else "", within, tau, pairs)


def _shares(baseline: Sequence[CellScores], lane: str) -> dict[int, Floats]:
    cells = sorted((cell for cell in baseline if cell.key.lane == lane), key=lambda cell: cell.key)
    return {cell.key.seed: channel_shares(cer_available(cell.cer)) for cell in cells}


def _pair(first: str, second: str, shares: Mapping[str, Mapping[int, Floats]], tau: float) -> LanePair:
    seeds = [seed for seed in shares[first] if seed in shares[second]]
    distances = [tv_distance(shares[first][seed], shares[second][seed]) for seed in seeds]
    distance = known_mean(np.array(distances, dtype=float))
    return LanePair(first, second, distance, len(seeds), {first, second} == EXEMPT_PAIR, distance > tau)
