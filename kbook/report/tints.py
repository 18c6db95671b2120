"""The colour of each kind of verdict, the same in figures, tables and reports."""

from __future__ import annotations

TINTS = {
    "K-REF": "#7FBF9F",
    "K-SUP": "#F2C57C",
    "measured failure": "#E59A8A",
    "ambiguous": "#DDDDDD",
    "preserved": "#7FBF9F",
    "broken": "#E59A8A",
    "weakened": "#F2C57C",
    "off-target gain": "#9CC3E6",
    "substrate-broken": "#BBBBBB",
}
WHITE = "#FFFFFF"
IDLE = "#F3F3F3"
"""Behind words that are no verdict: not applicable, nothing was changed, not judged."""


def tint(label: str) -> str:
    """The tint of a label by the kind of verdict that it begins with; white for any other."""
    return next((colour for kind, colour in TINTS.items() if label.startswith(kind)), WHITE)
