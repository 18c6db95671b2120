"""A panel as tidy data frames: the records of `records`, one a row, with lists written as text."""

from __future__ import annotations

import pandas as pd

from kbook.scoring.panel import Panel
from kbook.scoring.records import (
    Record,
    budget_records,
    cell_records,
    channel_records,
    comparison_records,
    gate_records,
    topology_records,
    verdict_records,
)


def cell_frame(panel: Panel, *, pooled: bool = False) -> pd.DataFrame:
    """One row a cell (or pool of its seeds): see `records.cell_records`."""
    return record_frame(cell_records(panel, pooled=pooled))


def channel_frame(panel: Panel, *, pooled: bool = False) -> pd.DataFrame:
    """One row a cell (or pool) and channel: see `records.channel_records`."""
    return record_frame(channel_records(panel, pooled=pooled))


def comparison_frame(panel: Panel) -> pd.DataFrame:
    """One row a paired test: see `records.comparison_records`."""
    return record_frame(comparison_records(panel))


def verdict_frame(panel: Panel) -> pd.DataFrame:
    """One row a verdict: see `records.verdict_records`."""
    return record_frame(verdict_records(panel))


def gate_frame(panel: Panel) -> pd.DataFrame:
    """One row a gate: see `records.gate_records`."""
    return record_frame(gate_records(panel))


def budget_frame(panel: Panel) -> pd.DataFrame:
    """One row a subject and observer budget: see `records.budget_records`."""
    return record_frame(budget_records(panel))


def topology_frame(panel: Panel) -> pd.DataFrame:
    """One row a pair of lanes: see `records.topology_records`."""
    return record_frame(topology_records(panel))


def record_frame(records: list[Record]) -> pd.DataFrame:
    """Any records, one a row."""
    return pd.DataFrame([{name: _plain(name, value) for name, value in record.items()} for record in records])


def _plain(name: str, value: object) -> object:
    return {"seeds": ", ", "reasons": "; "}[name].join(map(str, value)) if isinstance(value, list) else value
