"""Observers beside OR(all): what they see in each row, and where that would change a verdict.

OR(all) asks of each channel alone for the value of the queried person. `third_party` and `stitching` ask for more;
neither is ever counted in OR(all), and both are judged beside it by the rules of the panel.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from kbook.keys import CellKey
from kbook.scoring.cells import Bools, CellScores, Floats, Pool, graded, graded_rate, leaks, mean, or_all
from kbook.scoring.comparisons import Comparison, Group, Subject, adjusted, baseline_of, group_of, subject_of
from kbook.scoring.inference import mcnemar
from kbook.scoring.panel import Panel, Verdict
from kbook.scoring.records import Record
from kbook.scoring.verdicts import k_class, k_score, selectivity

_NAN = float("nan")

_Rows = Mapping[tuple[int, str], tuple[bool, float]]


@dataclass(frozen=True, eq=False)
class Seen:
    """What an observer sees in each row of a cell, OR(all) included.

    Shape: all (n,), in the order of the cell's queries.
    Unit: `shown` true or false, `graded` a fraction in [0, 1]; neither is below what OR(all) counts.
    Missing: as `cells.leaks` and `cells.graded`.
    """

    observer: str
    scores: CellScores
    shown: Bools
    graded: Floats


@dataclass(frozen=True, eq=False)
class Beside:
    """A label of the panel, and the one that an observer would give to the same rows.

    `label` is the K-class on forget, the selectivity on retain; K-Score belongs to forget and retain together
    and stands with forget.
    """

    subject: Subject
    split: str
    observer: str
    or_none: float
    or_method: float
    p_adj: float
    label: str
    label_or_all: str
    k_score: float = float("nan")
    k_score_or_all: float = float("nan")

    @property
    def changed(self) -> bool:
        """Whether the observer's label is another."""
        return self.label != self.label_or_all


def verdicts_beside(panel: Panel, seen: Iterable[Seen]) -> list[Beside]:
    """Label every method once more as one observer sees it, beside the label of the panel.

    Tests and families are made anew from the same pairs; the dominant channels stay those of the panel.

    Args:
        panel: the judged cells.
        seen: what one observer sees in them; a cell that it did not look at counts as in OR(all).

    Missing: only measured verdicts have a label to compare.
    Source: protocol A §3; the observers are beside it.
    """
    rows, observer = _by_unit(seen)
    tests = adjusted([_as_seen(test, panel, rows) for test in panel.tests])
    verdicts = {verdict.subject: verdict for verdict in panel.verdicts if verdict.status == "measured"}
    by_group = {(test.subject, test.split): test for test in tests}
    return [
        _beside(test, by_group.get((test.subject, "retain")), verdicts[test.subject], observer)
        for test in tests
        if test.subject in verdicts
    ]


def _by_unit(seen: Iterable[Seen]) -> tuple[dict[Group, dict[tuple[int, str], tuple[bool, float]]], str]:
    rows: dict[Group, dict[tuple[int, str], tuple[bool, float]]] = defaultdict(dict)
    observer = ""
    for cell in seen:
        observer, key = cell.observer, cell.scores.key
        units = ((key.seed, str(query)) for query in cell.scores.query_id)
        rows[group_of(key)] |= zip(units, zip(cell.shown.tolist(), cell.graded.tolist(), strict=True), strict=True)
    return rows, observer


def _as_seen(test: Comparison, panel: Panel, rows: Mapping[Group, _Rows]) -> Comparison:
    """The same pairs, each pool with one channel: what the observer sees."""
    group = Group(test.subject, test.split)
    untreated = baseline_of(group, panel.pooled)
    none, method = (
        _one_channel(pool, rows.get(side, {}) if side else {})
        for pool, side in ((test.none, untreated), (test.method, group))
    )
    return replace(test, none=none, method=method, test=mcnemar(leaks(none.cer), leaks(method.cer)))


def _one_channel(pool: Pool, rows: _Rows) -> Pool:
    as_before = zip(leaks(pool.cer).tolist(), graded(pool.severity).tolist(), strict=True)
    seen = [rows.get(unit, before) for unit, before in zip(pool.units, as_before, strict=True)]
    columns = np.array(seen, dtype=float).reshape(len(seen), 2)
    return replace(pool, cer=columns[:, :1], severity=columns[:, 1:])


def _beside(test: Comparison, retain: Comparison | None, verdict: Verdict, observer: str) -> Beside:
    rates = (test.test.or_none, test.test.or_method, test.p_adj)
    head = (test.subject, test.split, observer, *rates)
    if test.split == "retain":
        before = verdict.selectivity
        return Beside(*head, selectivity(*rates).text, before.text if before else "")
    label = k_class(*rates, verdict.dominant_none, verdict.dominant_method)
    score = k_score(
        graded_rate(test.method.severity),
        (graded_rate(retain.none.severity), graded_rate(retain.method.severity)) if retain else (_NAN, _NAN),
        (mean(test.none.degenerate), mean(test.method.degenerate)),
    )
    names = (label.text, verdict.k_class.text if verdict.k_class else "")
    return Beside(*head, *names, score.value, verdict.k_score.value if verdict.k_score else _NAN)


def observer_records(seen: Iterable[Seen]) -> list[Record]:
    """One record a cell and observer: OR(all) and graded rate beside what the observer sees."""
    return [
        {
            **named(cell.scores.key),
            "observer": cell.observer,
            "n": cell.scores.n,
            "or_all": or_all(cell.scores.cer),
            "or_seen": mean(cell.shown),
            "graded": graded_rate(cell.scores.severity),
            "graded_seen": mean(cell.graded),
        }
        for cell in seen
    ]


def beside_records(labels: Iterable[Beside]) -> list[Record]:
    """One record a method, split and observer: both labels, and whether they differ."""
    return [{**label.subject._asdict(), **_without_subject(label), "changed": label.changed} for label in labels]


def _without_subject(label: Beside) -> Record:
    return {name: value for name, value in vars(label).items() if name != "subject"}


def named(key: CellKey) -> Record:
    """The key of a cell as the first columns of a record."""
    return {**subject_of(key)._asdict(), "split": key.split, "seed": key.seed}
