"""Tables of the chapter on a method of one's own: what it can be told, and what its fit did."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

NOTHING = "–"


def setting_frame(described: Mapping[str, Any]) -> pd.DataFrame:
    """The settings of a method: default and meaning.

    Args:
        described: as `kbook.methods.registry.description` gives it.
    """
    rows = [
        {"setting": name, "default": str(setting["default"]), "meaning": setting["meaning"]}
        for name, setting in described["settings"].items()
    ]
    return pd.DataFrame(rows or [{"setting": NOTHING, "default": NOTHING, "meaning": "it has no settings"}])


def fit_frame(extra: Mapping[str, Any]) -> pd.DataFrame:
    """NLL per token of the fitting pools before and after an edit of weights.

    Args:
        extra: what the fit reported.

    Unit: nats per token.
    Missing: a method that reports no NLL has a row that says so.
    """
    nll = extra.get("nll")
    if not nll:
        return pd.DataFrame({"pool": ["none: the fit reports no likelihoods"]})
    before, after = nll["before"], nll["after"]
    rows = [{"pool": pool, "before": before[pool], "after": after[pool]} for pool in before]
    return pd.DataFrame(rows).assign(change=lambda frame: frame["after"] - frame["before"])


def steps_in_words(extra: Mapping[str, Any]) -> str:
    """How the fit ended, in words."""
    if "steps" not in extra:
        return "nothing was trained"
    ended = extra.get("stopped")
    return f"{extra['steps']} steps" + (f", stopped early: {ended}" if ended else ", to the end")
