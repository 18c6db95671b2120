"""Minutes that each method takes, by base: its fit (methods that edit weights), and its cells by lane.

    python benchmarks/methods.py [--profile laptop]

Nothing is timed here: the manifests of a run store say how long each run took. Run it after a book whose store was
empty (`make book-fresh`); runs that were computed side by side share the machine.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from pathlib import Path

from kbook.checkpoints import PROTOCOL
from kbook.keys import CellKey, ModelKey
from kbook.manifests import hardware
from kbook.store import Run, Store

RECIPE = "full"  # of the injected models that the chapters on methods edit
RESULT = Path(__file__).with_name("methods.json")


def place(run: Run) -> tuple[str, str, str] | None:
    """Base, method (or injection) and what was done: ``fit``, or the lane that was answered in; None for other runs."""
    key = run.key
    if key.protocol != PROTOCOL or key.seed and isinstance(key, ModelKey):
        return None
    if isinstance(key, CellKey) and not key.variant:
        return key.base, key.method, key.lane
    if isinstance(key, ModelKey) and run.manifest.n_rows is None and key.variant in ("", f"inject-{RECIPE}"):
        return key.base, key.recipe, "fit"
    return None


def main(profile: str) -> None:
    minutes: dict[tuple[str, str], dict[str, float]] = defaultdict(lambda: defaultdict(float))
    for run in Store().find():
        if run.manifest.profile == profile and (found := place(run)):
            minutes[found[:2]][found[2]] += run.manifest.seconds / 60
    rows = [
        {"base": base, "method": method} | {what: round(value, 2) for what, value in sorted(spent.items())}
        for (base, method), spent in sorted(minutes.items())
    ]
    total = round(sum(sum(spent.values()) for spent in minutes.values()), 1)
    result = {"profile": profile, "minutes in all": total, "hardware": hardware(), "methods": rows}
    RESULT.write_text(json.dumps(result, indent=1) + "\n")
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--profile", default="laptop")
    main(parser.parse_args().profile)
