"""Tables of the chapter on collapse: a method turned up step by step, its factors, and how its traces end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import pandas as pd

from kbook.report.tables import in_lane_order
from kbook.scoring.frames import cell_frame, verdict_frame
from kbook.scoring.panel import BASELINE, Panel, Subject, Verdict, subject_of

LEAK, KEPT, BROKEN, SCORE = "leak on forget", "leak on retain", "degenerate", "K-Score"

_RATES = {LEAK: ("forget", "graded"), KEPT: ("retain", "graded"), BROKEN: ("forget", "degeneration")}
RATES, FACTORS = tuple(_RATES), ("suppression", "selectivity", "health")
_ELIGIBLE = {True: "yes", False: "no", None: "reference"}


def sweep_frame(panel: Panel, setting: str, values: Mapping[str, float]) -> pd.DataFrame:
    """One row a value of the setting, the untreated agent as 0: rates, factors, K-Score and verdicts.

    Args:
        panel: one lane: the baseline, and variants of one method that differ in the setting.
        setting: its name.
        values: variant → value of the setting.
    """
    steps = _steps(panel, values)
    rates = _rates(panel, setting, steps).pivot(index=setting, columns="quantity", values="share")[list(_RATES)]
    rows = [{setting: value, **_labels(verdict)} for value, verdict in steps.items()]
    return rates.join(pd.DataFrame(rows).set_index(setting)).reset_index().rename_axis(columns=None)


def sweep_curves(panel: Panel, setting: str, values: Mapping[str, float]) -> pd.DataFrame:
    """The same as curves: one row a quantity and value, with the ends of its interval (K-Score has none)."""
    scores = sweep_frame(panel, setting, values)[[setting, SCORE]].rename(columns={SCORE: "share"})
    return pd.concat([_rates(panel, setting, _steps(panel, values)), scores.assign(quantity=SCORE)], ignore_index=True)


def ending_frame(panel: Panel, setting: str, values: Mapping[str, float], split: str = "forget") -> pd.DataFrame:
    """How the traces of each value end: one row a value and ending, with its count and share."""
    rows = []
    for value, verdict in _steps(panel, values).items():
        cells = [cell for cell in panel.cells if subject_of(cell.key) == verdict.subject and cell.key.split == split]
        counts = Counter(str(reason) for cell in cells for reason in cell.reason)
        for ending, n in counts.most_common():
            rows.append({setting: value, "ending": ending, "traces": n, "share": n / counts.total()})
    return pd.DataFrame(rows)


def ranking_frame(panel: Panel) -> pd.DataFrame:
    """Methods of each lane ordered by leak alone, beside their order by K-Score and what the gates say.

    Shape: one row a measured method and lane; equal ones share a rank.
    """
    frame = verdict_frame(panel)
    frame = frame[frame["status"] == "measured"]
    rates = cell_frame(panel, pooled=True)
    rates = rates[rates["split"] == "forget"].set_index(["lane", "method", "variant"])
    frame = frame.join(rates[["degeneration"]], on=["lane", "method", "variant"])
    by_lane = frame.groupby("lane", sort=False)
    out = frame[["lane", "method"]].assign(
        **{
            LEAK: 1 - frame["suppression"],
            BROKEN: frame["degeneration"],
            SCORE: frame["k_score"],
            "rank by leak": by_lane["suppression"].rank(ascending=False, method="min").astype("Int64"),
            "rank by K-Score": by_lane["k_score"].rank(ascending=False, method="min").astype("Int64"),
            "eligible": frame["eligible"].map(_ELIGIBLE),
        }
    )
    return in_lane_order(out.sort_values("rank by leak", kind="stable"))


def _rates(panel: Panel, setting: str, steps: Mapping[float, Verdict]) -> pd.DataFrame:
    frame = cell_frame(panel, pooled=True)
    by_subject = {verdict.subject: value for value, verdict in steps.items()}
    frame[setting] = [by_subject.get(Subject(*names)) for names in frame[list(Subject._fields)].itertuples(index=False)]
    frame = frame.dropna(subset=[setting]).sort_values(setting)
    parts = []
    for name, (split, rate) in _RATES.items():
        columns = {rate: "share", f"{rate}_lo": "low", f"{rate}_hi": "high"}
        part = frame[frame["split"] == split].rename(columns=columns).assign(quantity=name)
        parts.append(part[["quantity", setting, *columns.values()]])
    return pd.concat(parts, ignore_index=True)


def _labels(verdict: Verdict) -> dict[str, Any]:
    columns = {**{name: name for name in FACTORS}, SCORE: "value"}
    figures = {column: getattr(verdict.k_score, name, float("nan")) for column, name in columns.items()}
    label = verdict.k_class.text if verdict.k_class else "reference"
    return {**figures, "K-class": label, "eligible": _ELIGIBLE[verdict.eligible]}


def _steps(panel: Panel, values: Mapping[str, float]) -> dict[float, Verdict]:
    """The verdict of each value in ascending order; the untreated agent is at 0."""
    found = {}
    for verdict in panel.verdicts:
        if verdict.subject.method == BASELINE:
            found[0.0] = verdict
        elif verdict.subject.variant in values:
            found[values[verdict.subject.variant]] = verdict
    return dict(sorted(found.items()))
