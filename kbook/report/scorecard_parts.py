"""What the sections of the HTML report are made of."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import groupby
from typing import Any

from kbook.keys import LANES
from kbook.report.markup import Html, table, tag
from kbook.report.tints import tint

ABSENT = "–"
PLACES = {
    "P": "the secret is in the weights",
    "C": "the secret is in the prompt",
    "R-text": "the secret is in a searched passage",
    "R-struct": "the secret is in a record",
}

NUMBERS = frozenset(
    {"p adjusted", "K-Score", "Retain kept", "Degenerate, added", "n", "Figure", "Distance", "Observed"}
    | {"Rows", "Channels"}
)
"""Headings of columns of numbers, which stand to the right."""

Record = dict[str, Any]


def grid(header: Iterable[str], rows: Iterable[Any], width: str = "") -> Html:
    """A table that scrolls by itself; rows are elements already, or lists of cells."""
    heads = [tag("th", name, scope="col", class_="number" if name in NUMBERS else None) for name in header]
    return tag("div", table(heads, rows), class_=f"scroll {width}".strip())


def by_lane(records: Iterable[Record], width: int, rows_of: Callable[[Record], list[Html]]) -> list[Html]:
    """Rows under a heading for each lane, in the order of the protocol, the baseline first."""
    rows: list[Html] = []
    for lane, members in groupby(sorted(records, key=place), key=lambda record: record["lane"]):
        rows += [lane_row(lane, width), *(row for record in members for row in rows_of(record))]
    return rows


def lane_row(lane: str, width: int) -> Html:
    """The heading of the rows of one lane."""
    return tag("tr", tag("th", lane, tag("small", PLACES[lane]), colspan=width, scope="rowgroup"), class_="lane")


def place(record: Record) -> tuple[int, bool, str, str, str, int]:
    """Lanes as in the protocol, the baseline first."""
    named = (record["method"] != "none", record["method"], record["variant"], record.get("split", ""))
    return (LANES.index(record["lane"]), *named, record.get("seed", 0))


def method_name(record: Record) -> str:
    """A method with its variant, if it has one."""
    return f"{record['method']} ({record['variant']})" if record["variant"] else str(record["method"])


def chip(label: str | None) -> Html:
    """A label in the colour of its kind."""
    return tag("span", label, class_="chip", style=f"background: {tint(label)}") if label else tag("span", ABSENT)


def right(value: str) -> Html:
    """A cell of a column of numbers."""
    return tag("td", value, class_="number")


def number(value: float | None) -> str:
    """A figure with three decimals; a dash where it is not known."""
    return ABSENT if value is None else f"{value:.3f}"


def listed(values: Iterable[Any]) -> str:
    """Values with commas between them."""
    return ", ".join(map(str, values))
