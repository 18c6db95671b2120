"""Figure 4 of CLLPU: does forgetting, or keeping, depend on the wording that was trained?"""

from __future__ import annotations

import pandas as pd

from kbook.corpora.units import LAYERS
from kbook.report.cllpu_words import NEIGHBOUR, ROLE_NAMES, SCOPES, TARGET, unlearned, worded
from kbook.scoring.accessibility import ROUGE_L, source_and_cross_by

WHAT = tuple(f"{role}, {scope}" for role in ROLE_NAMES for scope in SCOPES)
POINTS = 100


def wording_frame(scores: pd.DataFrame, setting: str, measure: str = ROUGE_L) -> pd.DataFrame:
    """Core questions and surface variants of every model.

    Shape: scores → one row a part (`WHAT`) and method: ``core``, ``surface`` and ``gap``, surface minus core.
    Unit: as the measure; the gap in hundredths of it (percentage points).
    Missing: nan where a layer was not asked.
    Source: CLLPU, Figure 4.
    """
    part = scores[(scores["setting"] == setting) & (scores["measure"] == measure)]
    means = worded(source_and_cross_by(part, "layer"))
    long = means.melt(["method", "role", "layer"], list(SCOPES), var_name="scope")
    table = long.pivot_table(index=["method", "role", "scope"], columns="layer", values="value", sort=False)
    wide = table.reindex(columns=list(LAYERS)).reset_index()
    wide = wide.assign(what=wide["role"] + ", " + wide["scope"], gap=POINTS * (wide["surface"] - wide["core"]))
    places = {name: place for place, name in enumerate(WHAT)}
    ordered = wide.sort_values("what", key=lambda names: names.map(places), kind="stable", ignore_index=True)
    return ordered[["what", "method", *LAYERS, "gap"]].rename_axis(columns=None)


def gap_ranges(frame: pd.DataFrame) -> dict[str, tuple[float, float]]:
    """The smallest and largest gap of the unlearned models: of the target, and of the neighbour at the source.

    Unit: points.
    Missing: nan where there is no unlearned model.
    """
    models = unlearned(frame)
    chosen = {
        TARGET: models["what"].str.startswith(TARGET),
        f"{NEIGHBOUR}, source": models["what"] == f"{NEIGHBOUR}, source",
    }
    return {name: (models.loc[rows, "gap"].min(), models.loc[rows, "gap"].max()) for name, rows in chosen.items()}
