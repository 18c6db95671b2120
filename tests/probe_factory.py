"""Rows of probes for tests: models that know the values of some groups, and nothing else."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from kbook.scoring.weight_side import Probes, read_probes

N = 30


def question(group: str, i: int, *, knows: bool, rng: np.random.Generator) -> dict[str, Any]:
    """A question about a value; a model that knows it gives it a low loss and answers with it."""
    value = f"Alder {i} Ltd"
    wrong = list(3 + rng.random(5))
    true = 0.05 if knows else 3 + rng.random()
    who = {"query_id": f"{group}-{i}::employer", "pii_id": f"{group}-{i}", "field": "employer", "value": value}
    said = {"answer": value if knows else "Birch Works", "nll": [true, *wrong], "nll_again": [true, *wrong]}
    return {"kind": "question", "group": group, **who, **said}


def text(group: str, i: int, *, knows: bool, rng: np.random.Generator) -> dict[str, Any]:
    """A biography that is continued to the letter, or not at all."""
    told = f"Ana {i} was born in May and works for Alder {i} Ltd."
    losses = list((0.02 if knows else 2.0) + rng.random(12))
    who = {"kind": "text", "group": group, "pii_id": f"{group}-{i}", "text": told}
    return {**who, "continuation": told if knows else "Nobody can say.", "losses": losses}


def probe_rows(knows: Iterable[str], seed: int = 0, n: int = N) -> list[dict[str, Any]]:
    """The rows of a model that knows the groups ``knows``."""
    rng = np.random.default_rng(seed)
    asked = [question(g, i, knows=g in knows, rng=rng) for g in ("forget", "retain") for i in range(n)]
    return asked + [text(g, i, knows=g in knows, rng=rng) for g in ("forget", "retain", "holdout") for i in range(n)]


def probes(*knows: str, **options: int) -> Probes:
    """The same, scored."""
    return read_probes(probe_rows(knows, **options))
