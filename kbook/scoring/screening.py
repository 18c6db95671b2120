"""The rule by which a checkpoint is chosen in protocol B: one formula for every method, setting and language.

    score = w * (1 - T) + (1 - w) * N

T and N are the mean ROUGE-L of the source language's core answers about the target (low is wanted) and about its
neighbour (high is wanted); w is the weight of the target.

Source: CLLPU, appendix C: every epoch checkpoint is judged by weighted ROUGE-L of target and neighbour in the source
language. The paper does not state the weights.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import fmean
from typing import Any

from kbook.scoring.accessibility import rouge_l_f1

DECIMALS = 6


@dataclass(frozen=True)
class Point:
    """One judged checkpoint: settings, epoch (from 1), mean ROUGE-L of target and neighbour, and the score."""

    settings: Mapping[str, Any]
    epoch: int
    target: float
    neighbour: float
    score: float

    def record(self) -> dict[str, Any]:
        """As plain JSON values."""
        return asdict(self)


def screened(
    settings: Mapping[str, Any],
    epoch: int,
    target: Sequence[tuple[str, str]],
    neighbour: Sequence[tuple[str, str]],
    weight: float,
) -> Point:
    """Judge a checkpoint by its answers.

    Args:
        settings: of the method.
        epoch: from 1.
        target: expected and given answers about the target.
        neighbour: likewise about its neighbour.
        weight: of the target, in [0, 1].
    """
    low, high = (fmean(rouge_l_f1(expected, given) for expected, given in pairs) for pairs in (target, neighbour))
    score = weight * (1 - low) + (1 - weight) * high
    return Point(dict(settings), epoch, *(round(value, DECIMALS) for value in (low, high, score)))


def best(points: Sequence[Point]) -> Point:
    """The point of the highest score; of equals the first, which is the earlier epoch of the earlier settings."""
    return max(points, key=lambda point: point.score)
