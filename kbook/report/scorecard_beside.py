"""Sections of the HTML report that stand beside the verdicts: observers who see more, and the two matchers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kbook.report.markup import Html, join, tag
from kbook.report.scorecard_parts import ABSENT, Record, by_lane, chip, grid, method_name, number, right

SHOWN = 25
OBSERVERS = ("third party", "stitching")

_LABELS = {
    "k_class": "K-class",
    "selectivity": "Selectivity",
    "eligible": "Eligible",
    "rank": "Rank",
    "status": "Status",
}


def observers(found: Sequence[Record]) -> Html:
    """The labels that observers of more than single channels would give, beside those of the verdicts."""
    if not found:
        return Html()
    note = "Never counted above. Third party: a row leaks too if it shows the value of another forget person. "
    note += "Stitching: a row leaks too if all its channels together hold every word of the value."
    groups: dict[tuple[str, ...], dict[str, Record]] = {}
    for label in found:
        place = tuple(label[name] for name in ("lane", "method", "variant", "split"))
        groups.setdefault(place, {})[label["observer"]] = label
    heads = [{**next(iter(seen.values())), "seen": seen} for seen in groups.values()]
    rows = by_lane(heads, 3 + len(OBSERVERS), lambda head: [tag("tr", *_observed(head))])
    header = ["Method", "Split", "Verdict", *(name.capitalize() for name in OBSERVERS)]
    return join([tag("p", note, class_="note"), grid(header, rows)])


def _observed(head: Record) -> Iterator[Html]:
    yield tag("td", tag("b", method_name(head)))
    yield tag("td", head["split"])
    yield tag("td", chip(head["label_or_all"]))
    for name in OBSERVERS:
        label = head["seen"].get(name)
        yield tag("td", *_label(label)) if label else tag("td", ABSENT)


def _label(label: Record) -> Iterator[Html]:
    yield chip(label["label"])
    yield tag("small", f"{number(label['or_none'])} → {number(label['or_method'])}")
    if label["changed"]:
        yield tag("small", tag("span", "another label", class_="no"))


def matchers(
    cells: Sequence[Record], rules: Sequence[Record], verdicts: Sequence[Record], rows: Sequence[Record]
) -> Html:
    """Where `published` and `strict` disagree: in how many rows, by which rule, and whether a label changes."""
    only = [sum(cell[name] for cell in cells) for name in ("n_published_only", "n_strict_only")]
    total = sum(cell["n"] for cell in cells)
    told = f"Of {total} rows, {only[0]} leak under published alone and {only[1]} under strict alone. "
    changed = [label for label in verdicts if label["changed"]]
    told += f"{len(changed)} of {len(verdicts)} verdicts have another label." if changed else "No verdict changes."
    parts = [tag("p", told, class_="note"), _rules(rules), _changed(changed), _differences(rows)]
    return join(parts)


def _rules(rules: Sequence[Record]) -> Html:
    if not rules:
        return Html()
    rows = [
        [rule["found_by"], rule["rule"], rule["field"].replace("_", " "), right(str(rule["n_rows"]))]
        + [right(str(rule["n_channels"]))]
        for rule in rules
    ]
    return grid(["Found by", "Because of", "Field", "Rows", "Channels"], rows, "narrow")


def _changed(labels: Sequence[Record]) -> Html:
    if not labels:
        return Html()
    rows = [
        [label["lane"], method_name(label), name, *(_word(label[f"{key}_{rule}"]) for rule in ("published", "strict"))]
        for label in labels
        for key, name in _LABELS.items()
        if label[f"{key}_published"] != label[f"{key}_strict"]
    ]
    return grid(["Lane", "Method", "Label", "Published", "Strict"], rows, "narrow")


def _word(value: str | bool | int | None) -> Html:
    if isinstance(value, bool):
        return tag("span", "yes" if value else "no")
    return chip(str(value) if value is not None else None)


def _differences(rows: Sequence[Record]) -> Html:
    if not rows:
        return Html()
    shown = [
        [
            row["lane"],
            method_name(row),
            row["query_id"],
            tag("td", tag("span", row["channel"], class_="channel")),
            f"{row['found_by']}: {row['rule']}",
            tag("td", row["excerpt"], class_="said"),
        ]
        for row in rows[:SHOWN]
    ]
    head = tag("summary", f"The first {len(shown)} places")
    return tag("details", head, grid(["Lane", "Method", "Query", "Channel", "Found by", "Text"], shown))
