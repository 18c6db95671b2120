"""Where forgetting stops: matrices of source and query language, what they depend on, and both directions compared.

A boundary is asked for in words and checked with two limits: of what the original model had, at most ``gone`` may be
left where the target must go, at least ``kept`` where something must stay.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from kbook.report.cllpu_words import (
    NEIGHBOUR,
    ROLE_NAMES,
    SCOPES,
    SETTING_NAMES,
    TARGET,
    unlearned,
    worded,
)
from kbook.report.tables import ABSENT
from kbook.scoring.accessibility import ROUGE_L
from kbook.scoring.transfer import asymmetry_frame, transfer_frame

PARTS = tuple((role, scope) for role in ROLE_NAMES for scope in SCOPES)
_MUST_STAY = {
    SETTING_NAMES["common-goal"]: ((NEIGHBOUR, "source"), (NEIGHBOUR, "cross")),
    SETTING_NAMES["conditioned"]: ((TARGET, "cross"), (NEIGHBOUR, "source"), (NEIGHBOUR, "cross")),
}
"""What each setting wants to keep; all else must go."""


# ---- matrices ----------------------------------------------------------------------------------------------


def matrix_frame(cells: pd.DataFrame, setting: str, measure: str = ROUGE_L) -> pd.DataFrame:
    """A(s, t) of every unlearned model in one setting, the target's matrices first.

    Shape: cells → one row a role, method, source and language, with ``value`` and ``n`` units.
    Unit: as the measure.
    Missing: a cell that was not scored has no row.
    """
    part = cells[(cells["setting"] == setting) & (cells["measure"] == measure)]
    named = unlearned(worded(part))[["role", "method", "source", "language", "value", "n"]]
    return pd.concat([named[named["role"] == role] for role in ROLE_NAMES], ignore_index=True)


def transfer_matrix(scores: pd.DataFrame, setting: str, method: str, role: str = "forget") -> pd.DataFrame:
    """T(s → t) by ROUGE-L of one method, ready for a heat map.

    Shape: scores → one row a source and language, with ``transfer`` and ``n`` units.
    Unit: ratio of at most 1.
    Missing: nan where no unit was accessible before.
    Source: `kbook.scoring.transfer`.
    """
    chosen = scores["method"].isin((method, "original")) & (scores["setting"] == setting) & (scores["role"] == role)
    found = worded(transfer_frame(scores[chosen & (scores["measure"] == ROUGE_L)]))
    return found[["source", "language", "transfer", "n"]]


# ---- dependence on the source language ---------------------------------------------------------------------


def by_source_frame(matrix: pd.DataFrame) -> pd.DataFrame:
    """What is left in the source language and, on average, in the others, source by source.

    Shape: `matrix_frame` → one row a role, method and source, with ``own`` and ``others``.
    Unit: as the measure.
    Missing: nan where a source has no other language.
    """
    at_home = matrix["source"] == matrix["language"]
    place = ["role", "method", "source"]
    own = matrix[at_home].set_index(place)["value"].rename("own")
    others = matrix[~at_home].groupby(place, sort=False)["value"].mean().rename("others")
    return own.to_frame().join(others).reset_index()


def dependence_frame(by_source: pd.DataFrame, role: str = TARGET) -> pd.DataFrame:
    """How much the choice of the source language decides about what is left in the others.

    Shape: `by_source_frame` → one row a method: mean, the sources with least and most left, and their difference.
    Unit: as the measure.
    Missing: a method without any other language has no row.
    """
    rows = []
    for method, part in by_source[by_source["role"] == role].dropna(subset="others").groupby("method", sort=False):
        ordered = part.sort_values("others", kind="stable")
        least, most = ordered.iloc[0], ordered.iloc[-1]
        ends = {"least left from": least["source"], "least": least["others"]}
        ends |= {"most left from": most["source"], "most": most["others"]}
        rows.append(
            {"method": method, "mean": part["others"].mean(), **ends, "range": most["others"] - least["others"]}
        )
    columns = ["method", "mean", "least left from", "least", "most left from", "most", "range"]
    return pd.DataFrame(rows, columns=columns)


# ---- both directions ---------------------------------------------------------------------------------------


def directions(scores: pd.DataFrame, setting: str, role: str = "forget") -> pd.DataFrame:
    """Both directions of every pair of languages by the transfer ratio of ROUGE-L, the most unequal first.

    Shape: scores → one row a method and pair of languages: ``there`` (first → second), ``back``, ``difference``.
    Unit: ratios; their difference.
    Missing: pairs of which a direction has no ratio are left out.
    Source: `kbook.scoring.transfer`.
    """
    part = scores[(scores["setting"] == setting) & (scores["role"] == role) & (scores["measure"] == ROUGE_L)]
    both = worded(asymmetry_frame(transfer_frame(part)).dropna(subset=["there", "back"]))
    both = both.rename(columns={"source": "first", "language": "second", "asymmetry": "difference"})
    order = both["difference"].abs().sort_values(ascending=False, kind="stable").index
    return both.loc[order, ["method", "first", "second", "there", "back", "difference"]].reset_index(drop=True)


def one_sidedness(pairs: pd.DataFrame) -> pd.DataFrame:
    """How unequal both directions are, by method.

    Shape: `directions` → one row a method: number of pairs, mean and largest absolute difference, and the pair of the
        largest, the direction of the stronger transfer first.
    Unit: of ratios.
    Missing: one row of dashes where there is no pair.
    """
    rows = []
    for method, part in pairs.groupby("method", sort=False):
        size = part["difference"].abs()
        top = part.loc[size.idxmax()]
        way = (top["first"], top["second"]) if top["difference"] > 0 else (top["second"], top["first"])
        found = {"pairs": len(part), "mean difference": size.mean(), "largest": size.max()}
        rows.append({"method": method, **found, "between": " → ".join(way)})
    none = {"method": ABSENT, "pairs": 0, "mean difference": float("nan"), "largest": float("nan"), "between": ABSENT}
    return worded(pd.DataFrame(rows or [none]))


# ---- the boundary that was asked for -----------------------------------------------------------------------


def boundary_frame(kept: pd.DataFrame, *, gone: float, kept_least: float, mark: str = "") -> pd.DataFrame:
    """Whether each method draws the boundary that its setting asks for.

    Shape: `kbook.report.cllpu_overall.kept_frame` → one row a setting and method: the share of the original that is
        left of target and neighbour, in the source language and in others, and ``fails at``.
    Unit: ratio to the original model.
    Missing: a share of nan fails nothing and is named; methods without any number are left out.

    Args:
        kept: shares of every model.
        gone: largest share that may be left of what must go.
        kept_least: smallest share that must be left of what must stay.
        mark: `kbook.report.published.MARK` for the paper's shares.
    """
    columns = {f"{scope}{mark}": scope for scope in SCOPES}
    part = unlearned(kept)[["setting", "method", "role", *columns]].rename(columns=columns)
    rows = []
    for (setting, method), found in part.groupby(["setting", "method"], sort=False):
        shares = found.set_index("role")
        left = {(role, scope): float(shares.at[role, scope]) for role, scope in PARTS if role in shares.index}
        if pd.notna(pd.Series(left, dtype=float)).any():
            named = {f"{role}, {scope}{mark}": share for (role, scope), share in left.items()}
            fails = _fails(left, _MUST_STAY.get(setting, ()), gone, kept_least)
            rows.append({"setting": setting, "method": method, **named, "fails at": fails})
    return worded(pd.DataFrame(rows, columns=["setting", "method", *(f"{r}, {s}{mark}" for r, s in PARTS), "fails at"]))


def _fails(left: Mapping[tuple[str, str], float], must_stay: Any, gone: float, kept: float) -> str:
    """The parts that are not as asked, in words."""
    faults = []
    for part, share in left.items():
        name = ", ".join(part)
        if pd.isna(share):
            faults.append(f"{name} unknown")
        elif part in must_stay and share < kept:
            faults.append(f"{name} lost")
        elif part not in must_stay and share > gone:
            faults.append(f"{name} still there")
    return "; ".join(faults) or ABSENT


def drawn_by(boundaries: pd.DataFrame, setting: str) -> list[str]:
    """The methods that draw the boundary of a setting."""
    passed = (boundaries["setting"] == SETTING_NAMES[setting]) & (boundaries["fails at"] == ABSENT)
    return list(boundaries.loc[passed, "method"])
