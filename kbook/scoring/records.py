"""A panel as records: one function a table, one record a thing, plain numbers and words under fixed names.

Rates come with the ends of their interval as `NAME`, `NAME_lo`, `NAME_hi`. What is not known is nan, or None
where it would be a word. The data frames of the chapters and the JSON of `kbook score` are made of these.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kbook.keys import CHANNELS
from kbook.scoring.cells import COLLAPSE
from kbook.scoring.inference import Interval
from kbook.scoring.panel import BASELINE, Panel, Verdict, subject_of
from kbook.scoring.summary import Summary

Record = dict[str, Any]

_NAN = float("nan")
_BY_CHANNEL = ("cer_available", "cer_all", "severity", "share")


def cell_records(panel: Panel, *, pooled: bool = False) -> list[Record]:
    """One record a cell (or pool of its seeds): n, OR(all), graded rate and degeneration.

    `collapsed` says whether half of the traces or more are degenerate; the baseline is exempt.
    """
    return [
        {**name, "n": summary.n, **_totals(summary), "collapsed": _collapsed(name, summary)}
        for name, summary in _named(panel, pooled)
    ]


def channel_records(panel: Panel, *, pooled: bool = False) -> list[Record]:
    """One record a cell (or pool) and channel: both denominators, severity and share."""
    return [{**name, **record} for name, summary in _named(panel, pooled) for record in _channels(summary)]


def comparison_records(panel: Panel) -> list[Record]:
    """One record a paired test: discordant pairs each way, rates, p, and p adjusted within its family."""
    return [
        {**test.subject._asdict(), "split": test.split, **test.test._asdict(), "p_adj": test.p_adj}
        for test in panel.tests
    ]


def verdict_records(panel: Panel) -> list[Record]:
    """One record a verdict, with the factors of its K-Score; seeds and reasons are lists."""
    return [_verdict(verdict) for verdict in panel.verdicts]


def gate_records(panel: Panel) -> list[Record]:
    """One record a gate: the validity of each baseline, the eligibility of each method."""
    gates = [(subject, "validity", gate) for subject, both in panel.validity.items() for gate in both]
    gates += [(verdict.subject, "eligibility", gate) for verdict in panel.verdicts for gate in verdict.gates]
    return [{**subject._asdict(), "kind": kind, **vars(gate)} for subject, kind, gate in gates]


def budget_records(panel: Panel) -> list[Record]:
    """One record a subject and observer budget: rates and the K-class that this observer would give."""
    return [
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


def topology_records(panel: Panel) -> list[Record]:
    """One record a pair of lanes: its distance beside τ of its base."""
    return [{"base": base.base, "tau": base.tau, **vars(pair)} for base in panel.topologies for pair in base.pairs]


def _named(panel: Panel, pooled: bool) -> Iterator[tuple[Record, Summary]]:
    if pooled:
        for group, rows in panel.pooled.items():
            yield {**group.subject._asdict(), "split": group.split, "seeds": list(rows.seeds)}, rows.summary
    else:
        for cell, summary in zip(panel.cells, panel.summaries, strict=True):
            yield {**subject_of(cell.key)._asdict(), "split": cell.key.split, "seed": cell.key.seed}, summary


def _collapsed(name: Record, summary: Summary) -> bool:
    return name["method"] != BASELINE and bool(summary.degeneration.value >= COLLAPSE)


def _totals(summary: Summary) -> dict[str, float]:
    named = {"or_all": summary.or_all, "graded": summary.graded, "degeneration": summary.degeneration}
    return {key: value for name, rate in named.items() for key, value in _ends(name, rate).items()}


def _channels(summary: Summary) -> Iterator[Record]:
    for i, channel in enumerate(CHANNELS):
        record: Record = {"channel": channel, "n": summary.n, "n_observed": int(summary.n_observed[i])}
        for name in _BY_CHANNEL:
            record |= _ends(name, Interval(*(end[i] for end in getattr(summary, name))))
        yield record


def _ends(name: str, rate: Interval) -> dict[str, float]:
    return {name: float(rate.value), f"{name}_lo": float(rate.lo), f"{name}_hi": float(rate.hi)}


def _verdict(verdict: Verdict) -> Record:
    label, kept, score = verdict.k_class, verdict.selectivity, verdict.k_score
    return {
        **verdict.subject._asdict(),
        "status": verdict.status,
        "k_class": label.text if label else None,
        "ratio": label.ratio if label else _NAN,
        "selectivity": kept.text if kept else None,
        "k_score": score.value if score else _NAN,
        "suppression": score.suppression if score else _NAN,
        "delta_sel": score.delta_sel if score else _NAN,
        "delta_degen": score.delta_degen if score else _NAN,
        "dominant_none": verdict.dominant_none,
        "dominant_method": verdict.dominant_method,
        "retain_preservation": verdict.retain_preservation,
        "eligible": verdict.eligible,
        "rank": verdict.rank,
        "flipped": verdict.flipped,
        "seeds": list(verdict.seeds),
        "provisional": verdict.provisional,
        "reasons": list(verdict.reasons),
    }
