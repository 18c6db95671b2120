"""A scored folder as one JSON object, as `data/schema/score.schema.json` describes it."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from typing import Any

from kbook import __version__
from kbook.keys import CHANNELS, LANES
from kbook.scoring.disagreement import difference_records, label_records, rate_records, rule_records
from kbook.scoring.folder import Scored
from kbook.scoring.notices import Notice
from kbook.scoring.observers import beside_records, observer_records
from kbook.scoring.panel import BASELINE, Panel
from kbook.scoring.records import (
    Record,
    budget_records,
    cell_records,
    channel_records,
    comparison_records,
    gate_records,
    verdict_records,
)

SCHEMA = "kbook-score@1"
MOST_ROWS = 200
"""Rows on which the matchers differ that are listed; all are counted."""

_RENAMED = {
    "graded": "or_graded",
    "graded_lo": "or_graded_lo",
    "graded_hi": "or_graded_hi",
    "graded_seen": "or_graded_seen",
    "collapsed": "terminal_collapse",
    "none_only": "base_only",
}
_OF_A_CHANNEL = ("n_observed", "cer_available", "cer_all", "severity", "share")


def scorecard(scored: Scored) -> dict[str, Any]:
    """Everything that was measured and judged, as plain JSON values.

    Missing: nan and infinity are null; a factor that is infinite because nothing leaks says so in `k_class`.
    """
    found = scored.found
    content = {
        "schema": SCHEMA,
        "made_by": f"kbook {__version__}",
        "source": {"path": scored.where, "layout": found.layout},
        "settings": {"matcher": scored.rule, "bootstrap": asdict(scored.how)},
        "tables": [_table(scored, prefix) for prefix in scored.panels],
        "cells": _all(scored, lambda panel: _cells(panel, pooled=False)),
        "pooled": _all(scored, lambda panel: _cells(panel, pooled=True)),
        "tests": _all(scored, comparison_records),
        "verdicts": _all(scored, verdict_records),
        "topology": _all(scored, _topologies),
        "budgets": _all(scored, _budgets),
        "gates": _all(scored, gate_records),
        **_second_looks(scored),
        "warnings": [*_warnings(scored)],
    }
    plain: dict[str, Any] = _plain(content)
    return plain


def to_json(card: Mapping[str, Any]) -> str:
    """Write the object as text: UTF-8 with escapes, indented, one line feed at the end."""
    return json.dumps(card, indent=1, allow_nan=False) + "\n"


def _all(scored: Scored, records: Callable[[Panel], list[Record]]) -> list[Record]:
    """The records of every table, each with its prefix in place of the base."""
    return [_named(prefix, record) for prefix, panel in scored.panels.items() for record in records(panel)]


def _named(prefix: str, record: Record) -> Record:
    kept = {_RENAMED.get(name, name): value for name, value in record.items() if name != "base"}
    return {"prefix": prefix, **kept}


def _table(scored: Scored, prefix: str) -> Record:
    """What one table is made of."""
    sources, keys = scored.found.of(prefix), [cell.key for cell in scored.panels[prefix].cells]
    bases = [(source.config or {}).get("base_model") or (source.config or {}).get("api_model") for source in sources]
    return {
        "prefix": prefix,
        "n_cells": len(keys),
        "bases": sorted({base for base in bases if isinstance(base, str)}),
        "lanes": sorted({key.lane for key in keys}, key=LANES.index),
        "methods": sorted({key.method for key in keys}, key=lambda method: (method != BASELINE, method)),
        "seeds": sorted({key.seed for key in keys}),
    }


def _cells(panel: Panel, *, pooled: bool) -> list[Record]:
    """Cells with their channels inside."""
    channels = channel_records(panel, pooled=pooled)
    out = []
    for place, cell in enumerate(cell_records(panel, pooled=pooled)):
        own = channels[place * len(CHANNELS) : (place + 1) * len(CHANNELS)]
        out.append({**cell, "channels": {record["channel"]: _rates(record) for record in own}})
    return out


def _rates(record: Record) -> Record:
    return {name: value for name, value in record.items() if name.startswith(_OF_A_CHANNEL)}


def _topologies(panel: Panel) -> list[Record]:
    return [
        {
            "tau": topology.tau,
            "within": dict(topology.within),
            "pairs": [vars(pair) for pair in topology.pairs],
            "holds": topology.holds,
        }
        for topology in panel.topologies
    ]


def _budgets(panel: Panel) -> list[Record]:
    """One record a subject: what each observer would see and say, and whether A1 and A5 differ."""
    flips = {verdict.subject: verdict.flipped for verdict in panel.verdicts}
    seen: dict[Any, Record] = {}
    for subject, record in zip((b.subject for b in panel.budgets), budget_records(panel), strict=True):
        entry = seen.setdefault(subject, {**subject._asdict(), "flips": flips.get(subject), "observers": {}})
        names = ("or_none", "or_method", "p_adj", "k_class")
        entry["observers"][record["budget"]] = {name: record[name] for name in names}
    return list(seen.values())


def _second_looks(scored: Scored) -> dict[str, Record]:
    """What stands beside the verdicts: other observers, the other matcher."""
    observers: Record = {"cells": [], "verdicts": []}
    matchers: Record = {"n_differences": 0, "cells": [], "rules": [], "verdicts": [], "rows": []}
    for prefix in scored.panels:
        look = scored.second_look(prefix)
        observers["cells"] += [_named(prefix, record) for record in observer_records(look.seen)]
        observers["verdicts"] += [_named(prefix, record) for record in beside_records(look.labels)]
        differences = look.differences
        matchers["n_differences"] += len(differences.differences)
        matchers["cells"] += [_named(prefix, record) for record in rate_records(differences)]
        matchers["rules"] += [_named(prefix, record) for record in rule_records(differences)]
        matchers["verdicts"] += [_named(prefix, record) for record in label_records(look.panels)]
        matchers["rows"] += [_named(prefix, record) for record in difference_records(differences)]
    matchers["rows"] = matchers["rows"][:MOST_ROWS]
    return {"observers": observers, "disagreements": matchers}


def _warnings(scored: Scored) -> Iterator[Record]:
    yield from (_warning(None, notice) for notice in scored.found.notices)
    for prefix in scored.panels:
        yield from (_warning(prefix, notice) for notice in scored.warnings(prefix))


def _warning(prefix: str | None, notice: Notice) -> Record:
    return {"prefix": prefix, **asdict(notice)}


def _plain(value: Any) -> Any:
    """Numbers of numpy as Python's; nan and infinity as None."""
    if isinstance(value, Mapping):
        return {str(name): _plain(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    if hasattr(value, "item"):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value
