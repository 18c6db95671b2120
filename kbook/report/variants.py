"""Cells that differ in one thing only, as a table: rates and verdicts of each variant, in the order given."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from kbook.report.rates import rate_frame
from kbook.report.tables import ABSENT, in_lane_order
from kbook.scoring.panel import BASELINE, Panel, Verdict

LEAK, KEPT, BROKEN, SCORE = "leak on forget", "leak on retain", "degenerate", "K-Score"
RATES = {LEAK: ("forget", "or_all"), KEPT: ("retain", "or_all"), BROKEN: ("forget", "degeneration")}
"""All are of OR(all), not graded: the paper's figures are."""
UNTREATED = "untreated"


def variant_rates(panel: Panel, what: str, names: Mapping[str, Any]) -> pd.DataFrame:
    """Rates with their intervals: one row a lane, method, variant and quantity, the untreated agent left out.

    Args:
        panel: cells that differ in their variant.
        what: a name for what differs, in the words of the reader.
        names: variant → what it has of it.
    """
    frame = rate_frame(panel, RATES)
    frame = frame[frame["variant"].isin(list(names)) & (frame["method"] != BASELINE)]
    frame = frame.assign(**{what: frame["variant"].map(names)})
    return _in_order(frame, names)[["lane", "method", what, "quantity", "share", "low", "high", "n"]]


def variant_frame(panel: Panel, what: str, names: Mapping[str, Any]) -> pd.DataFrame:
    """One row a lane, method and variant: OR(all) on both splits, degenerate traces, verdicts, K-Score.

    The untreated agent of each lane comes first. What was not measured is missing.

    Args:
        panel, what, names: as in `variant_rates`.
    """
    place = ["lane", "method", "variant"]
    rates = rate_frame(panel, RATES).pivot(index=place, columns="quantity", values="share").reindex(columns=list(RATES))
    verdicts = pd.DataFrame([_verdict(v) for v in panel.verdicts if v.subject.variant in ("", *names)])
    frame = verdicts.join(rates, on=place)
    untreated = frame["method"] == BASELINE
    frame = frame[untreated | frame["variant"].isin(list(names))]
    frame = frame.assign(**{what: frame["variant"].map(names).where(~untreated, UNTREATED).astype(object)})
    ordered = _in_order(frame.sort_values("method", key=lambda m: m != BASELINE, kind="stable"), names)
    return ordered[["lane", "method", what, *RATES, "K-class", "selectivity", SCORE]]


def _in_order(frame: pd.DataFrame, names: Mapping[str, Any]) -> pd.DataFrame:
    order = {variant: place for place, variant in enumerate(names)}
    keys = [(method != BASELINE, order.get(v, -1)) for method, v in zip(frame["method"], frame["variant"], strict=True)]
    return in_lane_order(frame.iloc[sorted(range(len(frame)), key=keys.__getitem__)])


def _verdict(verdict: Verdict) -> dict[str, Any]:
    label, kept, score = verdict.k_class, verdict.selectivity, verdict.k_score
    reference = UNTREATED if verdict.subject.method == BASELINE else verdict.status
    return {
        **verdict.subject._asdict(),
        "K-class": label.text if label else "reference" if reference == UNTREATED else reference,
        "selectivity": kept.text if kept else ABSENT,
        SCORE: score.value if score else float("nan"),
    }
