"""What the reference pages of methods take from the code: facts and settings, beside prose that is written by hand.

Each page `book/methods/NAME.md` includes two generated parts: its title with the facts, and its settings. The
index includes one table of all methods. What the registry knows is typed nowhere else.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

import pandas as pd

from kbook.keys import LANES
from kbook.report.tables import to_myst
from kbook.report.text import escape_text

FACTS = "method_facts"
"""Folder of the generated parts, beside the pages of chapters; no chapter can have that name."""
INDEX = "index"

PLACES = {
    "control": "nothing that it aims at: a control",
    "embeddings": "input embeddings, while text is read",
    "activations": "hidden states, in every pass",
    "text": "the agent's text, turn by turn",
    "logits": "next-token logits, while text is written",
    "weights": "the model's weights, before any agent runs",
}
"""Family to the place where its methods act, in the order of the index."""

_EVERYWHERE = "it acts while an agent runs, on whatever text the model is given"
_IN_WEIGHTS = "there the model tells the fact from its weights"

Entry = Mapping[str, Any]
"""One method as `kbook.methods.registry.described` gives it."""


def generated_parts(methods: Iterable[Entry], modules: Mapping[str, str]) -> dict[str, str]:
    """Write all generated parts: file name without suffix to its text.

    Args:
        methods: of the registry.
        modules: method name to the module that holds it.
    """
    methods = in_order(methods)
    parts = {entry["name"]: facts(entry, modules[entry["name"]]) for entry in methods}
    parts |= {f"{entry['name']}-settings": settings(entry) for entry in methods}
    return parts | {INDEX: overview(methods)}


def in_order(methods: Iterable[Entry]) -> list[Entry]:
    """Sort methods by the place where they act, and leave those of one family in their order."""
    places = list(PLACES)
    return sorted(methods, key=lambda entry: places.index(entry["family"]))


def facts(entry: Entry, module: str) -> str:
    """Write a page's title and what the registry says of the method, as a list of definitions."""
    lanes = tuple(entry["lanes"])
    reason = _EVERYWHERE if set(lanes) == set(LANES) else _IN_WEIGHTS if lanes == ("P",) else ""
    others = [lane for lane in LANES if lane not in lanes]
    file = f"{module.replace('.', '/')}.py"
    rows = {
        "Name": f"`{entry['name']}`, family *{entry['family']}*",
        "Acts on": escape_text(PLACES[entry["family"]]),
        "Reaches": _with_reason(lanes, reason),
        "Does not reach": _with_reason(others, entry["reason"]) if others else "",
        "Source": escape_text(entry["source"]),
        "Code": f"{{download}}`{file} </{file}>`",
    }
    return f"# {escape_text(entry['title'])}\n\n{_definitions(rows)}"


def settings(entry: Entry) -> str:
    """Write the table of a method's settings, values as they stand in a profile."""
    if not entry["settings"]:
        return "## Settings\n\nIt has none.\n"
    rows = [(name, json.dumps(told["default"]), told["meaning"]) for name, told in entry["settings"].items()]
    table = to_myst(pd.DataFrame(rows, columns=["setting", "default", "meaning"]))
    return f"## Settings\n\nOf `[methods.{entry['name']}]` in a profile:\n\n{table}\n"


def overview(methods: Iterable[Entry]) -> str:
    """Write where each family acts, and the table of all methods, each linked to its page by its title."""
    families = {f"*{family}*": escape_text(place) for family, place in PLACES.items()}
    lines = ["| method | name | family | lanes |", "| :--- | :--- | :--- | :--- |"]
    for entry in methods:
        family, lanes = escape_text(entry["family"]), escape_text(", ".join(entry["lanes"]))
        lines.append(f"| {{ref}}`method-{entry['name']}` | `{entry['name']}` | {family} | {lanes} |")
    return f"{_definitions(families)}\n" + "\n".join(lines) + "\n"


def _definitions(texts: Mapping[str, str]) -> str:
    listed = "\n\n".join(f"{term}\n: {text}" for term, text in texts.items() if text)
    return f":::{{div}} kbook-facts\n{listed}\n:::\n"


def _with_reason(lanes: Iterable[str], reason: str) -> str:
    return escape_text(": ".join(part for part in (", ".join(lanes), reason) if part), limit=1000)
