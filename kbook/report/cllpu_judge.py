"""Table 5 of CLLPU: a judge's scores, for one source language, beside what the rules say of the same cells."""

from __future__ import annotations

import pandas as pd

from kbook.report.cllpu_words import PAPER_SETTINGS, ROLE_NAMES, published_part, worded
from kbook.report.published import Published
from kbook.scoring.accessibility import EM, JUDGE, ROUGE_L, repeat_references

OWN, OTHERS = "source", "others"
_PAPER = "cllpu_table5_llm_judge_english_source"
_PAPER_SOURCE = "en"
_WHERE = tuple((role, where) for role in ROLE_NAMES for where in (OWN, OTHERS))


def judge_frame(cells: pd.DataFrame, setting: str, source: str, measure: str = JUDGE) -> pd.DataFrame:
    """What is left in one source language, and on average in the others, in the columns of the paper's Table 5.

    Shape: cells of the judge (or of another measure) → one row a method; ``target, source``, ``target, others`` and
        the same of the neighbour.
    Unit: fraction in [0, 1].
    Missing: nan for a cell that nobody judged; a mean of the others needs all of them.
    Source: CLLPU, Table 5.
    """
    part = repeat_references(cells[(cells["setting"] == setting) & (cells["measure"] == measure)])
    part = worded(part[part["source"] == source])
    where = part["language"].eq(source).map({True: OWN, False: OTHERS})
    means = part.assign(what=part["role"] + ", " + where).groupby(["method", "what"], sort=False)["value"]
    table = means.agg(lambda values: values.mean(skipna=False)).unstack()
    columns = [f"{role}, {where}" for role, where in _WHERE]
    return worded(table.reindex(columns=columns).rename_axis(columns=None).reset_index())


def published_judge(setting: str) -> Published:
    """The paper's numbers in the same columns: its source is English, its judge a language model."""
    begin, paper = PAPER_SETTINGS[setting], {OWN: _PAPER_SOURCE, OTHERS: f"non_{_PAPER_SOURCE}"}
    roles = dict(zip(ROLE_NAMES, ("forget", "retain"), strict=True))
    columns = {f"{begin}_{roles[role]}_{paper[where]}": f"{role}, {where}" for role, where in _WHERE}
    return published_part(_PAPER, columns)


def beside_rules(judged: pd.DataFrame, cells: pd.DataFrame, setting: str, source: str) -> pd.DataFrame:
    """The judge beside exact match and ROUGE-L, on the same questions.

    Shape: cells of the judge and of the rules → one row a part and method: ``judge``, ``EM``, ``ROUGE-L``.
    Unit: fractions.
    Missing: nan where a measure lacks a cell.
    """
    named = {"judge": (judged, JUDGE), "EM": (cells, EM), "ROUGE-L": (cells, ROUGE_L)}
    columns = {
        name: judge_frame(frame, setting, source, measure).melt("method", var_name="part").set_index(["part", "method"])
        for name, (frame, measure) in named.items()
    }
    return pd.concat([frame["value"].rename(name) for name, frame in columns.items()], axis=1).reset_index()
