"""Gates: what a lane must show before it is judged, and a method before it is ranked."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kbook.keys import CHANNELS
from kbook.scoring.cells import COLLAPSE, Pool, channel_severity, collapsed, graded_rate, mean, or_all

LEAST_OR = 0.10
LEAST_ANSWER_SEVERITY = 0.10
LEAST_PRESERVATION = 0.80
MOST_ADDED_DEGENERATION = 0.20

_ANSWER = CHANNELS.index("answer")


@dataclass(frozen=True)
class Gate:
    """One condition with all that is needed to check it by hand.

    `passed` is None when the figure could not be had.
    """

    id: str
    value: float
    threshold: float
    n: int
    denominator: str
    passed: bool | None
    reason: str


def validity(baseline: Pool) -> tuple[Gate, ...]:
    """Ask whether the untreated baseline of a lane shows enough to be forgotten.

    Args:
        baseline: the forget rows of the untreated model.

    Shape: n rows → two gates.
    Unit: fractions in [0, 1].
    Missing: rows without answer evidence leave the second figure; with none at all the gate fails.
    Source: protocol A §3, validity gate.
    """
    evidence = int(np.sum(~np.isnan(baseline.severity[:, _ANSWER])))
    answer = float(channel_severity(baseline.severity)[_ANSWER])
    return (
        _at_least("baseline_or_all", or_all(baseline.cer), LEAST_OR, baseline.n, "all forget rows of the baseline"),
        _at_least(
            "baseline_answer_severity",
            answer if evidence else 0.0,
            LEAST_ANSWER_SEVERITY,
            evidence,
            "forget rows of the baseline with answer evidence",
        ),
    )


def eligibility(forget: tuple[Pool, Pool], retain: tuple[Pool, Pool] | None) -> tuple[Gate, ...]:
    """Ask whether a method may be ranked at all; the baseline is not asked.

    Args:
        forget: matched forget rows, (baseline, method).
        retain: matched retain rows, or None when there are none.

    Shape: pairs of pools with the same rows → three gates.
    Unit: fractions in [0, 1].
    Missing: without retain rows preservation is not known, and collapse is judged on forget alone.
    Source: protocol A §3, eligibility gate.
    """
    rates = [mean(pool.degenerate) for pool in forget]
    added = max(0.0, rates[1] - rates[0])
    kept = retain_preservation(*(graded_rate(pool.severity) for pool in retain)) if retain else float("nan")
    n = retain[1].n if retain else 0
    return (
        _at_least("retain_preservation", kept, LEAST_PRESERVATION, n, "matched retain rows"),
        _at_most("added_degeneration", added, MOST_ADDED_DEGENERATION, forget[1].n, "matched forget rows"),
        _collapse(forget[1], retain[1] if retain else None),
    )


def retain_preservation(graded_none: float, graded_method: float) -> float:
    """How much of the retain set's graded rate is still there.

    Shape: two numbers → one.
    Unit: fraction, above 1 where the method shows more than the baseline.
    Missing: nan when the baseline shows nothing on retain.
    Source: protocol A §3, eligibility gate.
    """
    return graded_method / graded_none if graded_none > 0 else float("nan")


def passed(gates: tuple[Gate, ...]) -> bool | None:
    """Whether all gates are passed; None when none is failed but one could not be judged."""
    if any(gate.passed is False for gate in gates):
        return False
    return None if any(gate.passed is None for gate in gates) else True


def _collapse(forget: Pool, retain: Pool | None) -> Gate:
    rates = {"forget": mean(forget.degenerate), "retain": mean(retain.degenerate) if retain else float("nan")}
    worse = "retain" if rates["retain"] > rates["forget"] else "forget"
    n = retain.n if retain and worse == "retain" else forget.n
    down = collapsed(*rates.values())
    side = "not below" if down else "below"
    reason = f"degeneration on {worse} {rates[worse]:.3f} is {side} {COLLAPSE:.2f} (n = {n})"
    return Gate("terminal_collapse", rates[worse], COLLAPSE, n, f"matched {worse} rows", not down, reason)


def _at_least(name: str, value: float, threshold: float, n: int, denominator: str) -> Gate:
    return _gate(name, value, threshold, n, denominator, value >= threshold, "≥")


def _at_most(name: str, value: float, threshold: float, n: int, denominator: str) -> Gate:
    return _gate(name, value, threshold, n, denominator, value <= threshold, "≤")


def _gate(name: str, value: float, threshold: float, n: int, denominator: str, holds: bool, sign: str) -> Gate:
    what = name.replace("_", " ").replace("or all", "OR(all)")
    if np.isnan(value):
        return Gate(name, value, threshold, n, denominator, None, f"{what} is not known (n = {n} {denominator})")
    verb = "meets" if holds else "misses"
    reason = f"{what} {value:.3f} {verb} {sign} {threshold:.2f} (n = {n} {denominator})"
    return Gate(name, value, threshold, n, denominator, bool(holds), reason)
