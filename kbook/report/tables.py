"""Typeset a tidy frame as a MyST table, or write it as the CSV that stands behind a figure or table."""

from __future__ import annotations

import math
from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any

import pandas as pd
from pandas.api.types import is_bool_dtype, is_numeric_dtype

from kbook.errors import KBookError
from kbook.keys import LANES
from kbook.report.text import escape_text, visible

ABSENT = "–"
MAX_ROWS = 100
MAX_CELL = 400

_FORMULA = ("=", "+", "-", "@")


def to_myst(frame: pd.DataFrame, formats: Mapping[str, str] | None = None) -> str:
    """Typeset a frame as a pipe table: numbers to the right, all text escaped, row labels not included.

    Args:
        frame: one row a line; columns are named as readers should see them.
        formats: column → format specification (".2f", "+.1%", "d"); by default floats get ".3f".
    Missing: None and NaN are shown as a dash.
    Raises:
        KBookError: the frame has no rows or too many for a reader, or a format does not fit.
    """
    formats = dict(formats or {})
    check_frame(frame)
    if not 0 < len(frame) <= MAX_ROWS:
        remedy = f"Show 1 to {MAX_ROWS} rows; put the rest behind a figure, whose CSV may be long"
        raise KBookError(f"a table of {len(frame)} rows", "publish_table", remedy)
    unknown = set(formats) - set(frame.columns)
    if unknown:
        raise KBookError(f"formats names no column: {', '.join(sorted(unknown))}", "publish_table", "Name columns")
    header = [escape_text(str(column)) for column in frame.columns]
    rules = ["---:" if _is_number(frame[column]) else ":---" for column in frame.columns]
    cells = zip(*(_column(frame[column], formats.get(column, "")) for column in frame.columns), strict=True)
    return "\n".join(f"| {' | '.join(line)} |" for line in (header, rules, *cells))


def format_cell(value: Any, spec: str = "") -> str:
    """Show one value as escaped text.

    Missing: None, NaN and NA become a dash.
    Raises:
        KBookError: the format does not fit the value.
    """
    if value is None or value is pd.NA or value is pd.NaT or (isinstance(value, float) and math.isnan(value)):
        return ABSENT
    if isinstance(value, bool) or type(value).__name__ == "bool":
        return "yes" if value else "no"
    if not isinstance(value, Real):
        return escape_text(str(value), MAX_CELL)
    try:
        return escape_text(format(value, spec or ("," if isinstance(value, Integral) else ".3f")))
    except ValueError:
        remedy = "Use a format of Python's format(), such as .2f or .0%"
        raise KBookError(f"the format {spec!r} does not fit {value!r}", "publish_table", remedy) from None


def interval(value: float, low: float, high: float, spec: str = ".2f") -> str:
    """Write an estimate with its interval, `0.68 [0.61, 0.74]`; a dash where the estimate is missing."""
    return ABSENT if math.isnan(value) else f"{value:{spec}} [{low:{spec}}, {high:{spec}}]"


def in_lane_order(frame: pd.DataFrame) -> pd.DataFrame:
    """Sort rows by their column `lane` as the book lists lanes, and leave the rest in its order."""
    places = {lane: place for place, lane in enumerate(LANES)}
    return frame.sort_values("lane", key=lambda lanes: lanes.map(places), kind="stable", ignore_index=True)


def to_csv(frame: pd.DataFrame) -> str:
    """Write a frame as CSV: full precision, line feeds, hidden characters visible, formulas disarmed.

    A text that a spreadsheet would run as a formula gets an apostrophe in front.
    """
    check_frame(frame)
    safe = frame.copy()
    safe.columns = [_disarm(str(column)) for column in frame.columns]
    for column in safe.columns:
        if not is_numeric_dtype(safe[column]):
            safe[column] = [_disarm(value) if isinstance(value, str) else value for value in safe[column]]
    return str(safe.to_csv(index=False, lineterminator="\n"))


def check_frame(frame: pd.DataFrame) -> None:
    """Refuse what is no tidy frame.

    Raises:
        KBookError: there are no columns, two of one name, or headers in several rows.
    """
    if not isinstance(frame, pd.DataFrame) or frame.columns.nlevels > 1 or not len(frame.columns):
        raise KBookError("the data is no tidy frame", "publish", "Give a pandas DataFrame with one header row")
    repeated = frame.columns[frame.columns.duplicated()]
    if len(repeated):
        raise KBookError(f"two columns are named {repeated[0]!r}", "publish", "Give each column its own name")


def _column(values: pd.Series, spec: str) -> list[str]:
    return [format_cell(value, spec) for value in values]


def _is_number(values: pd.Series) -> bool:
    return is_numeric_dtype(values) and not is_bool_dtype(values)


def _disarm(text: str) -> str:
    shown = visible(text)
    return f"'{shown}" if shown.startswith(_FORMULA) else shown
