"""Find the cells of a folder, whoever made it, and score them.

Three layouts are told apart by what lies there: a bundle (`bundle.json`), official files
(`PREFIX_LANE_METHOD_SPLIT_seedN.jsonl`), and our own run store or a part of it (`manifest.json` in folders).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from kbook.errors import KBookError
from kbook.keys import OfficialName, parse_official
from kbook.scoring.bundle import MANIFEST as BUNDLE
from kbook.scoring.bundle import open_bundle
from kbook.scoring.cells import CellScores, Reading, read_rows, score_reading
from kbook.scoring.completeness import row_notes
from kbook.scoring.inference import Bootstrap
from kbook.scoring.matching import matcher
from kbook.scoring.notices import Notice
from kbook.scoring.panel import DEFAULT, Panel, judge
from kbook.scoring.runs import find_runs
from kbook.scoring.second_look import SecondLook, look_again
from kbook.scoring.sidecars import check_bases, read_sidecar
from kbook.scoring.sources import (
    PROTOCOL,
    Found,
    Reasons,
    Source,
    in_order,
    read_json,
    read_reasons,
    without_sidecar,
)

REASONS = "not_applicable.json"
"""Beside official files: which method cannot reach which lane, and why."""


@dataclass(frozen=True)
class Scored:
    """A folder, scored: one panel a prefix, and what was found to make it.

    Args:
        where: the folder, as it was given.
        found: its cells and the notices about its files.
        readings: prefix → its cells as they were read, in the order of the panel's cells.
        panels: prefix → judged table.
        notices: prefix → what a reader must know of the table's files.
        rule: name of the matcher.
        how: the bootstrap.
    """

    where: str
    found: Found
    readings: Mapping[str, tuple[Reading, ...]]
    panels: Mapping[str, Panel]
    notices: Mapping[str, tuple[Notice, ...]]
    rule: str
    how: Bootstrap

    def warnings(self, prefix: str) -> tuple[Notice, ...]:
        """All that a reader of one table must know: of its files, of its cells together, and of their rows."""
        panel = self.panels[prefix]
        return (*self.notices[prefix], *panel.warnings, *row_notes(panel.cells))

    def second_look(self, prefix: str) -> SecondLook:
        """What stands beside the verdicts of one table; computed anew at each call."""
        reasons = self.found.not_applicable.get(prefix)
        return look_again(self.panels[prefix], self.readings[prefix], self.rule, self.how, reasons)


def find_cells(path: Path, prefix: str | None = None) -> Found:
    """List the cells of a folder without reading their rows.

    Args:
        path: folder of official files, run store or bundle.
        prefix: only the cells of this table.

    Raises:
        KBookError: there is no cell (with this prefix), two files hold the same cell, a sidecar or a manifest
            is damaged or contradicts its cell, or a bundle is not sound.
    Source: protocol A §5.
    """
    if not path.is_dir():
        raise KBookError("is not a folder", str(path), "Give the folder that holds the transcript files")
    if (path / BUNDLE).exists():
        found = open_bundle(path)
    else:
        found = _official_files(path)
        found = found if found.sources else find_runs(path)
    if not found.sources:
        remedy = "Name the files PREFIX_LANE_METHOD_SPLIT_seedN.jsonl, as in v77app_R-text_eco_forget_seed0.jsonl"
        raise KBookError("holds no transcript file, no bundle and no run store", str(path), remedy)
    return found.only(prefix, str(path))


def read_folder(
    path: Path, prefix: str | None = None, *, rule: str = "published", ids_only: bool = False
) -> dict[str, list[CellScores]]:
    """Read and score every cell of a folder: prefix → cells.

    Args:
        path, prefix: as `find_cells`.
        rule: name of the matcher.
        ids_only: as in `transcripts.read_trace`.

    Missing: as `cells.score_rows`.
    Raises:
        KBookError: as `find_cells`, or a file of rows is unreadable.
    """
    found = find_cells(path, prefix)
    readings = {name: _read(found.of(name), ids_only) for name in found.prefixes}
    return {name: [score_reading(reading, rule) for reading in read] for name, read in readings.items()}


def score_folder(path: Path, prefix: str | None = None, *, rule: str = "published", how: Bootstrap = DEFAULT) -> Scored:
    """Score and judge every table of a folder.

    Args:
        path, prefix: as `find_cells`.
        rule: name of the matcher.
        how: the bootstrap.

    Raises:
        KBookError: as `read_folder`, or cells that would be compared come from different bases.
    """
    matcher(rule)
    found = find_cells(path, prefix)
    notices = {prefix: _notices(found, prefix) for prefix in found.prefixes}
    readings = {name: _read(found.of(name)) for name in found.prefixes}
    panels = {}
    for name, read in readings.items():
        cells = [score_reading(reading, rule) for reading in read]
        panels[name] = judge(cells, how=how, not_applicable=found.not_applicable.get(name))
        notices[name] += tuple(_other_counts(found.of(name), cells))
    return Scored(str(path), found, readings, panels, notices, rule, how)


def _official_files(path: Path) -> Found:
    named = [(file, name) for file in sorted(path.glob("*.jsonl")) if (name := _official(file)) is not None]
    sources = in_order([_source(file, name) for file, name in named])
    known = path / REASONS
    reasons: Reasons = read_reasons(read_json(known, "a list"), str(known)) if known.exists() else {}
    prefixes = dict.fromkeys(source.prefix for source in sources)
    return Found("official files", sources, not_applicable={prefix: reasons for prefix in prefixes})


def _source(file: Path, name: OfficialName) -> Source:
    try:
        key = name.cell(PROTOCOL, name.prefix)
    except KBookError as error:
        raise KBookError(error.what, str(file), error.remedy) from None
    return Source(name.prefix, key, file, read_sidecar(file, name))


def _official(file: Path) -> OfficialName | None:
    try:
        return parse_official(file.stem) if file.is_file() else None
    except KBookError:
        return None


def _read(sources: Sequence[Source], ids_only: bool = False) -> tuple[Reading, ...]:
    return tuple(read_rows(source.rows(), source.key, ids_only=ids_only) for source in sources)


def _notices(found: Found, prefix: str) -> tuple[Notice, ...]:
    sources = found.of(prefix)
    return (*without_sidecar(sources), *check_bases(sources))


def _other_counts(sources: tuple[Source, ...], cells: list[CellScores]) -> Iterator[Notice]:
    """Name the cells that hold another number of queries than their sidecar says were asked."""
    for source, cell in zip(sources, cells, strict=True):
        asked = (source.config or {}).get("n_sample")
        if isinstance(asked, int) and asked != cell.n:
            text = f"it has {cell.n} queries, of {asked} that were asked"
            yield Notice("cell_incomplete", str(cell.key), text)
