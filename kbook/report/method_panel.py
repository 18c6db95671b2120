"""Tables of the chapter on the main panel: many methods, four lanes, and one judged panel a base.

Every frame has methods in rows, in the order in which they are given, and says of each cell whether it was measured,
does not apply, or was excluded; a fit that did nothing is called so and gets no verdict.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Any

import pandas as pd

from kbook.keys import LANES
from kbook.report.fits import NO_OP, STOPPED, Note, kinds_of
from kbook.report.published import Published, published
from kbook.report.rates import arranged, rate_frame
from kbook.report.tables import ABSENT
from kbook.report.tints import IDLE, tint
from kbook.scoring.comparisons import BASELINE
from kbook.scoring.frames import verdict_frame
from kbook.scoring.panel import Panel, Verdict

LEAK, KEPT, BROKEN = "OR(all) forget", "OR(all) retain", "degenerate"
QUANTITIES = {LEAK: ("forget", "or_all"), KEPT: ("retain", "or_all"), BROKEN: ("forget", "degeneration")}
JUDGED = {"K-class, forget split": "K-class", "selectivity, retain split": "selectivity"}
DAGGER = "†"
"""Marks a verdict on a method whose training ended early."""

_WORDS = {"not applicable": "n/a", "measured": "no retain rows"}
_COUNTED = {"K-REF": "K-REF", "K-SUP": "K-SUP", "failure": "measured failure", "ambiguous": "ambiguous"}
_ELIGIBLE = {True: "yes", False: "no"}
_UNASKED = {"baseline": "reference", "measured": "not known"}


# ---- who ---------------------------------------------------------------------------------------------------


def method_frame(classes: Iterable[Any]) -> pd.DataFrame:
    """Methods: where each acts, which lanes it can reach, and what it follows."""
    rows = [
        {"method": c.name, "title": c.title, "acts on": c.family, "lanes": ", ".join(c.lanes), "source": c.source}
        for c in classes
    ]
    return pd.DataFrame(rows)


def reach_frame(classes: Iterable[Any]) -> pd.DataFrame:
    """Why methods cannot reach lanes: one row a reason, with all methods that give it."""
    methods: dict[tuple[str, str], list[str]] = {}
    for c in classes:
        left = ", ".join(lane for lane in LANES if lane not in c.lanes)
        if left:
            methods.setdefault((left, c.reason), []).append(c.name)
    rows = [(", ".join(names), left, reason) for (left, reason), names in methods.items()]
    columns = ["methods", "lanes that do not apply", "why"]
    return pd.DataFrame(rows or [("none", "–", "every method can reach every lane")], columns=columns)


# ---- verdicts ----------------------------------------------------------------------------------------------


def matrix_frame(panel: Panel, methods: Sequence[str], notes: Sequence[Note] = ()) -> pd.DataFrame:
    """One row a lane and method: K-class, selectivity, K-Score, and the reasons in words.

    Args:
        panel: of one base.
        methods: their order.
        notes: of the fits: a no-op is called so instead of a verdict, a training that ended early gets a `DAGGER`.
    """
    frame, kinds = verdict_frame(panel), kinds_of(notes)
    rows = []
    for row in frame[frame["method"] != BASELINE].to_dict("records"):
        place = {name: row[name] for name in ("base", "lane", "method")}
        kind = kinds.get((row["base"], row["lane"], row["method"]), "")
        labels = {title: _label(row, column, kind) for title, column in _LABELS.items()}
        figures = {"K-Score": row["k_score"], "eligible": _ELIGIBLE.get(row["eligible"], "–"), "fit": kind or "–"}
        rows.append({**place, **labels, **figures, "reasons": row["reasons"]})
    return arranged(pd.DataFrame(rows), methods)


_LABELS = {"K-class": "k_class", "selectivity": "selectivity"}


def _label(row: Mapping[str, Any], column: str, kind: str) -> str:
    if kind == NO_OP and row["status"] == "measured":
        return NO_OP
    label = row[column] if isinstance(row[column], str) else _WORDS.get(row["status"], row["status"])
    return f"{label} {DAGGER}" if kind == STOPPED and row["status"] == "measured" else str(label)


def judged_frame(matrix: pd.DataFrame) -> pd.DataFrame:
    """`matrix_frame` as a long table for a figure: both verdicts of each cell below one another."""
    parts = [matrix.assign(judged=title, verdict=matrix[column]) for title, column in JUDGED.items()]
    return pd.concat(parts, ignore_index=True)[["judged", "method", "lane", "verdict"]]


def tints(labels: Iterable[str]) -> dict[str, str]:
    """The tint of each label by the kind of verdict that it begins with; what is no verdict is pale."""
    return {label: IDLE if label in ("n/a", NO_OP) else tint(label) for label in labels}


def tally_frame(panels: Sequence[Panel], notes: Sequence[Note] = ()) -> pd.DataFrame:
    """How many methods of each base and lane got which verdict; one whose fit did nothing is counted as such alone.

    `clean` counts those that forget (K-REF), preserve the retain split and are eligible; `flips` those whose kind of
    K-class an observer of the answer alone would give otherwise.
    """
    idle = _idle(notes)
    rows = [_tally(panel, base, lane, idle) for panel in panels for base in bases_of(panel) for lane in LANES]
    return pd.DataFrame([row for row in rows if row["measured"] or row["not judged"] != ABSENT])


def _idle(notes: Iterable[Note]) -> set[tuple[str, str, str]]:
    """Base, lane and method of the fits that did nothing."""
    return {place for place, kind in kinds_of(notes).items() if kind == NO_OP}


def _tally(panel: Panel, base: str, lane: str, idle: Container[tuple[str, str, str]]) -> dict[str, Any]:
    found = [v for v in panel.verdicts if v.subject[:2] == (base, lane) and v.subject.method != BASELINE]
    states = Counter(v.status for v in found)
    judged = [v for v in found if v.status == "measured"]
    measured = [v for v in judged if v.subject[:3] not in idle]
    kinds = Counter(_kind(v) for v in measured)
    counts = {name: kinds[kind] for name, kind in _COUNTED.items()}
    others = {NO_OP: len(judged) - len(measured), "n/a": states["not applicable"], "excluded": states["excluded"]}
    return {
        "base": base,
        "lane": lane,
        "measured": len(measured),
        "not judged": ", ".join(f"{n} {name}" for name, n in others.items() if n) or ABSENT,
        **counts,
        "eligible": sum(v.eligible is True for v in measured),
        "clean": sum(is_clean(v) for v in measured),
        "flips": sum(v.flipped is True for v in measured),
    }


def _kind(verdict: Verdict) -> str:
    """The kind of a K-class; total and partial reduction are one kind here."""
    kind = verdict.k_class.kind if verdict.k_class else ""
    return "K-REF" if kind.startswith("K-REF") else kind


def is_clean(verdict: Verdict) -> bool:
    """Whether a method forgets, keeps what it must keep, and is eligible."""
    preserved = verdict.selectivity is not None and verdict.selectivity.kind == "preserved"
    return _kind(verdict) == "K-REF" and preserved and verdict.eligible is True


def clean_in_words(panels: Iterable[Panel], notes: Sequence[Note] = ()) -> str:
    """The methods that forget, preserve and are eligible, with their lanes and bases; none whose fit did nothing."""
    judged = [v for panel in panels for v in panel.verdicts if v.status == "measured"]
    found = [v.subject for v in judged if is_clean(v) and v.subject[:3] not in _idle(notes)]
    return "; ".join(f"{s.method} in {s.lane} on {s.base}" for s in found) or "none of them"


def bases_of(panel: Panel) -> list[str]:
    """The bases of a panel's verdicts, in their order."""
    return list(dict.fromkeys(verdict.subject.base for verdict in panel.verdicts))


# ---- rates -------------------------------------------------------------------------------------------------


def rates_frame(panels: Iterable[Panel], methods: Sequence[str]) -> pd.DataFrame:
    """The rates behind the verdicts: one row a base, lane, method and quantity, the untreated agent first."""
    return arranged(pd.concat([rate_frame(panel, QUANTITIES) for panel in panels]), methods)


def plane_frame(rates: pd.DataFrame, families: Mapping[str, str]) -> pd.DataFrame:
    """Leak against degeneration of each base, lane and method, with the place at which the method acts.

    Args:
        rates: as `rates_frame` gives them.
        families: method → where it acts.
    """
    places = ["base", "lane", "method"]
    wide = rates.pivot(index=places, columns="quantity", values="share")[[LEAK, BROKEN]]
    found = rates[places].drop_duplicates().join(wide, on=places)
    acts = found["method"].map({**families, BASELINE: "untreated"}).fillna("unknown")
    return found.assign(**{"acts on": acts}).dropna(subset=[LEAK, BROKEN]).reset_index(drop=True)


def score_frame(panels: Iterable[Panel], methods: Sequence[str]) -> pd.DataFrame:
    """K-Score and its factors for every measured method, the untreated agent as a reference.

    Missing: nan in a lane that was excluded.
    """
    frame = pd.concat([verdict_frame(panel) for panel in panels])
    frame = arranged(frame[frame["status"].isin(["measured", "baseline", "excluded"])], methods)
    names = {"delta_sel": "Δ_sel", "delta_degen": "Δ_degen", "k_score": "K-Score", "retain_preservation": "retain kept"}
    kept = ["base", "lane", "method", "k_score", "suppression", "delta_sel", "delta_degen", "retain_preservation"]
    eligible = frame["eligible"].map(_ELIGIBLE).fillna(frame["status"].replace(_UNASKED))
    return frame[kept].assign(eligible=eligible, rank=frame["rank"].astype("Int64")).rename(columns=names)


# ---- the paper ---------------------------------------------------------------------------------------------


def published_figures() -> Published:
    """What the paper's text says of methods of the main panel."""
    paper = published("kbench_text_figures")
    named = paper.frame["quantity"].str.match("NPO |Qwen R-.* ECO |GA degeneration|IDK degeneration|O3 P OR")
    return Published(paper.name, paper.frame[named].reset_index(drop=True), paper.source, paper.cite)
