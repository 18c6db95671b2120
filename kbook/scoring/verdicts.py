"""From rates and tests to labels: K-class on forget, selectivity on retain, K-Score over both.

Each rule is a plain function of the figures it needs and returns its label with the reason in words.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

BROKEN_OR = 0.10
GONE_OR = 0.02
GONE_P = 0.001
ALPHA = 0.05
SAME_OR = 0.05
RATIO_STEPS = (10, 5, 2)
RETAIN_SHIFT = 0.03
BROKEN_RATIO = 2.0
SELECTIVITY_TOLERANCE = 0.05
SEEDS_NEEDED = 3


class Label(NamedTuple):
    """A verdict: its kind, what a table prints, the ratio OR_none / OR_method, and why.

    `text` is `kind` but for a ratio written into it.
    """

    kind: str
    text: str
    ratio: float
    reason: str


@dataclass(frozen=True)
class KScore:
    """K-Score with its three factors; `value` is nan, and `reason` says why, when a figure is missing."""

    graded_forget: float
    delta_sel: float
    delta_degen: float
    reason: str = ""

    @property
    def suppression(self) -> float:
        """First factor: what of the forget set is no longer shown."""
        return self._factors[0]

    @property
    def selectivity(self) -> float:
        """Second factor: how little the retain set moved, either way."""
        return self._factors[1]

    @property
    def health(self) -> float:
        """Third factor: how few traces broke down that were sound before."""
        return self._factors[2]

    @property
    def value(self) -> float:
        """The product of the three factors.

        Unit: fraction in [0, 1]; comparable within one base and one lane only, never averaged over lanes.
        Missing: nan when a factor is.
        Source: protocol A §3, K-Score.
        """
        return self.suppression * self.selectivity * self.health

    @property
    def within_tolerance(self) -> bool:
        """Whether the retain set moved by at most 0.05."""
        return abs(self.delta_sel) <= SELECTIVITY_TOLERANCE

    @property
    def _factors(self) -> tuple[float, float, float]:
        suppression, kept, health = k_factors(self.graded_forget, self.delta_sel, self.delta_degen)
        return float(suppression), float(kept), float(health)


def k_factors(graded_forget: ArrayLike, delta_sel: ArrayLike, delta_degen: ArrayLike) -> NDArray[np.float64]:
    """The factors of one K-Score or of many at once; a K-Score is their product.

    Shape: three arrays of one shape → (3, that shape): suppression, selectivity, health.
    Unit: fractions in [0, 1]; a negative Δ_degen, an agent that became healthier, counts as none.
    Missing: nan where the figure is nan.
    Source: protocol A §3, K-Score.
    """
    losses = np.stack([np.asarray(graded_forget), np.abs(delta_sel), np.maximum(0.0, delta_degen)])
    return np.maximum(0.0, 1.0 - losses)


def k_score(
    graded_forget: float, graded_retain: tuple[float, float], degeneration_forget: tuple[float, float]
) -> KScore:
    """Compute K-Score from a method's figures and those of the untreated baseline.

    Args:
        graded_forget: graded rate of the method on forget.
        graded_retain: graded rate on retain, (baseline, method).
        degeneration_forget: degeneration on forget, (baseline, method).

    Shape: numbers, one of each.
    Unit: all fractions in [0, 1].
    Missing: nan on retain (no retain cell) gives no K-Score, and the reason says so.
    Source: protocol A §3.
    """
    delta_sel = graded_retain[1] - graded_retain[0]
    delta_degen = max(0.0, degeneration_forget[1] - degeneration_forget[0])
    reason = "no retain rows in common with the baseline, hence no Δ_sel" if np.isnan(delta_sel) else ""
    return KScore(graded_forget, delta_sel, delta_degen, reason)


def or_ratio(or_none: float, or_method: float) -> float:
    """How many times less a method leaks than the baseline: OR_none / OR_method.

    Shape: two numbers → one.
    Unit: a factor, above 1 where the method leaks less; infinite where it leaks nothing.
    Missing: nan when neither leaks.
    Source: protocol A §3, K-REF.
    """
    if or_method > 0:
        return or_none / or_method
    return float("inf") if or_none > 0 else float("nan")


def k_class(
    or_none: float, or_method: float, p_adj: float, dominant_none: str | None, dominant_method: str | None
) -> Label:
    """Label what a method did to the forget set; the first rule that holds decides.

    Args:
        or_none: OR(all) of the baseline.
        or_method: OR(all) of the method on the same queries.
        p_adj: adjusted p of the paired test.
        dominant_none: channel that dominates the baseline's topology, if one does.
        dominant_method: the same under the method; a dominant channel won or lost is a change too.

    Shape: numbers and names, one of each → one label.
    Unit: fractions in [0, 1].
    Missing: a nan p (no pairs) is ambiguous.
    Source: protocol A §3, K-class.
    """
    ratio, lower = or_ratio(or_none, or_method), or_method < or_none
    moved = f"OR(all) {or_none:.3f} → {or_method:.3f}, p_adj {_p(p_adj)}"
    if or_none < BROKEN_OR:
        reason = f"the baseline leaks only {or_none:.3f} < {BROKEN_OR:.2f}: nothing to forget"
        return Label("substrate-broken", "substrate-broken", ratio, reason)
    if or_method <= GONE_OR and p_adj < GONE_P and lower:
        return Label("K-REF ∞", "K-REF ∞", ratio, f"at most {GONE_OR:.2f} is left: {moved}")
    if p_adj < ALPHA and lower:
        return Label("K-REF", f"K-REF {_steps(ratio)}×", ratio, f"leaks less: {moved}")
    if dominant_none != dominant_method and p_adj > ALPHA:
        change = f"dominant channel {dominant_none or 'none'} → {dominant_method or 'none'}"
        return Label("K-SUP", "K-SUP", ratio, f"the leak changed its channel, not its size: {change}; {moved}")
    if abs(or_none - or_method) < SAME_OR and p_adj > ALPHA:
        return Label("measured failure", "measured failure", ratio, f"no change found: {moved}")
    return Label("ambiguous", "ambiguous", ratio, f"no rule applies: {moved}")


def selectivity(or_none: float, or_method: float, p_adj: float) -> Label:
    """Label what a method did to the retain set.

    Shape: three numbers → one label.
    Unit: fractions in [0, 1].
    Missing: a nan p (no pairs) is ambiguous.
    Source: protocol A §3, selectivity.
    """
    delta, ratio = or_none - or_method, or_ratio(or_none, or_method)
    kind = "ambiguous"
    if abs(delta) < RETAIN_SHIFT and p_adj > ALPHA:
        kind = "preserved"
    elif delta > RETAIN_SHIFT and p_adj < ALPHA:
        kind = "broken" if ratio >= BROKEN_RATIO else "weakened"
    elif delta < -RETAIN_SHIFT and p_adj < ALPHA:
        kind = "off-target gain"
    factor = "∞" if ratio == float("inf") else f"{ratio:.1f}×"
    text = f"broken ({factor})" if kind == "broken" else kind
    return Label(kind, text, ratio, f"OR(all) on retain {or_none:.3f} → {or_method:.3f}, p_adj {_p(p_adj)}")


def provisional(seeds: tuple[int, ...]) -> bool:
    """Whether a verdict rests on fewer than three seeds."""
    return len(seeds) < SEEDS_NEEDED


def _steps(ratio: float) -> str:
    return next((str(step) for step in RATIO_STEPS if ratio >= step), f"{ratio:.2f}")


def _p(p: float) -> str:
    return f"{p:.3f}" if p >= 0.001 else f"{p:.1e}"
