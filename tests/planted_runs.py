"""Runs of planted rows, as the store gives them: a key, rows, and a manifest that tells of settings and fits."""

from types import SimpleNamespace
from typing import Any

from transcript_factory import key

from kbook.scoring.cells import score_rows
from kbook.scoring.panel import Panel, judge


def run(rows: list[dict[str, Any]], *, fit: Any = (), settings: Any = None, **names: Any) -> Any:
    """A finished cell; `names` are those of `transcript_factory.key`."""
    manifest = SimpleNamespace(extra={"fit": list(fit)}, parts={"parameters": {"settings": settings or {}}})
    return SimpleNamespace(key=key(**names), rows=lambda: rows, manifest=manifest)


def judged(runs: list[Any]) -> Panel:
    return judge([score_rows(each.rows(), each.key) for each in runs])
