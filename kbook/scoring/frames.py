"""A panel as tidy tables: one function a table, one row a thing, plain numbers and words in the columns."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pandas as pd

from kbook.keys import CHANNELS
from kbook.scoring.cells import COLLAPSE
from kbook.scoring.inference import Interval
from kbook.scoring.panel import BASELINE, Panel, Verdict, subject_of
from kbook.scoring.summary import Summary


def cell_frame(panel: Panel, *, pooled: bool = False) -> pd.DataFrame:
    """One row a cell (or pool of its seeds): n, OR(all), graded rate and degeneration with intervals.

    `collapsed` says whether half of the traces or more are degenerate; the baseline is exempt.
    """
    rows = [
        {**name, "n": summary.n, **_totals(summary), "collapsed": _collapsed(name, summary)}
        for name, summary in _named(panel, pooled)
    ]
    return pd.DataFrame(rows)


def channel_frame(panel: Panel, *, pooled: bool = False) -> pd.DataFrame:
    """One row a cell (or pool) and channel: both denominators, severity and share with intervals."""
    rows = [{**name, **row} for name, summary in _named(panel, pooled) for row in _channels(summary)]
    return pd.DataFrame(rows)


def comparison_frame(panel: Panel) -> pd.DataFrame:
    """One row a paired test: discordant pairs each way, rates, p, and p adjusted within its family."""
    rows = [
        {**test.subject._asdict(), "split": test.split, **test.test._asdict(), "p_adj": test.p_adj}
        for test in panel.tests
    ]
    return pd.DataFrame(rows)


def verdict_frame(panel: Panel) -> pd.DataFrame:
    """One row a verdict, with the factors of its K-Score and its reasons in words."""
    return pd.DataFrame([_verdict(verdict) for verdict in panel.verdicts])


def gate_frame(panel: Panel) -> pd.DataFrame:
    """One row a gate: the validity of each baseline, the eligibility of each method."""
    gates = [(subject, "validity", gate) for subject, both in panel.validity.items() for gate in both]
    gates += [(verdict.subject, "eligibility", gate) for verdict in panel.verdicts for gate in verdict.gates]
    return pd.DataFrame([{**subject._asdict(), "kind": kind, **vars(gate)} for subject, kind, gate in gates])


def budget_frame(panel: Panel) -> pd.DataFrame:
    """One row a subject and observer budget: rates and the K-class that this observer would give."""
    rows = [
        {
            **seen.subject._asdict(),
            "budget": seen.budget,
            "or_none": seen.or_none,
            "or_method": seen.or_method,
            "p_adj": seen.p_adj,
            "k_class": seen.k_class.text,
        }
        for seen in panel.budgets
    ]
    return pd.DataFrame(rows)


def topology_frame(panel: Panel) -> pd.DataFrame:
    """One row a pair of lanes: its distance beside τ of its base."""
    rows = [{"base": base.base, "tau": base.tau, **vars(pair)} for base in panel.topologies for pair in base.pairs]
    return pd.DataFrame(rows)


def _named(panel: Panel, pooled: bool) -> Iterator[tuple[dict[str, Any], Summary]]:
    if pooled:
        for group, rows in panel.pooled.items():
            seeds = ", ".join(map(str, rows.seeds))
            yield {**group.subject._asdict(), "split": group.split, "seeds": seeds}, rows.summary
    else:
        for cell, summary in zip(panel.cells, panel.summaries, strict=True):
            yield {**subject_of(cell.key)._asdict(), "split": cell.key.split, "seed": cell.key.seed}, summary


def _collapsed(name: dict[str, Any], summary: Summary) -> bool:
    return name["method"] != BASELINE and bool(summary.degeneration.value >= COLLAPSE)


def _totals(summary: Summary) -> dict[str, float]:
    named = {"or_all": summary.or_all, "graded": summary.graded, "degeneration": summary.degeneration}
    return {key: value for name, rate in named.items() for key, value in _ends(name, rate).items()}


def _channels(summary: Summary) -> Iterator[dict[str, Any]]:
    for i, channel in enumerate(CHANNELS):
        row: dict[str, Any] = {"channel": channel, "n": summary.n, "n_observed": int(summary.n_observed[i])}
        for name in ("cer_available", "cer_all", "severity", "share"):
            row |= _ends(name, Interval(*(end[i] for end in getattr(summary, name))))
        yield row


def _ends(name: str, rate: Interval) -> dict[str, float]:
    return {name: float(rate.value), f"{name}_lo": float(rate.lo), f"{name}_hi": float(rate.hi)}


def _verdict(verdict: Verdict) -> dict[str, Any]:
    label, kept, score = verdict.k_class, verdict.selectivity, verdict.k_score
    nan = float("nan")
    return {
        **verdict.subject._asdict(),
        "status": verdict.status,
        "k_class": label.text if label else None,
        "ratio": label.ratio if label else nan,
        "selectivity": kept.text if kept else None,
        "k_score": score.value if score else nan,
        "suppression": score.suppression if score else nan,
        "delta_sel": score.delta_sel if score else nan,
        "delta_degen": score.delta_degen if score else nan,
        "dominant_none": verdict.dominant_none,
        "dominant_method": verdict.dominant_method,
        "retain_preservation": verdict.retain_preservation,
        "eligible": verdict.eligible,
        "rank": verdict.rank,
        "flipped": verdict.flipped,
        "seeds": ", ".join(map(str, verdict.seeds)),
        "provisional": verdict.provisional,
        "reasons": "; ".join(verdict.reasons),
    }
