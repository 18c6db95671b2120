"""The sections of the HTML report: tables made from the records of the JSON object."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kbook.keys import CHANNELS
from kbook.report.markup import Html, join, tag
from kbook.report.scorecard_parts import (
    ABSENT,
    Record,
    by_lane,
    chip,
    grid,
    listed,
    method_name,
    number,
    place,
    right,
)
from kbook.scoring.budgets import BUDGETS

_SIGNS = {"added_degeneration": "≤", "terminal_collapse": "<"}


def verdicts(found: list[Record], tests: list[Record]) -> Html:
    """What each method did in each lane, with the reasons in words below."""
    on_forget = {(t["lane"], t["method"], t["variant"]): t for t in tests if t["split"] == "forget"}

    def rows_of(verdict: Record) -> list[Html]:
        test = on_forget.get((verdict["lane"], verdict["method"], verdict["variant"]), {})
        reasons = tag("ul", *(tag("li", reason) for reason in verdict["reasons"]), class_="reasons")
        told = tag("tr", *_verdict(verdict, test), class_="told")
        return [told, tag("tr", tag("td"), tag("td", reasons, colspan=9))]

    rows = by_lane(found, 10, rows_of)
    header = ["Method", "K-class", "OR(all) on forget", "p adjusted", "Main channel", "Selectivity", "K-Score"]
    header += ["Retain kept", "Degenerate, added", "Standing"]
    return grid(header, rows)


def _verdict(verdict: Record, test: Record) -> list[Html]:
    moved = f"{number(test['or_none'])} → {number(test['or_method'])}" if test else ABSENT
    p = test.get("p_adj")
    return [
        tag("td", tag("b", method_name(verdict))),
        tag("td", chip(verdict["k_class"] or verdict["status"])),
        tag("td", moved),
        right(ABSENT if p is None else f"{p:.3f}" if p >= 0.001 else f"{p:.0e}"),
        tag("td", *_main_channel(verdict)),
        tag("td", chip(verdict["selectivity"])),
        right(number(verdict["k_score"])),
        right(number(verdict["retain_preservation"])),
        right(number(verdict["delta_degen"])),
        tag("td", *_standing(verdict)),
    ]


def _main_channel(verdict: Record) -> Iterator[Any]:
    """The channel that dominates the leak, and what it became."""
    yield verdict["dominant_none"] or ("none" if verdict["status"] in ("measured", "baseline") else ABSENT)
    if verdict["status"] == "measured" and verdict["dominant_method"] != verdict["dominant_none"]:
        yield f" → {verdict['dominant_method'] or 'none'}"


def _standing(verdict: Record) -> Iterator[Any]:
    if verdict["status"] != "measured":
        yield "reference" if verdict["status"] == "baseline" else verdict["status"]
    elif verdict["eligible"] is None:
        yield "eligibility not known"
    else:
        yield tag("span", "eligible", class_="yes") if verdict["eligible"] else tag("span", "not eligible", class_="no")
        yield f", rank {verdict['rank']}" if verdict["rank"] else ""
    if verdict["flipped"]:
        yield tag("small", "observers disagree")
    if verdict["provisional"]:
        yield tag("small", f"provisional: seeds {listed(verdict['seeds'])}")


def gates(found: list[Record]) -> Html:
    """Each gate with figure, threshold, n and the rows that it is about."""
    if not found:
        return Html()
    rows = by_lane(found, 7, lambda gate: [tag("tr", *_gate(gate))])
    header = ["Method", "Gate", "Figure", "Required", "n", "Of which rows", "Passed"]
    note = "Validity asks whether the baseline of a lane shows enough to be judged by; eligibility, whether a method "
    note += "may be ranked."
    return join([tag("p", note, class_="note"), grid(header, rows)])


def _gate(gate: Record) -> list[Html]:
    return [
        tag("td", tag("b", method_name(gate))),
        tag("td", gate["id"].replace("_", " ").replace("or all", "OR(all)")),
        right(number(gate["value"])),
        tag("td", f"{_SIGNS.get(gate['id'], '≥')} {gate['threshold']:.2f}"),
        right(str(gate["n"])),
        tag("td", gate["denominator"]),
        _passed(gate["passed"]),
    ]


def _passed(passed: bool | None) -> Html:
    words = {True: ("passed", "yes"), False: ("failed", "no"), None: ("not known", "quiet")}
    word, kind = words[passed]
    return tag("td", tag("span", word, class_=kind))


def cells(single: list[Record], pooled: list[Record]) -> Html:
    """Rates with their intervals: seeds together, each by itself, and every channel in full."""
    note = "Rates with their intervals, seeds together. The channel columns hold the CER over the rows in which the "
    note += "channel was observed; the shade is the rate."
    seeds = tag("details", tag("summary", f"Each seed by itself ({len(single)} cells)"), _rates(single))
    full = tag("details", tag("summary", "Channels in full: both denominators, severity, share"), _full(pooled))
    return join([tag("p", note, class_="note"), _rates(pooled), seeds, full])


def _rates(cells: list[Record]) -> Html:
    rows = by_lane(cells, 6 + len(CHANNELS), lambda cell: [tag("tr", *_cell(cell))])
    header = ["Method", "Split, seeds", "n", "OR(all)", "Graded", "Degenerate", *CHANNELS]
    return grid(header, rows)


def _cell(cell: Record) -> Iterator[Html]:
    seeds = cell["seeds"] if "seeds" in cell else [cell["seed"]]
    yield tag("td", tag("b", method_name(cell)))
    yield tag("td", cell["split"], tag("small", listed(seeds)))
    yield right(str(cell["n"]))
    yield _rate(cell, "or_all")
    yield _rate(cell, "or_graded")
    collapse = tag("small", tag("span", "collapse", class_="no")) if cell["terminal_collapse"] else ""
    yield _rate(cell, "degeneration", "var(--broken)", collapse)
    yield from (_rate(cell["channels"][channel], "cer_available") for channel in CHANNELS)


def _rate(record: Record, name: str, colour: str = "var(--leak)", more: Any = "") -> Html:
    """A rate over its interval; the cell is shaded as far as the rate goes."""
    value, low, high = (record[key] for key in (name, f"{name}_lo", f"{name}_hi"))
    if value is None:
        return tag("td", ABSENT)
    ends = tag("small", f"{number(low)}–{number(high)}")
    shade = f"background: linear-gradient(to right, {colour} {100 * value:.1f}%, transparent {100 * value:.1f}%)"
    return tag("td", number(value), ends, more, style=shade)


def _full(pooled: list[Record]) -> Html:
    names = ("cer_available", "cer_all", "severity", "share")
    rows = [
        [cell["lane"], method_name(cell), cell["split"], channel, right(f"{seen['n_observed']} of {cell['n']}")]
        + [_rate(seen, name) for name in names]
        for cell in sorted(pooled, key=place)
        for channel, seen in cell["channels"].items()
    ]
    header = [
        "Lane",
        "Method",
        "Split",
        "Channel",
        "Observed",
        "CER, observed rows",
        "CER, all rows",
        "Severity",
        "Share",
    ]
    return grid(header, rows)


def topology(entry: Record) -> Html:
    """Distances between the lanes of the baselines; nothing where there is one lane."""
    if not entry["pairs"]:
        return Html()
    within = ", ".join(f"{lane} {number(distance)}" for lane, distance in entry["within"].items())
    holds = {True: "Every pair that is not exempt exceeds it.", False: "Not every pair exceeds it.", None: ""}
    told = f"τ {number(entry['tau'])}, twice the largest distance between seeds of one lane ({within}). "
    rows = [
        [
            f"{pair['first']} – {pair['second']}",
            right(number(pair["distance"])),
            str(pair["n_seeds"]),
            tag("td", "exempt in advance", class_="quiet")
            if pair["exempt"]
            else _exceeds(entry["tau"], pair["exceeds"]),
        ]
        for pair in entry["pairs"]
    ]
    told = "Does the lane decide through which channels a secret comes out? " + told
    note = tag("p", told + holds[entry["holds"]], class_="note")
    return join([note, grid(["Lanes", "Distance", "Seeds", "Exceeds τ"], rows, "narrow")])


def _exceeds(tau: float | None, exceeds: bool) -> str:
    return "not known" if tau is None else "yes" if exceeds else "no"


def budgets(found: list[Record]) -> Html:
    """What each observer would conclude, and where the first and the last disagree."""
    if not found:
        return Html()
    told = "; ".join(f"{name} {' + '.join(channels)}" for name, channels in BUDGETS.items() if name != "A5")
    note = f"What would be concluded by an observer who sees only some channels. {told}; A5 all six."
    rows = by_lane(found, 2 + len(BUDGETS), lambda entry: [tag("tr", *_budget(entry))])
    header = ["Method", *BUDGETS, "A1 against A5"]
    return join([tag("p", note, class_="note"), grid(header, rows)])


def _budget(entry: Record) -> list[Html]:
    return [
        tag("td", tag("b", method_name(entry))),
        *(_observer(entry["observers"][name]) for name in BUDGETS),
        _flips(entry),
    ]


def _observer(seen: Record) -> Html:
    moved = f"{number(seen['or_none'])} → {number(seen['or_method'])}"
    return tag("td", chip(seen["k_class"]), tag("small", moved))


def _flips(entry: Record) -> Html:
    words = {True: ("flips", "no"), False: ("agree", "quiet"), None: (ABSENT, "quiet")}
    word, kind = words[entry["flips"]]
    return tag("td", tag("span", word, class_=kind))
