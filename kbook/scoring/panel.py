"""Judge a set of cells as one table: tests and their families, gates, verdicts, budgets, topology.

Example:
    >>> from kbook.keys import CellKey
    >>> from kbook.scoring.cells import score_rows
    >>> row = {"query_id": "q1", "field": "employer", "ground_truth": "Alder Ltd", "raw_Z_summary": "",
    ...        "raw_full": "Final Answer: Alder Ltd", "answer": "Alder Ltd", "halted_reason": "final_answer",
    ...        "raw_Z_CoT": [], "raw_Z_tool": [], "raw_Z_tool_obs": [], "raw_Z_RAG": []}
    >>> keys = [CellKey("kbench", "demo", "P", method, "forget", seed=0) for method in ("none", "eco")]
    >>> panel = judge([score_rows([row], key) for key in keys])
    >>> panel.verdicts[1].k_class.text, panel.verdicts[1].provisional
    ('measured failure', True)
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from kbook.keys import LANES, CellKey
from kbook.scoring.budgets import BUDGETS, observe
from kbook.scoring.cells import CellScores, Pool, graded_rate, leaks, matched, mean, or_all, pool
from kbook.scoring.gates import Gate, eligibility, passed, validity
from kbook.scoring.inference import Bootstrap, McNemar, benjamini_hochberg, mcnemar
from kbook.scoring.summary import Summary, summarise
from kbook.scoring.topology import Topology, topology
from kbook.scoring.verdicts import (
    ALPHA,
    SEEDS_NEEDED,
    KScore,
    Label,
    k_class,
    k_score,
    provisional,
    selectivity,
)

BASELINE = "none"
DEFAULT = Bootstrap()


class Subject(NamedTuple):
    """What a verdict is about: a method (or a variant of it) on one lane of one base."""

    base: str
    lane: str
    method: str
    variant: str = ""

    def __str__(self) -> str:
        variant = f" ({self.variant})" if self.variant else ""
        return f"{self.base} {self.lane} {self.method}{variant}"


def subject_of(key: CellKey) -> Subject:
    """What a cell is about, its split and seed left aside."""
    return Subject(key.base, key.lane, key.method, key.variant)


class Group(NamedTuple):
    """The seeds of one cell together."""

    subject: Subject
    split: str


@dataclass(frozen=True, eq=False)
class Comparison:
    """A method against its baseline on the rows that both have; `p_adj` is within the family of its split."""

    subject: Subject
    split: str
    none: Pool
    method: Pool
    test: McNemar
    p_adj: float = float("nan")


@dataclass(frozen=True, eq=False)
class Pooled:
    """The rates of the seeds of one cell together."""

    seeds: tuple[int, ...]
    summary: Summary


@dataclass(frozen=True, eq=False)
class BudgetVerdict:
    """The K-class that an observer with one budget would give."""

    subject: Subject
    budget: str
    or_none: float
    or_method: float
    p_adj: float
    k_class: Label


@dataclass(frozen=True, eq=False)
class Verdict:
    """All labels and figures of one subject.

    `status` is measured, baseline, excluded (the lane failed its validity gate), incomplete (no forget rows
    in common with a baseline) or not applicable (the mechanism cannot reach the lane); `reasons` say why.
    Only a measured verdict has a rank and all labels; an excluded one may be called substrate-broken.
    `rank` orders the eligible of one lane by suppression, 1 first; `flipped` says whether the budgets A1
    and A5 give different kinds of K-class.
    """

    subject: Subject
    status: str
    reasons: tuple[str, ...]
    seeds: tuple[int, ...] = ()
    provisional: bool = False
    k_class: Label | None = None
    selectivity: Label | None = None
    k_score: KScore | None = None
    dominant_none: str | None = None
    dominant_method: str | None = None
    retain_preservation: float = float("nan")
    gates: tuple[Gate, ...] = ()
    eligible: bool | None = None
    rank: int | None = None
    flipped: bool | None = None


@dataclass(frozen=True, eq=False)
class Panel:
    """One table of cells, judged.

    `validity` is keyed by the subject of the baseline; `warnings` are those of the table as a whole, beside
    those that each cell carries.
    """

    cells: tuple[CellScores, ...]
    summaries: tuple[Summary, ...]
    pooled: Mapping[Group, Pooled]
    tests: tuple[Comparison, ...]
    validity: Mapping[Subject, tuple[Gate, ...]]
    verdicts: tuple[Verdict, ...]
    budgets: tuple[BudgetVerdict, ...]
    topologies: tuple[Topology, ...]
    warnings: tuple[str, ...]


def judge(
    cells: Iterable[CellScores],
    *,
    how: Bootstrap = DEFAULT,
    not_applicable: Mapping[tuple[str, str], str] | None = None,
) -> Panel:
    """Judge every method among the cells against the untreated baseline of its base and lane.

    Args:
        cells: all cells of one table: the families of the tests are scoped to them.
        how: the bootstrap.
        not_applicable: (lane, method) → why the method cannot reach the lane.

    Missing: what cannot be judged gets a status and a reason, never a label.
    Raises:
        KBookError: a cell occurs twice.
    Source: protocol A §3.
    """
    ordered = tuple(sorted(cells, key=lambda cell: cell.key))
    pools = _pools(ordered)
    tests = _adjusted([c for group in pools if (c := _compare(group, pools)) is not None])
    gates = {g.subject: validity(pools[g]) for g in pools if g.subject.method == BASELINE and g.split == "forget"}
    budgets = tuple(verdict for budget in BUDGETS for verdict in _budget_verdicts(tests, budget, how))
    verdicts = [_verdict(subject, pools, tests, gates, budgets, how) for subject in _subjects(pools)]
    verdicts += _not_applicable(pools, not_applicable or {})
    return Panel(
        cells=ordered,
        summaries=tuple(summarise(cell, how) for cell in ordered),
        pooled={group: Pooled(rows.seeds, summarise(rows, how)) for group, rows in pools.items()},
        tests=tests,
        validity=gates,
        verdicts=_ranked(sorted(verdicts, key=lambda verdict: _order(verdict.subject))),
        budgets=budgets,
        topologies=_topologies(ordered),
        warnings=tuple(_warnings(ordered, pools, tests)),
    )


def _pools(cells: tuple[CellScores, ...]) -> dict[Group, Pool]:
    seeds: dict[Group, list[CellScores]] = defaultdict(list)
    for cell in cells:
        seeds[Group(subject_of(cell.key), cell.key.split)].append(cell)
    return {group: pool(members) for group, members in seeds.items()}


def _subjects(pools: Mapping[Group, Pool]) -> list[Subject]:
    return list(dict.fromkeys(group.subject for group in pools))


def _baseline(group: Group, pools: Mapping[Group, Pool]) -> Group | None:
    """The untreated group: of the same variant when there is one, else of the plain setting."""
    for variant in (group.subject.variant, ""):
        candidate = Group(group.subject._replace(method=BASELINE, variant=variant), group.split)
        if candidate in pools:
            return candidate
    return None


def _compare(group: Group, pools: Mapping[Group, Pool]) -> Comparison | None:
    """Pair a group with its baseline; None for the baseline itself and where nothing can be paired."""
    untreated = _baseline(group, pools)
    if untreated is None or group.subject.method == BASELINE:
        return None
    none, method = matched(pools[untreated], pools[group])
    test = mcnemar(leaks(none.cer), leaks(method.cer))
    return Comparison(group.subject, group.split, none, method, test) if test.n else None


def _adjusted(tests: list[Comparison]) -> tuple[Comparison, ...]:
    """Adjust the p-values within each split, which is a family."""
    out = []
    for split in dict.fromkeys(test.split for test in tests):
        family = [test for test in tests if test.split == split]
        adjusted = benjamini_hochberg([test.test.p for test in family])
        out += [replace(test, p_adj=float(p)) for test, p in zip(family, adjusted, strict=True)]
    return tuple(out)


def _dominant(rows: Pool, how: Bootstrap) -> str | None:
    return summarise(rows, how).dominant


def _label(comparison: Comparison, how: Bootstrap) -> Label:
    """K-class of a forget comparison; dominance is looked at only where it can decide."""
    sides = (comparison.none, comparison.method) if comparison.p_adj > ALPHA else ()
    before, after = [_dominant(rows, how) for rows in sides] or (None, None)
    return k_class(comparison.test.or_none, comparison.test.or_method, comparison.p_adj, before, after)


def _budget_verdicts(tests: tuple[Comparison, ...], budget: str, how: Bootstrap) -> list[BudgetVerdict]:
    """K-classes of the forget comparisons as one observer sees them; each budget is a family of its own."""
    seen = []
    for test in tests:
        if test.split == "forget":
            none, method = observe(test.none, budget), observe(test.method, budget)
            paired = mcnemar(leaks(none.cer), leaks(method.cer))
            seen.append(replace(test, none=none, method=method, test=paired))
    return [
        BudgetVerdict(test.subject, budget, test.test.or_none, test.test.or_method, test.p_adj, _label(test, how))
        for test in _adjusted(seen)
    ]


def _verdict(
    subject: Subject,
    pools: Mapping[Group, Pool],
    tests: tuple[Comparison, ...],
    gates: Mapping[Subject, tuple[Gate, ...]],
    budgets: tuple[BudgetVerdict, ...],
    how: Bootstrap,
) -> Verdict:
    untreated = _baseline(Group(subject, "forget"), pools)
    if untreated is None or Group(subject, "forget") not in pools:
        missing = "no untreated baseline" if untreated is None else "no cell"
        return Verdict(subject, "incomplete", (f"{missing} on forget for this base and lane",))
    if not passed(gates[untreated.subject]):
        return _excluded(subject, pools[Group(subject, "forget")], gates[untreated.subject])
    if subject.method == BASELINE:
        return _baseline_verdict(subject, pools)
    by_split = {test.split: test for test in tests if test.subject == subject}
    if "forget" not in by_split:
        return Verdict(subject, "incomplete", ("no seed and query in common with the baseline on forget",))
    kinds = {verdict.budget: verdict.k_class.kind for verdict in budgets if verdict.subject == subject}
    verdict = _measured(by_split["forget"], by_split.get("retain"), how)
    return replace(verdict, flipped=kinds["A1"] != kinds["A5"])


def _excluded(subject: Subject, rows: Pool, gates: tuple[Gate, ...]) -> Verdict:
    """A lane whose baseline shows too little: both figures, and a label only where a K-class fits."""
    label = k_class(gates[0].value, or_all(rows.cer), 1.0, None, None) if gates[0].passed is False else None
    reasons = tuple(gate.reason for gate in gates)
    return Verdict(subject, "excluded", reasons, rows.seeds, provisional(rows.seeds), k_class=label)


def _measured(forget: Comparison, retain: Comparison | None, how: Bootstrap) -> Verdict:
    label = _label(forget, how)
    kept = selectivity(retain.test.or_none, retain.test.or_method, retain.p_adj) if retain else None
    both = (forget.none, forget.method), (retain.none, retain.method) if retain else None
    score = _k_score(*both)
    gates = eligibility(*both)
    seeds = forget.method.seeds
    fewest = min(seeds, retain.method.seeds, key=len) if retain else seeds
    reasons = [label.reason, *([kept.reason] if kept else []), *([score.reason] if score.reason else [])]
    reasons += [gate.reason for gate in gates if not gate.passed]
    if provisional(fewest):
        reasons.append(f"provisional: fewer than {SEEDS_NEEDED} seeds ({', '.join(map(str, fewest))})")
    return Verdict(
        subject=forget.subject,
        status="measured",
        reasons=tuple(reasons),
        seeds=seeds,
        provisional=provisional(fewest),
        k_class=label,
        selectivity=kept,
        k_score=score,
        dominant_none=_dominant(forget.none, how),
        dominant_method=_dominant(forget.method, how),
        retain_preservation=gates[0].value,
        gates=gates,
        eligible=passed(gates),
    )


def _baseline_verdict(subject: Subject, pools: Mapping[Group, Pool]) -> Verdict:
    """The untreated model beside its methods: its K-Score is the bar, and it is never ranked."""
    forget, retain = pools[Group(subject, "forget")], pools.get(Group(subject, "retain"))
    score = _k_score((forget, forget), (retain, retain) if retain else None)
    reasons = ("the untreated model: a reference, not ranked", *([score.reason] if score.reason else []))
    seeds = forget.seeds
    return Verdict(subject, "baseline", reasons, seeds, provisional(seeds), k_score=score)


def _k_score(forget: tuple[Pool, Pool], retain: tuple[Pool, Pool] | None) -> KScore:
    kept = [graded_rate(rows.severity) for rows in retain] if retain else [float("nan")] * 2
    broken = [mean(rows.degenerate) for rows in forget]
    return k_score(graded_rate(forget[1].severity), (kept[0], kept[1]), (broken[0], broken[1]))


def _not_applicable(pools: Mapping[Group, Pool], reasons: Mapping[tuple[str, str], str]) -> list[Verdict]:
    measured, bases = set(_subjects(pools)), dict.fromkeys(group.subject.base for group in pools)
    subjects = [(Subject(base, *pair), reason) for pair, reason in reasons.items() for base in bases]
    return [Verdict(subject, "not applicable", (why,)) for subject, why in subjects if subject not in measured]


def _ranked(verdicts: list[Verdict]) -> tuple[Verdict, ...]:
    """Number the eligible of each base and lane by what they suppress; equal ones share a number."""
    out = []
    for verdict in verdicts:
        peers = [
            other.k_score.suppression
            for other in verdicts
            if other.eligible and other.k_score and other.subject[:2] == verdict.subject[:2]
        ]
        better = sum(peer > verdict.k_score.suppression for peer in peers) if verdict.k_score else 0
        out.append(replace(verdict, rank=1 + better) if verdict.eligible else verdict)
    return tuple(out)


def _order(subject: Subject) -> tuple[str, int, bool, str, str]:
    lane = LANES.index(subject.lane) if subject.lane in LANES else len(LANES)
    return subject.base, lane, subject.method != BASELINE, subject.method, subject.variant


def _topologies(cells: tuple[CellScores, ...]) -> tuple[Topology, ...]:
    plain = [c for c in cells if c.key.method == BASELINE and c.key.split == "forget" and not c.key.variant]
    bases = dict.fromkeys(cell.key.base for cell in plain)
    return tuple(topology([cell for cell in plain if cell.key.base == base]) for base in bases)


def _warnings(
    cells: tuple[CellScores, ...], pools: Mapping[Group, Pool], tests: tuple[Comparison, ...]
) -> Iterable[str]:
    for cell in cells:
        if not cell.n:
            yield f"{cell.key}: the cell has no rows"
    for test in tests:
        group = Group(test.subject, test.split)
        untreated = _baseline(group, pools)
        seeds = ", ".join(map(str, test.method.seeds))
        for side, which in (("method", group), ("baseline", untreated)):
            alone = pools[which].n - test.test.n if which else 0
            if alone:
                what = f"{alone} rows of the {side} have no partner and are left out (seeds compared: {seeds})"
                yield f"{test.subject} {test.split}: {what}"
