"""Table 3 of CLLPU: can one still tell what a model was taught, does it still read, and what does reading hide?"""

from __future__ import annotations

import pandas as pd

from kbook.report.cllpu_words import (
    MEASURE_NAMES,
    NEIGHBOUR,
    PAPER_SETTINGS,
    SCOPES,
    SETTING_NAMES,
    published_part,
    unlearned,
    worded,
)
from kbook.report.published import MARK, Published, published
from kbook.scoring.membership import ATTACKS, LOSS, MIN_K_PERCENT, MIN_K_PLUS, ZLIB, attack_aucs
from kbook.scoring.reading import utility

READING = "reading"
CHANCE = 0.25
"""Of a question with four options."""
_PAPER = "cllpu_table3_mia_belebele"
_PAPER_ATTACKS = {LOSS: "loss", MIN_K_PERCENT: "mink", MIN_K_PLUS: "minkpp", ZLIB: "zlib"}


def membership_frame(membership: pd.DataFrame, reading: pd.DataFrame, setting: str) -> pd.DataFrame:
    """Mean AUC of each attack over sources, and reading accuracy, in the columns of the paper's Table 3.

    Shape: scores of core questions and of reading questions → one row a method.
    Unit: probability; accuracy.
    Missing: nan where a model was not attacked or did not read.
    Source: CLLPU, Table 3.
    """
    aucs = attack_aucs(membership[membership["setting"] == setting])
    table = aucs.pivot_table(index="method", columns="measure", values="auc", sort=False).reindex(columns=ATTACKS)
    read = utility(reading[reading["setting"] == setting]).set_index("method")["accuracy"].rename(READING)
    both = table.rename(columns=MEASURE_NAMES).join(read, how="outer")
    return worded(both.rename_axis(index="method", columns=None).reset_index())


def published_membership(setting: str) -> Published:
    """The paper's numbers in the same columns; its reading questions are those of Belebele."""
    begin = PAPER_SETTINGS[setting]
    attacks = {f"{begin}_{theirs}": MEASURE_NAMES[ours] for ours, theirs in _PAPER_ATTACKS.items()}
    return published_part(_PAPER, attacks | {f"{begin}_belebele": READING})


def auc_frame(membership: pd.DataFrame, setting: str) -> pd.DataFrame:
    """AUC of each attack over the languages of unlearning, the paper's mean beside ours.

    Shape: scores of core questions → one row an attack and method: ``auc`` (mean), ``low`` and ``high`` (the lowest
        and highest of a language), ``languages``, ``auc (published)``.
    Unit: probability.
    Missing: nan where the paper has no number.
    """
    aucs = attack_aucs(membership[membership["setting"] == setting])
    grouped = aucs.groupby(["measure", "method"], sort=False)["auc"]
    spread = worded(grouped.agg(auc="mean", low="min", high="max", languages="count").reset_index())
    wide = published_membership(setting).frame
    columns = {f"{MEASURE_NAMES[attack]}{MARK}": MEASURE_NAMES[attack] for attack in ATTACKS}
    theirs = wide[["method", *columns]].rename(columns=columns)
    long = theirs.melt(id_vars="method", var_name="measure", value_name=f"auc{MARK}")
    both = spread.merge(long, on=["method", "measure"], how="left").rename(columns={"measure": "attack"})
    places = {MEASURE_NAMES[attack]: place for place, attack in enumerate(ATTACKS)}
    return both.sort_values("attack", key=lambda names: names.map(places), kind="stable", ignore_index=True)


# ---- what general utility hides ----------------------------------------------------------------------------


def damage_frame(reading: pd.DataFrame, kept: pd.DataFrame) -> pd.DataFrame:
    """What each unlearned model keeps of reading and of the neighbour, as shares of the original model's.

    Shape: scores of reading questions and `kbook.report.cllpu_overall.kept_frame` → one row a setting and method:
        ``reading``, ``reading kept``, ``neighbour kept, source`` and ``, cross``, and ``hidden``: reading kept minus
        neighbour kept in other languages.
    Unit: accuracy; ratios.
    Missing: nan where a side was not measured.
    """
    read = worded(utility(reading)).rename(columns={"accuracy": READING})
    return _damage(read, kept.rename(columns={scope: f"neighbour kept, {scope}" for scope in SCOPES}), "")


def published_damage(kept: pd.DataFrame) -> Published:
    """The same of the paper, from its Tables 1 to 3."""
    paper = published(_PAPER)
    rows = [
        paper.frame[["method", f"{begin}_belebele{MARK}"]]
        .rename(columns={f"{begin}_belebele{MARK}": f"{READING}{MARK}"})
        .assign(setting=SETTING_NAMES[setting])
        for setting, begin in PAPER_SETTINGS.items()
    ]
    names = {f"{scope}{MARK}": f"neighbour kept, {scope}{MARK}" for scope in SCOPES}
    frame = _damage(worded(pd.concat(rows)), kept.rename(columns=names), MARK)
    return Published("cllpu_damage", frame, f"{paper.source}; shares computed with its Tables 1 and 2", paper.cite)


def _damage(read: pd.DataFrame, kept: pd.DataFrame, mark: str) -> pd.DataFrame:
    accuracy, share, hidden = (f"{name}{mark}" for name in (READING, "reading kept", "hidden"))
    columns = [f"neighbour kept, {scope}{mark}" for scope in SCOPES]
    before = read[read["method"] == "Original"].set_index("setting")[accuracy]
    read = read.assign(**{share: read[accuracy] / read["setting"].map(before)})
    beside = kept.loc[kept["role"] == NEIGHBOUR, ["setting", "method", *columns]]
    both = unlearned(read[["setting", "method", accuracy, share]].merge(beside, on=["setting", "method"], how="left"))
    return both.assign(**{hidden: both[share] - both[columns[1]]})
