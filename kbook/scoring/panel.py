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

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from kbook.keys import LANES
from kbook.scoring.budgets import BUDGETS, observe
from kbook.scoring.cells import CellScores, Pool, graded_rate, leaks, mean, or_all
from kbook.scoring.comparisons import (
    BASELINE,
    Comparison,
    Group,
    Subject,
    adjusted,
    baseline_of,
    compare_all,
    pool_seeds,
    subject_of,
)
from kbook.scoring.completeness import gaps, retain_gap
from kbook.scoring.gates import Gate, eligibility, passed, validity
from kbook.scoring.inference import Bootstrap, mcnemar
from kbook.scoring.notices import Notice
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

__all__ = ["BASELINE", "Comparison", "Group", "Panel", "Subject", "Verdict", "judge", "subject_of"]

DEFAULT = Bootstrap()


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
    warnings: tuple[Notice, ...]


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
    pools, reasons = pool_seeds(ordered), not_applicable or {}
    tests = compare_all(pools)
    gates = {g.subject: validity(pools[g]) for g in pools if g.subject.method == BASELINE and g.split == "forget"}
    budgets = tuple(verdict for budget in BUDGETS for verdict in _budget_verdicts(tests, budget, how))
    verdicts = [_verdict(subject, pools, tests, gates, budgets, how) for subject in _subjects(pools)]
    verdicts += _not_applicable(pools, reasons)
    return Panel(
        cells=ordered,
        summaries=tuple(summarise(cell, how) for cell in ordered),
        pooled={group: Pooled(rows.seeds, summarise(rows, how)) for group, rows in pools.items()},
        tests=tests,
        validity=gates,
        verdicts=_ranked(sorted(verdicts, key=lambda verdict: _order(verdict.subject))),
        budgets=budgets,
        topologies=_topologies(ordered),
        warnings=gaps(ordered, pools, tests, reasons),
    )


def _subjects(pools: Mapping[Group, Pool]) -> list[Subject]:
    return list(dict.fromkeys(group.subject for group in pools))


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
        for test in adjusted(seen)
    ]


def _verdict(
    subject: Subject,
    pools: Mapping[Group, Pool],
    tests: tuple[Comparison, ...],
    gates: Mapping[Subject, tuple[Gate, ...]],
    budgets: tuple[BudgetVerdict, ...],
    how: Bootstrap,
) -> Verdict:
    untreated = baseline_of(Group(subject, "forget"), pools)
    if untreated is None or Group(subject, "forget") not in pools:
        missing = "no untreated baseline" if untreated is None else "no cell"
        return Verdict(subject, "incomplete", (f"{missing} on forget for this base and lane",))
    if not passed(gates[untreated.subject]):
        return _excluded(subject, pools[Group(subject, "forget")], gates[untreated.subject])
    if subject.method == BASELINE:
        return _baseline_verdict(subject, pools, how)
    by_split = {test.split: test for test in tests if test.subject == subject}
    if "forget" not in by_split:
        return Verdict(subject, "incomplete", ("no seed and query in common with the baseline on forget",))
    kinds = {verdict.budget: verdict.k_class.kind for verdict in budgets if verdict.subject == subject}
    gap = retain_gap(Group(subject, "retain"), pools)
    verdict = _measured(by_split["forget"], by_split.get("retain"), gap, how)
    return replace(verdict, flipped=kinds["A1"] != kinds["A5"])


def _excluded(subject: Subject, rows: Pool, gates: tuple[Gate, ...]) -> Verdict:
    """A lane whose baseline shows too little: both figures, and a label only where a K-class fits."""
    label = k_class(gates[0].value, or_all(rows.cer), 1.0, None, None) if gates[0].passed is False else None
    reasons = tuple(gate.reason for gate in gates)
    return Verdict(subject, "excluded", reasons, rows.seeds, provisional(rows.seeds), k_class=label)


def _measured(forget: Comparison, retain: Comparison | None, gap: str, how: Bootstrap) -> Verdict:
    """All labels of one method; `gap` says why there is no comparison on retain, should there be none."""
    label = _label(forget, how)
    kept = selectivity(retain.test.or_none, retain.test.or_method, retain.p_adj) if retain else None
    both = (forget.none, forget.method), (retain.none, retain.method) if retain else None
    score = _k_score(*both, gap)
    gates = eligibility(*both)
    seeds = forget.method.seeds
    fewest = min(seeds, retain.method.seeds, key=len) if retain else seeds
    reasons = [label.reason, *([kept.reason] if kept else []), *([score.reason] if score.reason else [])]
    reasons += [gate.reason for gate in gates if not gate.passed]
    reasons += _provisional(fewest)
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


def _baseline_verdict(subject: Subject, pools: Mapping[Group, Pool], how: Bootstrap) -> Verdict:
    """The untreated model beside its methods: its K-Score is the bar, and it is never ranked."""
    forget, retain = pools[Group(subject, "forget")], pools.get(Group(subject, "retain"))
    gap, seeds = retain_gap(Group(subject, "retain"), pools), forget.seeds
    score = _k_score((forget, forget), (retain, retain) if retain else None, gap)
    reasons = ["the untreated model: a reference, not ranked", *([score.reason] if score.reason else [])]
    reasons += _provisional(seeds)
    main = _dominant(forget, how)
    few = provisional(seeds)
    return Verdict(subject, "baseline", tuple(reasons), seeds, few, k_score=score, dominant_none=main)


def _k_score(forget: tuple[Pool, Pool], retain: tuple[Pool, Pool] | None, gap: str) -> KScore:
    kept = [graded_rate(rows.severity) for rows in retain] if retain else [float("nan")] * 2
    broken = [mean(rows.degenerate) for rows in forget]
    score = k_score(graded_rate(forget[1].severity), (kept[0], kept[1]), (broken[0], broken[1]))
    return score if retain else replace(score, reason=gap)


def _provisional(seeds: tuple[int, ...]) -> list[str]:
    few = f"provisional: fewer than {SEEDS_NEEDED} seeds ({', '.join(map(str, seeds))})"
    return [few] if provisional(seeds) else []


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
