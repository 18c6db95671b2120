"""Cells of our own run store, read as transcripts of any other origin are."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from kbook.journal import ROWS
from kbook.keys import CellKey
from kbook.manifests import Manifest
from kbook.scoring.notices import Notice
from kbook.scoring.sources import PROTOCOL, Found, Source, in_order
from kbook.store import Store


class _Cell(NamedTuple):
    """A complete run that holds the transcript of a cell."""

    key: CellKey
    path: Path
    made: Manifest

    @property
    def table(self) -> str:
        return f"{self.key.base}.{self.made.profile}"

    @property
    def origin(self) -> tuple[str, str]:
        """What makes cells comparable beyond their names: weights of the base and people of the corpus."""
        return str(self.made.parts["base"]), str(self.made.parts["inputs"].get("corpus", ""))


def find_runs(path: Path) -> Found:
    """List the cells of a run store, or of any part of it.

    Cells are judged in one table when they share base and profile. Of runs of the same cell the newest is
    read, and only of the base and the corpus of the newest run of the table; what is left out is named.
    """
    store = Store(path)
    tables: dict[str, list[_Cell]] = defaultdict(list)
    for run in store.find():
        if isinstance(run.key, CellKey) and run.key.protocol == PROTOCOL and run.manifest.n_rows is not None:
            cell = _Cell(run.key, run.path, run.manifest)
            tables[cell.table].append(cell)
    sources, notices, reasons = [], list(_unfinished(store.unfinished())), {}
    for prefix, cells in tables.items():
        origin = max(cells, key=lambda cell: cell.made.ended).origin
        current = sorted((cell for cell in cells if cell.origin == origin), key=lambda cell: cell.made.ended)
        newest = {cell.key: cell for cell in current}
        sources += [_source(prefix, cell) for cell in newest.values()]
        notices += _left_out(prefix, len(cells) - len(current), len(current) - len(newest))
        reasons[prefix] = _out_of_reach(newest)
    return Found("run store", in_order(sources), tuple(notices), reasons)


def _source(prefix: str, cell: _Cell) -> Source:
    return Source(prefix, cell.key, cell.path / ROWS, _config(cell), cell.made.checksums.get(ROWS, ""))


def _config(cell: _Cell) -> dict[str, Any]:
    """What a sidecar says of one of our own cells: in the words of the public harness, and then in ours."""
    key, made, parts = cell.key, cell.made, cell.made.parts
    model = parts["inputs"].get("model", "")
    return {
        "substrate": key.lane,
        "query_subset": key.split,
        "seed": key.seed,
        "n_sample": made.n_rows,
        "model": f"{key.base}@{model[:12]}" if model else key.base,
        "base_model": key.base,
        "base_digest": parts["base"],
        "api_model": None,
        "method": key.method,
        "profile": made.profile,
        "parameters": parts["parameters"],
        "inputs": parts["inputs"],
        "digest": made.digest,
        "commit": made.commit,
        "versions": made.versions,
        "seconds": made.seconds,
        "started": made.started,
        "ended": made.ended,
    }


def _out_of_reach(cells: Mapping[CellKey, _Cell]) -> dict[tuple[str, str], str]:
    """(lane, method) → why a method of this book cannot reach a lane that others of the table have."""
    lanes, methods = {key.lane for key in cells}, {key.method for key in cells}
    gaps = {(lane, method) for lane in lanes for method in methods} - {(key.lane, key.method) for key in cells}
    if not gaps:
        return {}
    from kbook.methods.registry import METHODS, method_class, why_not  # loads torch

    known = {(lane, method): why_not(method_class(method), lane) for lane, method in gaps if method in METHODS}
    return {place: reason for place, reason in known.items() if reason is not None}


def _unfinished(folders: Sequence[Path]) -> Iterator[Notice]:
    if folders:
        text = f"{len(folders)} runs are not finished and are left out"
        yield Notice("run_unfinished", str(folders[0]), text)


def _left_out(prefix: str, others: int, superseded: int) -> Iterator[Notice]:
    if others:
        text = f"{others} runs of another base or corpus than the newest are left out"
        yield Notice("run_of_other_origin", prefix, text)
    if superseded:
        yield Notice("run_superseded", prefix, f"{superseded} older runs of the same cells are left out")
