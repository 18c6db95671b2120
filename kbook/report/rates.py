"""Rates of a panel as long tables: one row a base, lane, method and quantity, with the ends of its interval."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd

from kbook.keys import LANES
from kbook.scoring.comparisons import BASELINE
from kbook.scoring.frames import cell_frame
from kbook.scoring.panel import Panel


def rate_frame(panel: Panel, quantities: Mapping[str, tuple[str, str]]) -> pd.DataFrame:
    """Rates of every subject, seeds pooled.

    Args:
        panel: the judged cells.
        quantities: name for readers → split and column of `kbook.scoring.records.cell_records`.

    Shape: one row a subject and quantity, quantities in the order given.
    Unit: fractions in [0, 1].
    Missing: a subject without cells of a split has no row for its quantities.
    """
    frame = cell_frame(panel, pooled=True)
    parts = []
    for name, (split, rate) in quantities.items():
        columns = {rate: "share", f"{rate}_lo": "low", f"{rate}_hi": "high"}
        part = frame[frame["split"] == split].rename(columns=columns).assign(quantity=name)
        parts.append(part[["base", "lane", "method", "variant", "quantity", *columns.values(), "n"]])
    return pd.concat(parts, ignore_index=True)


def arranged(frame: pd.DataFrame, methods: Sequence[str]) -> pd.DataFrame:
    """Sort rows by base as they come, lane as the book lists them, and method as given, the untreated agent first.

    Missing: a method that is not named comes last.
    """
    frame = frame.reset_index(drop=True)
    order = {name: place for place, name in enumerate((BASELINE, *methods))}
    bases = {name: place for place, name in enumerate(frame["base"].drop_duplicates())}
    keys = frame.assign(
        base=frame["base"].map(bases),
        lane=frame["lane"].map({lane: place for place, lane in enumerate(LANES)}),
        method=frame["method"].map(order).fillna(len(order)),
    )
    return frame.loc[keys.sort_values(["base", "lane", "method"], kind="stable").index].reset_index(drop=True)
