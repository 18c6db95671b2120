"""Tables of the chapter on paraphrases: the same questions in other words, query by query."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from kbook.keys import FIELDS
from kbook.report.kbench import channel_rates
from kbook.report.rates import arranged, rate_frame
from kbook.report.tables import in_lane_order
from kbook.report.variants import RATES
from kbook.scoring.cells import Bools, CellScores, leaks
from kbook.scoring.inference import exact_binomial
from kbook.scoring.panel import BASELINE, Panel, subject_of

CANONICAL = "canonical"
WORDING = "wording"

_PLACE = ["lane", "method"]


def asked(query: str) -> str:
    """What a query asks, in whatever words: ``pii-00016::address`` of ``pii-00016::address::w1``."""
    return "::".join(query.split("::")[:2])


def field_of(query: str) -> str:
    """The field that a query asks for."""
    return asked(query).rpartition("::")[2]


# ---- rates ---------------------------------------------------------------------------------------------------


def wording_rates(panels: Mapping[str, Panel]) -> pd.DataFrame:
    """Leak and degeneration of each lane, method and wording, seeds pooled, with intervals.

    Args:
        panels: name of a wording → its cells, judged alone.
    """
    frame = pd.concat([rate_frame(panel, RATES).assign(**{WORDING: name}) for name, panel in panels.items()])
    return arranged(frame, list(frame["method"].drop_duplicates()))[
        [*_PLACE, WORDING, "quantity", "share", "low", "high", "n"]
    ]


def rate_table(panels: Mapping[str, Panel]) -> pd.DataFrame:
    """The same as a table: one row a lane, method and wording; of the leak on forget also what the answer shows.

    The summary is always asked for in the same words: a leak there has not met the wording.
    """
    frame, place = wording_rates(panels), [*_PLACE, WORDING]
    wide = frame.pivot(index=place, columns="quantity", values="share").reindex(columns=list(RATES))
    shown = pd.concat([channel_rates(panel).assign(**{WORDING: name}) for name, panel in panels.items()])
    shown = shown.pivot(index=place, columns="channel", values="rate")[["answer", "summary"]]
    wide = wide.join(shown.rename(columns="in the {}".format))
    return frame[place].drop_duplicates(ignore_index=True).join(wide, on=place)


def verdict_frame(panels: Mapping[str, Panel]) -> pd.DataFrame:
    """The K-class of each lane and method in each wording, or why there is none, and whether all are of one kind."""
    found: dict[tuple[str, str], dict[str, tuple[str, str]]] = {}
    for name, panel in panels.items():
        for verdict in panel.verdicts:
            if verdict.subject.method != BASELINE and verdict.status != "not applicable":
                measured = verdict.k_class if verdict.status == "measured" else None
                label = (measured.kind, measured.text) if measured else (verdict.status, verdict.status)
                found.setdefault((verdict.subject.lane, verdict.subject.method), {})[name] = label
    rows = [
        dict(zip(_PLACE, place, strict=True))
        | {name: text for name, (_, text) in labels.items()}
        | {"same kind": len({kind for kind, _ in labels.values()}) == 1}
        for place, labels in found.items()
    ]
    return in_lane_order(pd.DataFrame(rows, columns=[*_PLACE, *panels, "same kind"]))


def excluded_in_words(panels: Mapping[str, Panel]) -> str:
    """The wordings and lanes whose untreated agent fails the validity gate, with its reasons."""
    found = [
        f"lane {verdict.subject.lane}, {name}: {'; '.join(verdict.reasons)}"
        for name, panel in panels.items()
        for verdict in panel.verdicts
        if verdict.subject.method == BASELINE and verdict.status == "excluded"
    ]
    return ". ".join(found) or "none"


# ---- query by query ------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Pairing:
    """The queries of one cell in canonical words and in others, row by row the same person and field."""

    cell: CellScores
    wording: str
    query: tuple[str, ...]
    canonical: Bools
    other: Bools
    healthy: Bools
    """Whether neither trace is degenerate."""


def pairings(panels: Mapping[str, Panel]) -> Iterator[Pairing]:
    """Pair the cells of every wording with the canonical ones, which are the first panel."""
    (first, canonical), *others = panels.items()
    assert first == CANONICAL
    known = {(*subject_of(cell.key)[:3], cell.key.split, cell.key.seed): cell for cell in canonical.cells}
    for wording, panel in others:
        for cell in panel.cells:
            partner = known.get((*subject_of(cell.key)[:3], cell.key.split, cell.key.seed))
            if partner is not None:
                yield _paired(partner, cell, wording)


def _paired(canonical: CellScores, other: CellScores, wording: str) -> Pairing:
    places = {asked(query): row for row, query in enumerate(canonical.query_id)}
    rows = [(places[asked(q)], row) for row, q in enumerate(other.query_id) if asked(q) in places]
    one, two = np.array([a for a, _ in rows], dtype=int), np.array([b for _, b in rows], dtype=int)
    names = tuple(asked(query) for query in other.query_id[two])
    healthy = ~canonical.degenerate[one] & ~other.degenerate[two]
    return Pairing(other, wording, names, leaks(canonical.cer)[one], leaks(other.cer)[two], healthy)


def agreement_frame(panels: Mapping[str, Panel], split: str = "forget") -> pd.DataFrame:
    """In how many queries both wordings leak, one of them or neither, seeds pooled.

    ``agree`` is the share of queries with the same outcome; ``agree, both healthy`` that among queries whose two
    traces end in a healthy answer, so that a trace that merely broke off counts for nothing; ``p`` is the exact paired
    test of the two leak rates.

    *Missing*: nan where no query has two healthy traces.
    """
    rows: dict[tuple[str, ...], list[Pairing]] = {}
    for pair in pairings(panels):
        if pair.cell.key.split == split:
            rows.setdefault((pair.cell.key.lane, pair.cell.key.method, pair.wording), []).append(pair)
    names = [*_PLACE, WORDING]
    ordered = sorted(rows.items(), key=lambda item: (item[0][1] != BASELINE, item[0][1]))
    frame = pd.DataFrame([dict(zip(names, place, strict=True)) | _counts(p) for place, p in ordered])
    return in_lane_order(frame) if len(frame) else frame


def _counts(pairs: list[Pairing]) -> dict[str, Any]:
    one, two, healthy = (np.concatenate([getattr(p, n) for p in pairs]) for n in ("canonical", "other", "healthy"))
    down, up, same = int((one & ~two).sum()), int((~one & two).sum()), one == two
    return {
        "both": int((one & two).sum()),
        "only canonical": down,
        "only this": up,
        "neither": int((~one & ~two).sum()),
        "agree": float(same.mean()),
        "agree, both healthy": float(same[healthy].mean()) if healthy.any() else float("nan"),
        "p": exact_binomial(down, up),
    }


def flip_frame(panels: Mapping[str, Panel], split: str = "forget") -> pd.DataFrame:
    """Queries whose leak comes or goes with the wording, by field: counts, and shares of the queries of that field."""
    rows = [
        {
            "lane": pair.cell.key.lane,
            "field": field_of(query),
            "only canonical": a and not b,
            "only paraphrase": b and not a,
        }
        for pair in pairings(panels)
        if pair.cell.key.split == split
        for query, a, b in zip(pair.query, pair.canonical, pair.other, strict=True)
    ]
    frame = pd.DataFrame(rows, columns=["lane", "field", "only canonical", "only paraphrase"])
    groups = frame.groupby(["lane", "field"], sort=False)
    found = groups[["only canonical", "only paraphrase"]].sum().astype(int).assign(pairs=groups.size())
    found["flips"] = (found["only canonical"] + found["only paraphrase"]) / found["pairs"]
    found = found.reset_index().sort_values("field", key=lambda fields: fields.map(FIELDS.index), kind="stable")
    return in_lane_order(found)


def any_frame(panels: Mapping[str, Panel], split: str = "forget") -> pd.DataFrame:
    """What somebody learns who asks in all wordings: a query leaks if it leaks in any of them.

    Shape: one row a lane and method: canonical rate, the highest rate of one wording, the rate of any.
    """
    found: dict[tuple[str, str], dict[str, list[tuple[int, str]]]] = {}
    counts: dict[tuple[str, str], set[tuple[int, str]]] = {}
    for name, panel in panels.items():
        for cell in panel.cells:
            if cell.key.split == split:
                place, seed = (cell.key.lane, cell.key.method), cell.key.seed
                units = [(seed, asked(query)) for query in cell.query_id]
                counts.setdefault(place, set()).update(units)
                leaking = [unit for unit, leak in zip(units, leaks(cell.cer), strict=True) if leak]
                found.setdefault(place, {}).setdefault(name, []).extend(leaking)
    rows = [dict(zip(_PLACE, place, strict=True)) | _learned(by, len(counts[place])) for place, by in found.items()]
    return in_lane_order(pd.DataFrame(rows))


def _learned(by_wording: Mapping[str, list[tuple[int, str]]], n: int) -> dict[str, Any]:
    together = set().union(*by_wording.values())
    most = max(len(leaking) for leaking in by_wording.values())
    return {
        "queries": n,
        CANONICAL: len(by_wording[CANONICAL]) / n,
        "highest of one wording": most / n,
        "any wording": len(together) / n,
    }
