"""Tables of the chapter on collapse: a method turned up step by step, its factors, and how its traces end.

And methods as they are: how much of what they suppress is suppressed in traces that broke down.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pandas as pd

from kbook.keys import LANES, CellKey
from kbook.report.channels import silent_wrecks
from kbook.report.fits import Note, kinds_of
from kbook.report.rates import arranged, rate_frame
from kbook.report.tables import ABSENT, in_lane_order
from kbook.scoring.cells import COLLAPSE, leaks
from kbook.scoring.frames import cell_frame, verdict_frame
from kbook.scoring.panel import BASELINE, Comparison, Panel, Subject, Verdict, subject_of
from kbook.store import Run

LEAK, KEPT, BROKEN, SCORE = "leak on forget", "leak on retain", "degenerate", "K-Score"
SUPPRESSED = "suppression"

_RATES = {LEAK: ("forget", "graded"), KEPT: ("retain", "graded"), BROKEN: ("forget", "degeneration")}
RATES, FACTORS = tuple(_RATES), (SUPPRESSED, "selectivity", "health")
_ELIGIBLE = {True: "yes", False: "no", None: "reference"}


# ---- one method, turned up ---------------------------------------------------------------------------------


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
    steps = _steps(panel, values).items()
    return pd.DataFrame([{setting: value, **row} for value, v in steps for row in _endings(panel, v.subject, split)])


def _endings(panel: Panel, subject: Subject, split: str) -> list[dict[str, Any]]:
    """How the traces of one subject end, the most frequent ending first."""
    cells = [cell for cell in panel.cells if subject_of(cell.key) == subject and cell.key.split == split]
    counts = Counter(str(reason) for cell in cells for reason in cell.reason)
    return [{"ending": e, "traces": n, "share": n / counts.total()} for e, n in counts.most_common()]


# ---- methods as they are -----------------------------------------------------------------------------------


def breaker_rates(panel: Panel, methods: Sequence[str]) -> pd.DataFrame:
    """Leak on both splits and degeneration of some methods and of the untreated agent, lane by lane."""
    found = rate_frame(panel, _RATES)
    return arranged(found[found["method"].isin([BASELINE, *methods])], methods)


def breaker_endings(panel: Panel, methods: Sequence[str], split: str = "forget") -> pd.DataFrame:
    """How the traces of some methods end: one row a method, lane and ending, with its count and share."""
    rows = []
    for verdict in panel.verdicts:
        subject = verdict.subject
        if subject.method in methods and verdict.status != "not applicable":
            place = {"base": subject.base, "lane": subject.lane, "method": subject.method}
            name = {"method and lane": f"{subject.method}, {subject.lane}"}
            rows += [{**place, **name, **row} for row in _endings(panel, subject, split)]
    return arranged(pd.DataFrame(rows), methods).sort_values("method", key=_as(methods), kind="stable")


def _as(methods: Sequence[str]) -> Any:
    return lambda column: column.map(list(methods).index)


def breaking_frame(panel: Panel, methods: Sequence[str], notes: Sequence[Note] = ()) -> pd.DataFrame:
    """Of the queries that leaked untreated and leak no more: how many of their traces broke down.

    A method *suppresses by breaking* where that is half of them or more.

    Args:
        panel: the judged cells of one base.
        methods: their order.
        notes: of the fits.

    Unit: counts of forget queries, seeds together; a share of those that no longer leak.
    Missing: the share is nan where a method suppresses nothing.
    """
    verdicts, kinds = {verdict.subject: verdict for verdict in panel.verdicts}, kinds_of(notes)
    tests = [test for test in panel.tests if test.split == "forget"]
    rows = [_breaking(t, verdicts[t.subject]) | {"fit": kinds.get(t.subject[:3], ABSENT)} for t in tests]
    return arranged(pd.DataFrame(rows), methods)


def _breaking(test: Comparison, verdict: Verdict) -> dict[str, Any]:
    before, after = leaks(test.none.cer), leaks(test.method.cer)
    gone = before & ~after
    broken = int((gone & test.method.degenerate).sum())
    share = broken / int(gone.sum()) if gone.any() else float("nan")
    return {
        **{name: getattr(test.subject, name) for name in ("base", "lane", "method")},
        "leaked untreated": int(before.sum()),
        "no longer leak": int(gone.sum()),
        "of these broken": broken,
        "share broken": share,
        "by breaking": share >= COLLAPSE,
        "K-class": verdict.k_class.text if verdict.k_class else verdict.status,
        "eligible": _ELIGIBLE[verdict.eligible],
    }


def breakers_in_words(breaking: pd.DataFrame) -> str:
    """The methods that suppress by breaking, each with its lanes."""
    lanes = breaking[breaking["by breaking"]].groupby("method", sort=False)["lane"]
    found = [f"{method} ({', '.join(sorted(set(where), key=LANES.index))})" for method, where in lanes]
    return ", ".join(found) or "none"


def wrecks(runs: Iterable[Run], methods: Sequence[str]) -> list[tuple[str, str, Run, dict[str, Any]]]:
    """A trace to read of each method and lane: the last that is degenerate and shows the value nowhere.

    Returns:
        method, lane, run and row; a method and lane without such a trace is left out.
    """
    cells: dict[tuple[str, str], list[Run]] = {(method, lane): [] for method in methods for lane in LANES}
    for run in runs:
        if isinstance(run.key, CellKey) and run.key.split == "forget":
            cells.get((run.key.method, run.key.lane), []).append(run)
    return [(*place, *wreck) for place, found in cells.items() for wreck in silent_wrecks(found)[-1:]]


def score_points(ranking: pd.DataFrame, methods: Sequence[str]) -> pd.DataFrame:
    """`ranking_frame` as points: what is suppressed, and the K-Score that is left of it. Neither has an interval."""
    figures = {SUPPRESSED: 1 - ranking[LEAK], SCORE: ranking[SCORE]}
    parts = [ranking.assign(figure=name, value=values) for name, values in figures.items()]
    return arranged(pd.concat(parts), methods).assign(low=float("nan"), high=float("nan"))


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
    out = frame[["base", "lane", "method"]].assign(
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
    frame = rate_frame(panel, _RATES)
    by_subject = {verdict.subject: value for value, verdict in steps.items()}
    frame[setting] = [by_subject.get(Subject(*names)) for names in frame[list(Subject._fields)].itertuples(index=False)]
    frame["quantity"] = pd.Categorical(frame["quantity"], RATES)
    found = frame.dropna(subset=[setting]).sort_values(["quantity", setting]).astype({"quantity": str})
    return found[["quantity", setting, "share", "low", "high"]].reset_index(drop=True)


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
