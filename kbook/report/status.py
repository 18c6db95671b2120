"""Generated pages: who computed this book, on what, in how long; and every parameter of every chapter."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from kbook.manifests import Manifest
from kbook.report.artifacts import commit_text, duration, minute
from kbook.report.parameters import Parameter, typed
from kbook.report.tables import MAX_ROWS, to_myst

STATUS, PARAMETERS = "status", "parameters"
"""Names of the generated pages; no chapter can have them."""


@dataclass(frozen=True)
class ChapterRecord:
    """How one chapter was run; `chapter.json` in its folder.

    Args:
        name: of the chapter.
        profile: under which it ran.
        parameters: the value of each.
        seconds: wall time from the first cell to the last.
        ended: when, ISO 8601 in UTC.
        commit: as in `Manifest`.
        versions, hardware: as in `Manifest`.
        n_artifacts: figures and tables that it publishes.
        runs: keys of the runs behind them.
    """

    name: str
    profile: str
    parameters: Mapping[str, Any]
    seconds: float
    ended: str
    commit: Mapping[str, Any]
    versions: Mapping[str, str]
    hardware: Mapping[str, Any]
    n_artifacts: int
    runs: tuple[str, ...]


def status_page(chapters: Sequence[ChapterRecord], runs: Sequence[Manifest], outdated: Collection[str] = ()) -> str:
    """Write the status page from the records of the chapters and the manifests of the runs.

    Args:
        chapters: how each was run.
        runs: manifests of the runs in the store.
        outdated: digests of the runs that were made by other source text than the present.

    Missing: without chapters or runs the page says that there are none.
    """
    return (
        "\n\n".join(
            [
                "# Status",
                "Who computed this book, on what, and in how long. Generated when the book is built.",
                "## Software and machine",
                _machines(chapters, runs),
                "## Chapters",
                _chapters(chapters),
                "## Runs",
                _runs(runs, outdated),
            ]
        )
        + "\n"
    )


def parameters_page(chapters: Mapping[str, Sequence[Parameter]]) -> str:
    """Write the reference of all parameters: what each means, and which values it takes."""
    head = (
        "# Parameters\n\nWhat can be set with `kbook run CHAPTER -p name=value`. An unknown name, a "
        "value of the wrong type or one out of range is refused before anything runs.\n"
    )
    columns = ["parameter", "type", "default", "allowed", "meaning"]
    sections = []
    for name, parameters in chapters.items():
        rows = [(p.name, p.kind, typed(p.default), p.allowed or "any", p.meaning) for p in parameters]
        sections.append(f"## `{name}`\n\n{to_myst(pd.DataFrame(rows, columns=columns))}\n")
    return "\n".join([head, *sections])


def _machines(chapters: Sequence[ChapterRecord], runs: Sequence[Manifest]) -> str:
    """One line a distinct combination of versions and hardware, with how much was computed on it."""
    where: dict[tuple[str, str], int] = {}
    everything: list[ChapterRecord | Manifest] = [*chapters, *runs]
    for made in everything:
        software = ", ".join(f"{name} {version}" for name, version in made.versions.items())
        place = (software, _machine(made.hardware))
        where[place] = where.get(place, 0) + 1
    if not where:
        return "Nothing has been computed yet."
    rows = [(software, machine, count) for (software, machine), count in where.items()]
    return to_myst(pd.DataFrame(rows, columns=["software", "machine", "chapters and runs"]))


def _machine(hardware: Mapping[str, Any]) -> str:
    parts = [
        hardware["cpu"],
        f"{hardware['n_cpus']} CPUs",
        f"{hardware['memory_gb']:.0f} GB",
        hardware["system"],
    ]
    return ", ".join([*map(str, parts), *hardware["gpus"]])


def _chapters(chapters: Sequence[ChapterRecord]) -> str:
    if not chapters:
        return "No chapter has been run yet."
    rows = [
        (
            c.name,
            c.profile,
            duration(c.seconds),
            minute(c.ended),
            commit_text(c.commit),
            c.n_artifacts,
            len(c.runs),
        )
        for c in chapters
    ]
    columns = ["chapter", "profile", "took", "ended (UTC)", "commit", "figures and tables", "runs"]
    total = duration(sum(c.seconds for c in chapters))
    return f"{to_myst(pd.DataFrame(rows, columns=columns))}\n\nTogether they took {total}."


def _runs(runs: Sequence[Manifest], outdated: Collection[str]) -> str:
    """The newest run of each key, one line for all seeds of a cell or model."""
    if not runs:
        return "The run store is empty."
    newest = {run.key: run for run in sorted(runs, key=lambda run: run.ended)}
    groups: dict[str, list[Manifest]] = {}
    for _, run in sorted(newest.items()):
        groups.setdefault(run.key.replace(f"/seed={run.seed}", ""), []).append(run)
    rows = [_group_row(name, group) for name, group in groups.items()]
    columns = ["run", "seeds", "profile", "rows", "took", "ended (UTC)", "commit"]
    tables = [rows[start : start + MAX_ROWS] for start in range(0, len(rows), MAX_ROWS)]
    total = duration(sum(run.seconds for run in newest.values()))
    count = "1 complete run" if len(newest) == 1 else f"{len(newest)} complete runs"
    head = f"{count}, {total} of work; of each, the newest. Digests and older runs: `kbook cells`."
    if n_old := sum(run.digest in outdated for run in newest.values()):
        head += f" {n_old} of them were made by other source text than the present: `kbook book --fresh` computes anew."
    return "\n\n".join([head, *(to_myst(pd.DataFrame(part, columns=columns)) for part in tables)])


def _group_row(name: str, group: Sequence[Manifest]) -> tuple[object, ...]:
    counts = [run.n_rows for run in group if run.n_rows is not None]
    distinct = dict.fromkeys(commit_text(run.commit) for run in group)
    return (
        name,
        ", ".join(str(run.seed) for run in sorted(group, key=lambda run: run.seed)),
        ", ".join(dict.fromkeys(run.profile for run in group)),
        str(sum(counts)) if counts else "files",
        duration(sum(run.seconds for run in group)),
        minute(max(run.ended for run in group)),
        ", ".join(distinct),
    )
