"""Tables and figure of the chapter on settings: what was tried, what was chosen, and whether the profile runs it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import pandas as pd

from kbook.corpora.people import Corpus
from kbook.keys import SPLITS
from kbook.report import figures
from kbook.report.figures import Plot
from kbook.report.text import visible
from kbook.scoring.selection import CEILING, Candidate, Sweep, choose, in_words

LEAK, KEPT, COST, BROKEN = "leak on forget", "leak on retain", "retain cost", "degenerate"
UNTREATED = "untreated"
STATES = ("untreated", "over the ceiling", "eligible", "chosen")
_COLUMNS = 4
_LOOKS = {
    "untreated": ("#000000", "+"),
    "over the ceiling": ("#D55E00", "X"),
    "eligible": ("#56B4E9", "o"),
    "chosen": ("#0072B2", "D"),
}


def candidate_frame(sweeps: Sequence[Sweep]) -> pd.DataFrame:
    """Every candidate of every method, the untreated agent in the first row of each.

    Unit: rates and cost are fractions; the cost is what the graded retain rate lost; seconds are of the fit and the
    agent together.
    Missing: `fit` is empty where training reached its end, or where nothing is trained.
    """
    return pd.DataFrame([row for sweep in sweeps for row in _rows(sweep)])


def _rows(sweep: Sweep) -> list[dict[str, Any]]:
    choice = sweep.choice
    states = ["eligible" if allowed else "over the ceiling" for allowed in choice.eligible]
    states[choice.index] = "chosen"
    rows = [_row(sweep, candidate) for candidate in (sweep.untreated, *sweep.candidates)]
    seconds = [run.manifest.seconds for run in sweep.runs] or [float("nan")] * len(rows)
    return [
        {"method": sweep.method, **row, "seconds": took, "state": state}
        for row, took, state in zip(rows, seconds, (UNTREATED, *states), strict=True)
    ]


def _row(sweep: Sweep, candidate: Candidate) -> dict[str, Any]:
    record = candidate.record
    return {
        "settings": candidate.label,
        LEAK: candidate.rates.forget,
        KEPT: candidate.rates.retain,
        COST: sweep.untreated.rates.retain - candidate.rates.retain,
        BROKEN: record["forget"]["degenerate"],
        "queries": f"{record['forget']['n']} + {record['retain']['n']}",
        "fit": _stopped(record["facts"]),
    }


def _stopped(facts: Any) -> str:
    return str(facts.get("stopped", "")) if isinstance(facts, Mapping) else ""


def choice_frame(sweeps: Sequence[Sweep]) -> pd.DataFrame:
    """One row a method: what was chosen, what it costs, what the profile runs, and whether the two agree."""
    rows = []
    for sweep in sweeps:
        choice = sweep.choice
        rows.append(
            {
                "method": sweep.method,
                "chosen": sweep.chosen.label,
                LEAK: sweep.chosen.rates.forget,
                COST: sweep.untreated.rates.retain - sweep.chosen.rates.retain,
                "eligible": f"{sum(choice.eligible)} of {len(choice.eligible)}",
                "by the rule": "none eligible: highest retain" if choice.fallback else "lowest leak",
                "the profile runs": in_words(sweep.in_profile),
                "agrees": "yes" if sweep.agrees else "no",
            }
        )
    return pd.DataFrame(rows)


@figures.look()
def planes(frame: pd.DataFrame, ceiling: float = CEILING) -> Plot:
    """Draw cost against leak of every candidate, one small panel a method; the ceiling is a line.

    Args:
        frame: as `candidate_frame` gives it.
        ceiling: largest cost of an eligible candidate.
    """
    methods = list(frame["method"].drop_duplicates())
    n_columns = min(_COLUMNS, len(methods))
    n_rows = -(-len(methods) // n_columns)
    figure, axes = figures.canvas(n_rows, n_columns, height=0.9 + 1.35 * n_rows)
    low, high = min(-0.1, float(frame[COST].min()) - 0.05), max(0.2, float(frame[COST].max()) + 0.05)
    for axis, method in zip(axes.flat, methods, strict=False):
        axis.axvline(ceiling, color="#666666", lw=0.8, ls="--")
        for state, (color, marker) in _LOOKS.items():
            part = frame[(frame["method"] == method) & (frame["state"] == state)]
            axis.plot(part[COST], part[LEAK], marker, color=color, label=state, ls="none")
        axis.set(title=visible(method), xlim=(low, high), ylim=figures.FRACTIONS)
    for axis in axes[:, 0]:
        axis.set_ylabel(LEAK)
    for axis in axes.flat[max(0, len(methods) - n_columns) : len(methods)]:
        axis.set_xlabel(COST)
    for axis in axes.flat[len(methods) :]:
        axis.set_axis_off()
    handles, labels = axes.flat[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels))
    return Plot(figure, frame[["method", "settings", COST, LEAK, "state"]].reset_index(drop=True))


def half_frame(halves: Corpus) -> pd.DataFrame:
    """Who takes part in a sweep: the parts of both fitting pools, and nobody else.

    Args:
        halves: as `kbook.sweeps.halved` cuts them.
    """
    uses = {"fit": "candidates are fitted on them", "eval": "asked about: decide between candidates"}
    rows = []
    for split, (part, use) in product(SPLITS, uses.items()):
        people = halves.pool(split, part)
        span = f"{people[0].id} to {people[-1].id}"
        queries = len(halves.queries(split, part)) if part == "eval" else 0
        rows.append({"fitting pool": split, "people": len(people), "ids": span, "queries": queries, "use": use})
    return pd.DataFrame(rows)


def grouped(frame: pd.DataFrame, families: Mapping[str, str]) -> dict[str, pd.DataFrame]:
    """Candidates without the untreated agent, by where their method acts: in the weights, or at run time.

    Args:
        frame: as `candidate_frame` gives it.
        families: method → place of action.
    """
    tried = frame[frame["state"] != UNTREATED]
    place = tried["method"].map(families).map(lambda family: "weights" if family == "weights" else "run-time")
    return {name: part.reset_index(drop=True) for name, part in tried.groupby(place, sort=False)}


def changes_in_words(sweeps: Sequence[Sweep], ceiling: float) -> str:
    """Which methods would be given other settings under another ceiling."""
    found = []
    for sweep in sweeps:
        other = choose(sweep.untreated.rates, [c.rates for c in sweep.candidates], ceiling)
        if other.index != sweep.choice.index:
            found.append(f"{sweep.method} ({sweep.candidates[other.index].label})")
    return ", ".join(found) or "none"
