"""Tables of the chapter on reruns: which rows differ when cells are computed again, and by how much rates move."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import combinations, takewhile
from typing import Any

import numpy as np
import pandas as pd

from kbook.keys import CellKey
from kbook.scoring.cells import leaks, mean, or_all, score_rows
from kbook.store import Run

SOURCE, QUERIES = "what is different", "other queries (another seed)"
MOVED = {"|ΔOR(all)|": "or_all", "|Δ degenerate|": "degenerate"}
DIFFER = "rows that differ"
NONE_DIFFERS = "no row differs"

_MARGIN = "margin"
_PLACE = [SOURCE, "lane", "method", "split", "seed"]
_SHOWN = (24, 72)
"""Characters shown before and after the place where two transcripts part."""

# ---- rows ----------------------------------------------------------------------------------------------------


def paired(first: Iterable[Run], again: Iterable[Run], *, across_methods: bool = False) -> list[tuple[Run, Run]]:
    """Runs of the same lane, method, split and seed, whatever their variant.

    Args:
        first, again: cells.
        across_methods: let the methods differ, as where `first` holds the untreated agent alone.
    """
    known = {_place(run, across_methods): run for run in first}
    places = [(_place(run, across_methods), run) for run in again]
    return [(known[place], run) for place, run in places if place in known]


def changed_rows(first: Run, again: Run) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Rows of the same query whose transcripts differ. The margin of a row is not part of its transcript."""
    return [(one, two) for one, two in _matched(first, again) if _said(one) != _said(two)]


def difference_frame(first: Sequence[Run], reruns: Mapping[str, Sequence[Run]], limit: int = 30) -> pd.DataFrame:
    """Rows that differ: where the transcripts part, whether the leak changed, and how near a tie the agent came.

    ``smallest lead`` is the smaller of the two rows': by how many logits the least certain token of the trajectory
    beat the next one. One row that says so where nothing differs.

    Missing: the lead is nan where it was not kept.
    """
    rows = [
        {SOURCE: source, "cell": str(_place(two)), "query": a["query_id"], **_parting(a, b)}
        for source, runs in reruns.items()
        for one, two in paired(first, runs)
        for a, b in changed_rows(one, two)
    ]
    columns = [SOURCE, "cell", "query", "first", "again", "leaks", "smallest lead"]
    return pd.DataFrame(rows[:limit] or [{SOURCE: NONE_DIFFERS}], columns=columns)


def _parting(one: Mapping[str, Any], two: Mapping[str, Any]) -> dict[str, Any]:
    texts = ["\n".join(str(row.get(name, "")) for name in ("raw_full", "raw_Z_summary")) for row in (one, two)]
    common = len(list(takewhile(lambda pair: pair[0] == pair[1], zip(*texts, strict=False))))
    shown = [text[max(0, common - _SHOWN[0]) : common + _SHOWN[1]] for text in texts]
    leads = [row[_MARGIN] for row in (one, two) if row.get(_MARGIN) is not None]
    leaking = ["yes" if _leaks(row) else "no" for row in (one, two)]
    return {
        "first": shown[0],
        "again": shown[1],
        "leaks": leaking[0] if leaking[0] == leaking[1] else " → ".join(leaking),
        "smallest lead": min(leads, default=float("nan")),
    }


def _leaks(row: Mapping[str, Any]) -> bool:
    return bool(leaks(score_rows([row], CellKey("kbench", "any", "P", "none", "forget", 0)).cer)[0])


# ---- rates ---------------------------------------------------------------------------------------------------


def rerun_frame(first: Sequence[Run], reruns: Mapping[str, Sequence[Run]]) -> pd.DataFrame:
    """One row a rerun and cell: rows, rows that differ, and by how much OR(all) and degeneration moved.

    Unit: `MOVED` are differences of fractions, without sign.
    """
    rows = [
        {**_named(source, two), "rows": len(two.rows()), DIFFER: len(changed_rows(one, two)), **_moved(one, two)}
        for source, runs in reruns.items()
        for one, two in paired(first, runs)
    ]
    return pd.DataFrame(rows, columns=[*_PLACE, "rows", DIFFER, *MOVED])


def seed_frame(first: Sequence[Run]) -> pd.DataFrame:
    """The same for each pair of seeds of a cell: other people are asked, so that no row has a partner."""
    groups: dict[CellKey, list[Run]] = {}
    for run in first:
        groups.setdefault(replace(_place(run), seed=0), []).append(run)
    rows = [
        {**_named(QUERIES, two), "rows": len(two.rows()), DIFFER: float("nan"), **_moved(one, two)}
        for runs in groups.values()
        for one, two in combinations(sorted(runs, key=lambda run: cell_key(run).seed), 2)
    ]
    return pd.DataFrame(rows, columns=[*_PLACE, "rows", DIFFER, *MOVED])


def together(*parts: pd.DataFrame) -> pd.DataFrame:
    """Several `rerun_frame` one after the other; those without rows add nothing."""
    return pd.concat([part for part in parts if len(part)], ignore_index=True)


def spread_frame(moved: pd.DataFrame) -> pd.DataFrame:
    """Median and maximum of what moved, one row a rerun: the paper's four figures of duplicate runs."""
    groups = moved.groupby(SOURCE, sort=False)
    columns = {"cells": groups.size(), "rows": groups["rows"].sum(), DIFFER: groups[DIFFER].sum(min_count=1)}
    for name in MOVED:
        columns |= {f"median {name}": groups[name].median(), f"largest {name}": groups[name].max()}
    return pd.DataFrame(columns).reset_index().astype({DIFFER: "Int64"})


def spread_points(moved: pd.DataFrame) -> pd.DataFrame:
    """The same as points with a line from the smallest to the largest: one row a rerun and rate."""
    rows = [
        {
            SOURCE: source,
            "rate": name,
            "median": part[name].median(),
            "least": part[name].min(),
            "most": part[name].max(),
        }
        for source, part in moved.groupby(SOURCE, sort=False)
        for name in MOVED
    ]
    return pd.DataFrame(rows, columns=[SOURCE, "rate", "median", "least", "most"])


def largest(moved: pd.DataFrame, sources: Iterable[str]) -> float:
    """The largest change of OR(all) among some reruns; 0 where there is none of them."""
    found = moved.loc[moved[SOURCE].isin(list(sources)), "|ΔOR(all)|"]
    return float(found.max()) if len(found) else 0.0


def _moved(one: Run, two: Run) -> dict[str, float]:
    before, after = _rates(one), _rates(two)
    return {name: abs(after[rate] - before[rate]) for name, rate in MOVED.items()}


def _rates(run: Run) -> dict[str, float]:
    scores = score_rows(run.rows(), cell_key(run))
    return {"or_all": or_all(scores.cer), "degenerate": mean(scores.degenerate)}


# ---- near ties -----------------------------------------------------------------------------------------------

LEAD, ROUNDED = "smallest lead in a row", "its change"
LOG, SHARE = "logits, as a power of ten", "share of rows"


def lead_curves(first: Sequence[Run], reruns: Mapping[str, Sequence[Run]]) -> pd.DataFrame:
    """How near a tie rows come, and how much rounding moves that lead: shares of rows up to each size.

    A row can only differ where rounding is larger than its smallest lead: where the two curves overlap.

    Missing: rows whose lead was not kept, and changes of exactly 0, which count in the share but have no power of ten.
    """
    leads = [row[_MARGIN] for run in first for row in run.rows() if row.get(_MARGIN) is not None]
    parts = [_cumulative(LEAD, leads)]
    for source, runs in reruns.items():
        parts.append(_cumulative(f"{ROUNDED}: {source}", _rounded(first, runs)))
    return pd.concat(parts, ignore_index=True)


def at_risk(first: Sequence[Run], reruns: Mapping[str, Sequence[Run]]) -> dict[str, float]:
    """The largest change of a lead that was seen in rows with the same transcript, and how many rows have less.

    Returns:
        ``largest`` in logits, ``rows`` with a lead below it, ``of`` all rows whose lead was kept.
    """
    leads = [row[_MARGIN] for run in first for row in run.rows() if row.get(_MARGIN) is not None]
    most = max((change for runs in reruns.values() for change in _rounded(first, runs)), default=0.0)
    return {"largest": most, "rows": sum(lead < most for lead in leads), "of": len(leads)}


def _rounded(first: Sequence[Run], again: Sequence[Run]) -> list[float]:
    """Changes of the smallest lead, in rows with the same transcript."""
    pairs = [rows for pair in paired(first, again) for rows in _matched(*pair) if _said(rows[0]) == _said(rows[1])]
    leads = [(one.get(_MARGIN), two.get(_MARGIN)) for one, two in pairs]
    return [abs(b - a) for a, b in leads if a is not None and b is not None]


def _cumulative(name: str, values: Sequence[float], points: int = 60) -> pd.DataFrame:
    positive = np.sort([value for value in values if value > 0])
    powers = np.log10(np.quantile(positive, np.linspace(0, 1, points))) if len(positive) else np.array([])
    shares = [float(np.mean(np.asarray(values) <= 10**power * (1 + 1e-9))) for power in powers]
    return pd.DataFrame({"series": name, LOG: powers, SHARE: shares})


# ---- keys and rows -------------------------------------------------------------------------------------------


def cell_key(run: Run) -> CellKey:
    """The key of a run that is a cell."""
    assert isinstance(run.key, CellKey)
    return run.key


def _place(run: Run, any_method: bool = False) -> CellKey:
    key = replace(cell_key(run), variant="")
    return replace(key, method="any") if any_method else key


def _named(source: str, run: Run) -> dict[str, Any]:
    key = _place(run)
    return dict(zip(_PLACE, (source, key.lane, key.method, key.split, key.seed), strict=True))


def _matched(first: Run, again: Run) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    known = {row["query_id"]: row for row in first.rows()}
    return [(known[row["query_id"]], row) for row in again.rows() if row["query_id"] in known]


def _said(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name != _MARGIN}


def in_words(number: float) -> str:
    """A number of logits as people write it, or that there was none."""
    return f"{number:.1e}" if math.isfinite(number) and number > 0 else "0"
