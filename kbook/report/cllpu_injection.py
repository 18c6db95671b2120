"""What the reference models learned, and how checkpoints of the unlearned ones were chosen."""

from __future__ import annotations

import pandas as pd

from kbook.corpora.units import LAYERS
from kbook.report import fonts
from kbook.report.cllpu_words import ROLE_NAMES, unlearned, worded
from kbook.report.tables import ABSENT
from kbook.scoring.accessibility import EM

SETTINGS_OF_GRID = ("learning_rate", "beta", "gamma", "alpha", "margin", "temperature")
_SIGNS = {"learning_rate": "rate", "beta": "β", "gamma": "γ", "alpha": "α", "margin": "δ", "temperature": "τ"}


def taught_frame(injection: pd.DataFrame) -> pd.DataFrame:
    """What each reference model was taught with.

    Shape: `CLLPU.injection` → one row a model, in words.
    Missing: a training that reached its end says so.
    """
    ended = injection["stopped"].replace("", "at its end")
    columns = ["method", "documents", "epochs", "steps", "tokens", "learning_rate", "seconds"]
    names = {"method": "model", "learning_rate": "learning rate"}
    return worded(injection.assign(stopped=ended)[[*columns, "stopped"]]).rename(columns=names)


def ability_frame(scores: pd.DataFrame, measure: str = EM) -> pd.DataFrame:
    """What the models that no unlearning made answer, by language, layer and role; both settings together.

    Shape: scores → one row a part (model and role) and language: ``core``, ``surface`` and ``gap`` in points.
    Unit: as the measure.
    Missing: nan where a layer was not asked.
    """
    chosen = scores[(scores["measure"] == measure) & scores["method"].isin(("base", "original", "retrain"))]
    place = ["method", "role", "language"]
    table = chosen.groupby([*place, "layer"], sort=False)["value"].mean().unstack().reindex(columns=list(LAYERS))
    frame = worded(table.rename_axis(columns=None).reset_index())
    frame = frame[frame["role"].isin(ROLE_NAMES)]
    part = frame["method"] + ": " + frame["role"]
    named = frame.assign(part=part, language=frame["language"].map(fonts.label))
    return named.assign(gap=100 * (named["surface"] - named["core"]))[["part", "language", *LAYERS, "gap"]].reset_index(
        drop=True
    )


def chosen_frame(sweep: pd.DataFrame) -> pd.DataFrame:
    """Which settings the rule chose for each method, and what the chosen checkpoints hold in the source language.

    Shape: `CLLPU.sweep` → one row a setting and method: ``checkpoints`` judged, ``broken`` trainings, ``settings`` and
        ``epochs`` with how many sources chose them, mean ``target`` and ``neighbour``.
    Unit: ROUGE-L of core answers.
    Missing: nothing is chosen where nothing was judged.
    """
    rows = []
    for (setting, method), part in unlearned(worded(sweep)).groupby(["setting", "method"], sort=False):
        best = part[part["chosen"]]
        broken = part.loc[part["stopped"] != "", ["source", *SETTINGS_OF_GRID]].drop_duplicates()
        facts = {"checkpoints": len(part), "broken": len(broken)}
        choices = {"settings": _counted(_grid_point(best)), "epochs": _counted(best["epoch"].astype(str))}
        means = {name: best[name].mean() for name in ("target", "neighbour")}
        rows.append({"setting": setting, "method": method, **facts, **choices, **means})
    return pd.DataFrame(rows)


def chosen_points(sweep: pd.DataFrame) -> pd.DataFrame:
    """The chosen checkpoint of each source language: ``target`` and ``neighbour`` by setting and method."""
    named = unlearned(worded(sweep[sweep["chosen"]]))
    return named[["setting", "method", "source", "target", "neighbour", "epoch", "score"]]


def _grid_point(frame: pd.DataFrame) -> pd.Series:
    """The settings of each row in words; those that the method does not have are left out."""
    known = [column for column in SETTINGS_OF_GRID if column in frame and frame[column].notna().any()]
    words = [", ".join(f"{_SIGNS[c]} {record[c]:g}" for c in known) for record in frame.to_dict("records")]
    return pd.Series(words, index=frame.index, dtype=object)


def _counted(values: pd.Series) -> str:
    """Values with how often each comes, the most frequent first."""
    counts = values.value_counts(sort=True)
    return "; ".join(f"{value} (×{n})" for value, n in counts.items()) or ABSENT
