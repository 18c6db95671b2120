"""Which cells belong together: the seeds of one cell, and a method with its untreated baseline."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from kbook.keys import CellKey
from kbook.scoring.cells import CellScores, Pool, leaks, matched, pool
from kbook.scoring.inference import McNemar, benjamini_hochberg, mcnemar

BASELINE = "none"


class Subject(NamedTuple):
    """What a verdict is about: a method (or a variant of it) on one lane of one base."""

    base: str
    lane: str
    method: str
    variant: str = ""

    def __str__(self) -> str:
        variant = f" ({self.variant})" if self.variant else ""
        return f"{self.base} {self.lane} {self.method}{variant}"


class Group(NamedTuple):
    """The seeds of one cell together."""

    subject: Subject
    split: str

    def __str__(self) -> str:
        return f"{self.subject} {self.split}"


@dataclass(frozen=True, eq=False)
class Comparison:
    """A method against its baseline on the rows that both have; `p_adj` is within the family of its split."""

    subject: Subject
    split: str
    none: Pool
    method: Pool
    test: McNemar
    p_adj: float = float("nan")


def subject_of(key: CellKey) -> Subject:
    """What a cell is about, its split and seed left aside."""
    return Subject(key.base, key.lane, key.method, key.variant)


def group_of(key: CellKey) -> Group:
    """The group of a cell: its seed left aside."""
    return Group(subject_of(key), key.split)


def pool_seeds(cells: Iterable[CellScores]) -> dict[Group, Pool]:
    """Put the seeds of each cell together.

    Raises:
        KBookError: a cell occurs twice.
    """
    seeds: dict[Group, list[CellScores]] = defaultdict(list)
    for cell in cells:
        seeds[group_of(cell.key)].append(cell)
    return {group: pool(members) for group, members in seeds.items()}


def baseline_of(group: Group, pools: Container[Group]) -> Group | None:
    """The untreated group: of the same variant when there is one, else of the plain setting."""
    for variant in (group.subject.variant, ""):
        candidate = Group(group.subject._replace(method=BASELINE, variant=variant), group.split)
        if candidate in pools:
            return candidate
    return None


def compare_all(pools: Mapping[Group, Pool]) -> tuple[Comparison, ...]:
    """Test every method against its baseline, where they have rows in common, and adjust within each split."""
    return adjusted([found for group in pools if (found := _compare(group, pools)) is not None])


def adjusted(tests: list[Comparison]) -> tuple[Comparison, ...]:
    """Adjust the p-values within each split, which is a family."""
    out = []
    for split in dict.fromkeys(test.split for test in tests):
        family = [test for test in tests if test.split == split]
        p_adj = benjamini_hochberg([test.test.p for test in family])
        out += [replace(test, p_adj=float(p)) for test, p in zip(family, p_adj, strict=True)]
    return tuple(out)


def _compare(group: Group, pools: Mapping[Group, Pool]) -> Comparison | None:
    """Pair a group with its baseline; None for the baseline itself and where nothing can be paired."""
    untreated = baseline_of(group, pools)
    if untreated is None or group.subject.method == BASELINE:
        return None
    none, method = matched(pools[untreated], pools[group])
    test = mcnemar(leaks(none.cer), leaks(method.cer))
    return Comparison(group.subject, group.split, none, method, test) if test.n else None
