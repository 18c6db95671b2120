"""What a check says of a thing, and what becomes of many things on their way: the funnel.

Every stage of the construction writes one row for each thing that it looked at, kept or not, with the reason. The
funnel only counts these rows, so that it cannot disagree with what happened.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class Judged(Generic[T]):
    """A thing with the reason why it was refused ("" where it was kept), or why it should be looked at again."""

    item: T
    reason: str = ""
    flag: str = ""

    @property
    def kept(self) -> bool:
        return not self.reason


def kept(judged: Iterable[Judged[T]]) -> list[T]:
    """The things that were kept."""
    return [each.item for each in judged if each.kept]


@dataclass(frozen=True)
class Step:
    """One stage in one setting: how many things came, how many stayed, and why the others did not."""

    stage: str
    setting: str
    n_in: int
    n_kept: int
    reasons: Mapping[str, int]
    flags: Mapping[str, int]


@dataclass(frozen=True)
class Planted:
    """What became of the faults of one kind that were planted on purpose in one stage.

    Args:
        stage, fault: where, and of which kind.
        reasons: why they were refused → how many; "" for those that were kept.
        n_flagged: how many of those that were kept were flagged, so that later stages do not use them.
    """

    stage: str
    fault: str
    reasons: Mapping[str, int]
    n_flagged: int

    @property
    def n_planted(self) -> int:
        return sum(self.reasons.values())

    @property
    def n_missed(self) -> int:
        return self.reasons.get("", 0) - self.n_flagged


@dataclass(frozen=True)
class Funnel:
    """All rows of all stages, as stored: ``stage``, ``setting``, ``reason``, ``flag`` and ``fault`` are read."""

    rows: tuple[Mapping[str, Any], ...]

    @property
    def steps(self) -> tuple[Step, ...]:
        """Stages by setting, in the order in which they first appear."""
        groups: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
        for row in self.rows:
            groups.setdefault((row["stage"], row["setting"]), []).append(row)
        return tuple(_step(*names, rows) for names, rows in groups.items())

    @property
    def planted(self) -> tuple[Planted, ...]:
        """The control: faults that the provider planted, by stage and kind, in the order of first appearance."""
        groups: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
        for row in self.rows:
            if row["fault"]:
                groups.setdefault((row["stage"], row["fault"]), []).append(row)
        return tuple(_planted(*names, rows) for names, rows in groups.items())

    def n_kept(self, stage: str, setting: str, **where: Any) -> int:
        """How many rows of a stage and setting were kept, of those whose fields have the values of ``where``."""
        wanted = {"stage": stage, "setting": setting, "reason": "", **where}
        return sum(all(row.get(name) == value for name, value in wanted.items()) for row in self.rows)


def _step(stage: str, setting: str, rows: list[Mapping[str, Any]]) -> Step:
    reasons = Counter(row["reason"] for row in rows if row["reason"])
    flags = Counter(row["flag"] for row in rows if row["flag"] and not row["reason"])
    n_kept = len(rows) - reasons.total()
    return Step(stage, setting, len(rows), n_kept, dict(reasons.most_common()), dict(flags.most_common()))


def _planted(stage: str, fault: str, rows: list[Mapping[str, Any]]) -> Planted:
    flagged = sum(bool(row["flag"]) and not row["reason"] for row in rows)
    return Planted(stage, fault, Counter(row["reason"] for row in rows), flagged)
