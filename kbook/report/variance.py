"""Tables of the chapter on variance: what a K-Score depends on, and who leads where."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import combinations

import numpy as np
import pandas as pd

from kbook.report.published import MARK, published
from kbook.scoring.cells import CellScores
from kbook.scoring.comparisons import Subject
from kbook.scoring.frames import gate_frame
from kbook.scoring.gates import passed
from kbook.scoring.inference import Bootstrap
from kbook.scoring.panel import Panel
from kbook.scoring.variance import ScoreGrid, score_grid

ETA, CHANCE, SCORE, WHY = "η²", "by chance", "K-Score", "why it is missing"
BASES = {"method": "eta squared method", "base": "eta squared model", "method × base": "eta squared method x model"}
RECIPES = {"recipe": "eta squared injection", "method × recipe": "eta squared method x injection"}
"""Our source of variance → the paper's quantity in `kbench_text_figures`."""

_GATES = {"baseline_or_all": "OR(all)", "baseline_answer_severity": "severity of the answer"}
_LEADER = "balanced-grid leader "
_TEXT = "kbench_text_figures"


# ---- grids -------------------------------------------------------------------------------------------------


def base_grid(panel: Panel, how: Bootstrap) -> ScoreGrid:
    """K-Scores by method, base and seed, of the bases whose untreated agent passes the validity gate.

    Missing: where no base passes, all are kept; `validity_in_words` says so.
    """
    return score_grid(_valid(panel), "base", lambda key: key.base, how)


def recipe_grid(panel: Panel, recipe: str, how: Bootstrap) -> ScoreGrid:
    """K-Scores by method, injection recipe and seed, of the recipes after which the untreated agent passes the gate.

    Args:
        panel: lane P of one base; the variant of a cell names its recipe.
        recipe: that of the cells without a variant.
        how: the bootstrap.

    Missing: as `base_grid`; of a single recipe no share can be told.
    """
    return score_grid(_valid(panel), "recipe", lambda key: key.variant or recipe, how)


def validity_frame(panel: Panel) -> pd.DataFrame:
    """The validity gate of each base (and variant): figure, threshold, rows, and whether it is passed."""
    frame = gate_frame(panel)
    frame = frame[frame["kind"] == "validity"]
    names = {"base": "base", "variant": "variant", "id": "gate", "value": "value", "threshold": "at least", "n": "n"}
    frame = frame[[*names, "passed"]].rename(columns=names).replace({"gate": _GATES})
    return frame if frame["variant"].any() else frame.drop(columns="variant")


def untreated_frame(panels: Mapping[str, Panel], recipe: str) -> pd.DataFrame:
    """`validity_frame` of each base after each recipe of injection; `recipe` is that of cells without a variant."""
    frame = pd.concat([validity_frame(panel) for panel in panels.values()], ignore_index=True)
    recipes = frame["variant"].replace("", recipe)
    return frame.drop(columns="variant").assign(recipe=recipes)[["base", "recipe", *frame.columns[2:]]]


def by_base(frames: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Frames of several bases as one, the base in front."""
    parts = [frame.assign(base=base)[["base", *frame.columns]] for base, frame in frames.items()]
    return pd.concat(parts, ignore_index=True)


def validity_in_words(panels: Iterable[Panel], recipe: str = "") -> str:
    """What is left out as its untreated agent shows too little, in a sentence; `recipe` as in `recipe_grid`."""
    judged = list(panels)
    failing = sorted(subject for panel in judged for subject in _failing(panel))
    if not failing:
        return "Every untreated agent passes the validity gate."
    if len(failing) == sum(len(panel.validity) for panel in judged):
        return "No untreated agent passes the validity gate: what follows is the calculation, and says nothing."
    names = ", ".join(f"{subject.base} {subject.variant or recipe}".strip() for subject in failing)
    return f"The untreated agent fails the validity gate, and is left out where another passes: {names}."


def _valid(panel: Panel) -> list[CellScores]:
    failing = {(subject.base, subject.variant) for subject in _failing(panel)}
    kept = [cell for cell in panel.cells if (cell.key.base, cell.key.variant) not in failing]
    return kept or list(panel.cells)


def _failing(panel: Panel) -> set[Subject]:
    return {subject for subject, gates in panel.validity.items() if not passed(gates)}


# ---- K-Scores ----------------------------------------------------------------------------------------------


def score_frame(grid: ScoreGrid) -> pd.DataFrame:
    """K-Score of each method and level, the mean over seeds with its interval, and its smallest and largest seed."""
    means, seeds = grid.means(), grid.value
    rows = []
    for (m, method), (at, level) in ((a, b) for b in enumerate(grid.levels) for a in enumerate(grid.methods)):
        middle = {SCORE: means.value[m, at], "low": means.lo[m, at], "high": means.hi[m, at]}
        ends = {"smallest seed": seeds[m, at].min(), "largest seed": seeds[m, at].max()}
        rows.append({grid.factors[1]: level, "method": method, **middle, **ends})
    return pd.DataFrame(rows)


def leader_frame(grid: ScoreGrid) -> pd.DataFrame:
    """The method of the highest K-Score at each level, in what share of the resamples it leads, and the next one.

    Missing: with a single method there is no next one.
    """
    value, drawn = grid.value.mean(axis=-1), grid.drawn.mean(axis=-1)
    rows = []
    for at, level in enumerate(grid.levels):
        first, *others = np.argsort(-value[:, at], kind="stable")
        ahead = np.mean(drawn[:, :, at].argmax(axis=1) == first)
        second = {"next": grid.methods[others[0]], "its K-Score": value[others[0], at]} if others else {}
        row = {"leader": grid.methods[first], SCORE: value[first, at], "leads in resamples": float(ahead)}
        rows.append({grid.factors[1]: level, **row, **({"next": None, "its K-Score": np.nan} | second)})
    return pd.DataFrame(rows)


def order_in_words(grid: ScoreGrid) -> str:
    """How often two methods change places from one level to another, or why that cannot be asked."""
    value, other = grid.value.mean(axis=-1), grid.factors[1]
    if len(grid.levels) < 2 or len(grid.methods) < 2:
        return f"it takes two methods and two {other}s to ask whether they change places"
    pairs = list(combinations(range(len(grid.methods)), 2))
    ahead = np.sign([value[a] - value[b] for a, b in pairs])
    changed = int(((ahead.max(axis=1) > 0) & (ahead.min(axis=1) < 0)).sum())
    return f"{changed} of {len(pairs)} pairs of methods change places between two {other}s"


# ---- shares of variance ------------------------------------------------------------------------------------


def share_frame(grid: ScoreGrid) -> pd.DataFrame:
    """η² of each source of variance with its interval, what chance alone would give it, and why it is missing."""
    rows = [
        {
            "source": share.source,
            ETA: share.eta2,
            "low": share.lo,
            "high": share.hi,
            CHANCE: share.chance,
            "df": share.df,
            WHY: share.reason,
        }
        for share in grid.shares()
    ]
    return pd.DataFrame(rows)


def beside_published(frame: pd.DataFrame, quantities: dict[str, str]) -> pd.DataFrame:
    """`share_frame` with the paper's η² in a column of its own, where the paper states one."""
    paper = published(_TEXT)
    found = {source: paper.number("value", quantity=name) for source, name in quantities.items()}
    return frame.assign(**{ETA + MARK: frame["source"].map(found)})


def unknown_in_words(frame: pd.DataFrame) -> str:
    """The sources whose share is missing, with the reason."""
    missing = frame[frame[ETA].isna()]
    words = [f"{row['source']} ({row[WHY]})" for row in missing.to_dict("records")]
    return "; ".join(words) if words else "nothing"


def published_leaders() -> pd.DataFrame:
    """The paper's leader on its balanced grid, by base."""
    frame = published(_TEXT).frame
    names = frame["quantity"][frame["quantity"].str.startswith(_LEADER)]
    split = names.str.removeprefix(_LEADER).str.split(" ", n=1, expand=True)
    values = frame.loc[names.index, f"value{MARK}"]
    return pd.DataFrame({"base": split[0], "leader": split[1], SCORE + MARK: values}).reset_index(drop=True)


def published_shares() -> pd.DataFrame:
    """All that the paper states of η²."""
    frame = published(_TEXT).frame
    return frame[frame["quantity"].str.startswith("eta squared")].reset_index(drop=True)
