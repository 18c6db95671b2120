"""Tables of the chapter on the leaderboard: methods ranked on lane P, behind gates, base by base.

One row of `board_frame` is a method on a base; everything else is read from it. Ranks of two bases, or of a base and
the paper, are compared over the methods that both have: never many, so the smallest p that could be had stands beside.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from math import factorial
from typing import Any

import pandas as pd
from scipy.stats import kendalltau, spearmanr

from kbook.keys import ModelKey
from kbook.report.artifacts import RunLike
from kbook.report.fits import NO_OP, STOPPED, Note, kinds_of
from kbook.report.method_panel import DAGGER
from kbook.report.published import MARK, Published, published
from kbook.report.rates import arranged, rate_frame
from kbook.report.tables import ABSENT
from kbook.report.tints import IDLE, TINTS
from kbook.scoring.comparisons import BASELINE
from kbook.scoring.panel import Panel, Verdict

LANE = "P"
LEAK, KEPT, BROKEN = "leak on forget", "leak on retain", "degenerate"
QUANTITIES = {LEAK: ("forget", "graded"), KEPT: ("retain", "graded"), BROKEN: ("forget", "degeneration")}

_REFUSED = {
    "terminal_collapse": "collapsed",
    "added_degeneration": "degenerate",
    "retain_preservation": "retain lost",
}
"""Gate → what a method that fails it is called, the gravest first."""
_TINTS = {"rank": TINTS["K-REF"], "retain lost": TINTS["weakened"]} | dict.fromkeys(
    ("collapsed", "degenerate"), TINTS["broken"]
)
_BOARD = "kbench_table15_eligible_leaderboard"
_OURS = {"UNDIAL-corrected": "undial"}
"""The paper's names that are not ours in capitals."""
ORDERS = ("suppression", "K-Score")


# ---- the board ---------------------------------------------------------------------------------------------


def board_frame(panels: Iterable[Panel], methods: Sequence[str], notes: Sequence[Note] = ()) -> pd.DataFrame:
    """One row a base and method of lane P: K-Score, what the gates ask, its rank, or why it is refused one.

    Args:
        panels: one a base.
        methods: their order.
        notes: of the fits; who did nothing is not ranked, whatever the gates say.

    Unit: suppression, retain kept and added degeneration are fractions.
    Missing: what could not be judged has nan, and its status in `refused by`.
    """
    kinds = kinds_of(notes)
    found = [verdict for panel in panels for verdict in panel.verdicts]
    entries = [v for v in found if v.subject.lane == LANE and v.subject.method != BASELINE]
    frame = arranged(pd.DataFrame([_entry(v, kinds.get(v.subject[:3], "")) for v in entries]), methods)
    eligible = frame["suppression"].where(frame["eligible"] == "yes")
    return frame.assign(rank=eligible.groupby(frame["base"]).rank(ascending=False, method="min").astype("Int64"))


def _entry(verdict: Verdict, kind: str) -> dict[str, Any]:
    score, label, idle = verdict.k_score, verdict.k_class, kind == NO_OP
    unknown = float("nan")
    return {
        **{name: getattr(verdict.subject, name) for name in ("base", "lane", "method")},
        "K-Score": score.value if score else unknown,
        "suppression": score.suppression if score else unknown,
        "retain kept": verdict.retain_preservation,
        "added degeneration": score.delta_degen if score else unknown,
        "K-class": NO_OP if idle else label.text if label else ABSENT,
        "eligible": "yes" if verdict.eligible and not idle else "no",
        "refused by": NO_OP if idle else _refused(verdict),
        "fit": kind or ABSENT,
    }


def _refused(verdict: Verdict) -> str:
    if verdict.status != "measured":
        return verdict.status
    failed = {gate.id for gate in verdict.gates if gate.passed is False}
    unknown = [] if verdict.eligible is not None else ["not known"]
    return ", ".join([word for gate, word in _REFUSED.items() if gate in failed] + unknown) or ABSENT


def place_frame(board: pd.DataFrame) -> pd.DataFrame:
    """The board as a matrix for a figure, with what is written of each method and base in the column `place`.

    Rows are ordered by the number of bases on which a method is eligible, then by its mean place by K-Score.
    """
    by_score = board.groupby("base")["K-Score"].rank(ascending=False)
    eligible = board["eligible"] == "yes"
    order = pd.DataFrame({"eligible": -eligible.astype(int), "score": by_score, "method": board["method"]})
    names = list(order.groupby("method", sort=False).mean().sort_values(["eligible", "score"], kind="stable").index)
    written = board.assign(place=[_place(row) for row in board.to_dict("records")])
    return written.sort_values("method", key=lambda column: column.map(names.index), kind="stable", ignore_index=True)


def _place(row: Mapping[str, Any]) -> str:
    where = f"rank {row['rank']}" if row["eligible"] == "yes" else row["refused by"].split(", ")[0]
    mark = f" {DAGGER}" if row["fit"] == STOPPED else ""
    scored = row["fit"] != NO_OP and pd.notna(row["K-Score"])
    return where + mark + (f" · K {row['K-Score']:.2f}" if scored else "")


def place_tints(places: Iterable[str]) -> dict[str, str]:
    """The tint of each place: ranked, refused for what it lost, refused for what it broke, or not judged."""
    return {place: next((tint for word, tint in _TINTS.items() if place.startswith(word)), IDLE) for place in places}


def eligible_frame(board: pd.DataFrame) -> pd.DataFrame:
    """The eligible of each base by suppression, in the columns of the paper's Table 15; a base without any says so.

    Unit: suppression is a fraction; retain preservation in percent; added degeneration in percentage points.
    """
    rows = []
    for base, entries in board.groupby("base", sort=False):
        ranked = entries[entries["eligible"] == "yes"].sort_values("rank", kind="stable")
        rows += [_ranked(row) for row in ranked.to_dict("records")]
        rows += [{"base": base, "rank": pd.NA, "method": "nobody is eligible"}] * ranked.empty
    frame = pd.DataFrame(rows, columns=["base", "rank", "method", *_TABLE_15])
    return frame.astype({"rank": "Int64"} | dict.fromkeys(_TABLE_15, float))


_TABLE_15 = ("suppression", "retain kept, %", "degeneration added, points")


def _ranked(row: Mapping[str, Any]) -> dict[str, Any]:
    figures = (row["suppression"], 100 * row["retain kept"], 100 * row["added degeneration"])
    mark = f" {DAGGER}" if row["fit"] == STOPPED else ""
    return {
        **{name: row[name] for name in ("base", "rank")},
        "method": row["method"] + mark,
        **dict(zip(_TABLE_15, figures, strict=True)),
    }


def leader_frame(board: pd.DataFrame) -> pd.DataFrame:
    """Who leads each base, by K-Score among all and by suppression among the eligible, and how many are refused why."""
    rows = []
    for base, entries in board.groupby("base", sort=False):
        ranked, scores = entries[entries["rank"] == 1], entries["K-Score"].where(entries["fit"] != NO_OP)
        best = entries.loc[scores.idxmax()] if scores.notna().any() else None
        gravest = entries.loc[entries["eligible"] == "no", "refused by"].str.split(", ").str[0]
        counts = ", ".join(f"{n} {word}" for word, n in gravest.value_counts().items())
        rows.append(
            {
                "base": base,
                "best K-Score": ABSENT if best is None else best["method"],
                "K-Score": float("nan") if best is None else best["K-Score"],
                "first among the eligible": ", ".join(ranked["method"]) or "nobody",
                "suppression": ranked["suppression"].max(),
                "eligible": f"{int((entries['eligible'] == 'yes').sum())} of {len(entries)}",
                "refused": counts or ABSENT,
            }
        )
    return pd.DataFrame(rows)


def everywhere_in_words(board: pd.DataFrame) -> str:
    """The methods that are eligible on every base."""
    always = (board["eligible"] == "yes").groupby(board["method"], sort=False).all()
    return ", ".join(always.index[always]) or "none"


# ---- the case study ----------------------------------------------------------------------------------------


def case_rates(panels: Iterable[Panel], recipes: Sequence[str]) -> pd.DataFrame:
    """Graded leak on both splits, and degeneration, of some recipes and the untreated agent on lane P."""
    found = pd.concat([rate_frame(panel, QUANTITIES) for panel in panels])
    chosen = (found["lane"] == LANE) & found["method"].isin([BASELINE, *recipes])
    return arranged(found[chosen], recipes)


def case_frame(board: pd.DataFrame, recipes: Sequence[str], edits: Iterable[RunLike]) -> pd.DataFrame:
    """Some recipes base by base: the loss on the documents they were fitted on, and what the agent shows of others.

    Args:
        board: as `board_frame` gives it.
        recipes: names of methods.
        edits: the runs of the edited models.

    Unit: losses in nats per token, mean over documents, before → after.
    """
    losses = {(run.key.base, run.key.recipe): run.manifest.extra.get("nll") for run in edits if _is_model(run)}
    rows = []
    for row in board[board["method"].isin(recipes)].to_dict("records"):
        loss = losses.get((row["base"], row["method"]))
        fitted = {f"fit loss, {pool}": _change(loss, pool) for pool in ("forget", "retain")}
        columns = ("suppression", "retain kept", "K-Score", "refused by")
        rows.append({name: row[name] for name in ("base", "method")} | fitted | {name: row[name] for name in columns})
    return pd.DataFrame(rows)


def _is_model(run: RunLike) -> bool:
    return isinstance(run.key, ModelKey)


def _change(loss: Any, pool: str) -> str:
    return f"{loss['before'][pool]:.2f} → {loss['after'][pool]:.2f}" if loss else ABSENT


# ---- rank agreement ----------------------------------------------------------------------------------------


def agreement_frame(board: pd.DataFrame) -> pd.DataFrame:
    """How far two bases order their methods alike, for every pair of bases; one row that says so for a single base.

    Shape: one row a pair and order (`ORDERS`), all methods that were measured on both.
    Missing: nan with fewer than two methods, or where all of them are tied.
    """
    bases = list(board["base"].drop_duplicates())
    pairs = list(combinations(bases, 2)) or [(bases[0], "no other base")]
    rows = []
    for (first, second), order in ((pair, order) for pair in pairs for order in ORDERS):
        sides = [_scores(board, base, order) for base in (first, second)]
        rows.append({"base": first, "other base": second, "order by": order} | _agreement(*sides))
    return pd.DataFrame(rows)


def published_agreement(board: pd.DataFrame) -> pd.DataFrame:
    """How far our order by suppression agrees with the paper's, over the methods that both have.

    The paper orders those that are eligible on its base; ours are taken whether or not the gates let them pass.
    """
    paper = {base: _order(rows) for base, rows in published_eligible().frame.groupby("base", sort=False)}
    rows = []
    for base in board["base"].drop_duplicates():
        ours = _scores(board, base, "suppression")
        for other, theirs in paper.items():
            common = theirs[theirs.index.isin(ours.index)]
            first = common.idxmax() if len(common) else "nobody"
            places = {"base": base, "base of the paper": other, f"first of these{MARK}": first}
            rows.append(places | _agreement(ours, theirs))
    return pd.DataFrame(rows)


def _order(rows: pd.DataFrame) -> pd.Series:
    """Suppression by our names of the paper's methods."""
    return pd.Series(rows[f"suppression{MARK}"].to_numpy(), index=[our_name(name) for name in rows["method"]])


def _scores(board: pd.DataFrame, base: str, order: str) -> pd.Series:
    rows = board[board["base"] == base]
    return rows.set_index("method")[order].dropna()


def _agreement(first: pd.Series, second: pd.Series) -> dict[str, Any]:
    """Kendall's τ-b and Spearman's ρ over the common methods.

    Missing: nan where there are fewer than two, or one side is constant.
    """
    common = [method for method in first.index if method in second.index]
    a, b = first[common], second[common]
    n = len(common)
    known = n > 1 and a.nunique() > 1 and b.nunique() > 1
    tau = kendalltau(a, b) if known else None
    return {
        "methods": n,
        "Kendall τ": float(tau.statistic) if tau else float("nan"),
        "p": float(tau.pvalue) if tau else float("nan"),
        "smallest possible p": min(1.0, 2 / factorial(n)),
        "Spearman ρ": float(spearmanr(a, b).statistic) if known else float("nan"),
    }


# ---- the paper ---------------------------------------------------------------------------------------------


def published_eligible() -> Published:
    """The paper's Table 15, its methods that pass the gates on each base, under names of columns like ours."""
    paper = published(_BOARD)
    theirs = ("suppression", "retain_preservation_percent", "added_degeneration_points")
    names = {f"{name}{MARK}": f"{ours}{MARK}" for name, ours in zip(theirs, _TABLE_15, strict=True)}
    return Published(paper.name, paper.frame.rename(columns=names), paper.source, paper.cite)


def published_recipes() -> Published:
    """What the paper's text says of Table 10, its case study of five recipes."""
    return _said("Table 10")


def published_leaders() -> Published:
    """The best K-Score of each base among the paper's twenty methods."""
    return _said("20-method leaderboard")


def our_name(method: str) -> str:
    """The name in this book of a method that the paper names; a corrected version counts as the method."""
    return _OURS.get(method, method.casefold())


def _said(where: str) -> Published:
    paper = published("kbench_text_figures")
    rows = paper.frame[paper.frame["where"] == where].reset_index(drop=True)
    return Published(paper.name, rows, paper.source, paper.cite)
