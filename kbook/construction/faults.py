"""Faults that a deterministic provider plants on purpose, so that the checks have something to refuse: a control.

Each fault is labelled by its kind. Whether one is planted, and which, follows from the seed and the name of the thing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random
from typing import TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class Faults:
    """How often faults are planted.

    *Unit*: ``rate`` is the probability for each thing that is made; 0 plants nothing.
    """

    rate: float = 0.0
    seed: int = 0

    def pick(self, name: str, faulty: Callable[[], Mapping[str, T | None]]) -> tuple[str, T] | None:
        """Choose one of the faults that are possible here, or none.

        Args:
            name: of the thing that is made, such as an id and an attempt.
            faulty: makes, where it is needed, kind of fault → the faulty thing, or None where this fault would change
                nothing.
        """
        random = Random(f"{self.seed}/{name}")
        if random.random() >= self.rate:
            return None
        possible = [(kind, thing) for kind, thing in faulty().items() if thing is not None]
        return random.choice(possible) if possible else None
