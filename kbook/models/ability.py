"""The row of a model card: one task, how often a base did it, and what is required of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Ability:
    """Result of one task. Shares are of ``n`` tries; None where the task has no such part."""

    task: str
    n: int
    valid_format: float | None
    tool_call: float | None
    answer: float | None
    required: dict[str, float]

    @property
    def passed(self) -> bool:
        return all((getattr(self, what) or 0.0) >= least for what, least in self.required.items())


def as_records(abilities: Sequence[Ability]) -> list[dict[str, Any]]:
    """Plain dicts for the model card and the chapter's table."""
    return [asdict(a) | {"passed": a.passed} for a in abilities]
