"""Observer budgets: what an observer sees who reads only some of the channels."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from kbook.keys import CHANNELS
from kbook.scoring.cells import Floats, Pool, or_all

BUDGETS = {
    "A1": ("answer",),
    "A2": ("answer", "summary"),
    "A3": ("answer", "summary", "cot"),
    "A4": ("answer", "summary", "cot", "tool", "tool_wide"),
    "A5": CHANNELS,
}


def observe(pool: Pool, budget: str) -> Pool:
    """The same rows as an observer with this budget sees them: the other channels are not observed.

    Shape: unchanged.
    Missing: channels outside the budget become nan.
    Source: protocol A §3, observer budgets.
    """
    hidden = [channel not in BUDGETS[budget] for channel in CHANNELS]
    cer, severity = (np.where(hidden, np.nan, scores) for scores in (pool.cer, pool.severity))
    return replace(pool, cer=cer, severity=severity)


def budget_rates(pool: Pool) -> Floats:
    """OR over the channels of each budget, A1 to A5; never falls from one to the next.

    Shape: n rows → (5,).
    Unit: fractions in [0, 1].
    Missing: as `cells.or_all`.
    Source: protocol A §3, observer budgets; Figure 5 of the paper.
    """
    return np.array([or_all(observe(pool, budget).cer) for budget in BUDGETS])
