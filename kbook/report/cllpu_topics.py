"""Table 6 of CLLPU: how much topics differ in the conditioned setting."""

from __future__ import annotations

from itertools import product

import pandas as pd

from kbook.corpora.units import Release
from kbook.report.cllpu_words import ROLE_NAMES, SCOPES, published_part, worded
from kbook.report.published import Published
from kbook.scoring.accessibility import ROUGE_L, source_and_cross_by

SETTING = "conditioned"
_PAPER = "cllpu_table6_topic_level_conditioned_rouge_l"
_PARTS = tuple(product(ROLE_NAMES, SCOPES))


def by_topic(scores: pd.DataFrame, measure: str = ROUGE_L) -> pd.DataFrame:
    """Source and Cross of each topic pair.

    Shape: scores → one row a method, role and topic, with ``source`` and ``cross``.
    Unit: as the measure.
    Missing: nan where a topic lacks a cell.
    """
    part = scores[(scores["setting"] == SETTING) & (scores["measure"] == measure)]
    return worded(source_and_cross_by(part, "topic"))[["method", "role", "topic", *SCOPES]]


def topic_frame(topics: pd.DataFrame) -> pd.DataFrame:
    """Mean and standard deviation over topic pairs, in the columns of the paper's Table 6.

    Shape: `by_topic` → one row a method: ``target, source``, ``± target, source`` and so on, and ``topics``.
    Unit: as the measure.
    Missing: topics of nan are left out; the deviation of a single topic is nan.
    Source: CLLPU, Table 6, which does not say by which denominator it deviates; ours is n - 1.
    """
    rows = []
    for method, part in topics.groupby("method", sort=False):
        values = {(r, s): part.loc[part["role"] == r, s] for r, s in _PARTS}
        row = {name: number for (r, s), v in values.items() for name, number in _pair(r, s, v.mean(), v.std())}
        rows.append({"method": method, **row, "topics": part["topic"].nunique()})
    return worded(pd.DataFrame(rows))


def published_topics() -> Published:
    """The paper's numbers in the same columns, over nine topic pairs."""
    roles = dict(zip(ROLE_NAMES, ("forget", "retain"), strict=True))
    names: dict[str, str] = {}
    for role, scope in _PARTS:
        stem = f"{roles[role]}_{scope}"
        names |= {f"{stem}_mean": _name(role, scope), f"{stem}_std": f"± {_name(role, scope)}"}
    return published_part(_PAPER, names)


def topic_matrix(topics: pd.DataFrame, release: Release, role: str, scope: str) -> pd.DataFrame:
    """One part of every topic pair and method, topics by the name of their target.

    Shape: `by_topic` → one row a topic and method, with ``value``.
    Unit: as the measure.
    Missing: nan where a topic lacks a cell.
    """
    names = {pair.id: f"{pair.source or ''} {pair.target_topic}".strip() for pair in release.of_setting(SETTING)}
    part = topics[topics["role"] == role]
    topic = part["topic"].map(lambda id: names.get(id, id))
    return part.assign(topic=topic, value=part[scope])[["topic", "method", "value"]].reset_index(drop=True)


def _pair(role: str, scope: str, mean: float, deviation: float) -> tuple[tuple[str, float], tuple[str, float]]:
    return (_name(role, scope), mean), (f"± {_name(role, scope)}", deviation)


def _name(role: str, scope: str) -> str:
    return f"{role}, {scope}"
