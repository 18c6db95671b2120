"""One call publishes a figure, a table, a trace or a number of a chapter.

    publish_figure("fig-kbench_topology-shares", *figures.shares(frame, ...), caption=..., alt=..., runs=runs)
    publish_table("tab-kbench_topology-rates", frame, caption=..., runs=runs, formats={"OR(all)": ".3f"})
    publish_trace("tab-kbench_agent-trace", row, caption=..., runs=[run])
    glue_number("or-all-rtext", 0.602, kind="published")     # in prose: {glue:text}`or-all-rtext:.2f`

Each call shows the same thing at once in JupyterLab.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from numbers import Integral
from typing import Any

import pandas as pd
from matplotlib.figure import Figure
from pandas.api.types import is_numeric_dtype

from kbook.errors import KBookError, unknown_name
from kbook.keys import ArtifactKey
from kbook.report import figures, tables, traces
from kbook.report.artifacts import (
    CONSTRUCTED,
    KINDS,
    MEASURED,
    NUMBER_MIME,
    PUBLISHED,
    SCORED,
    Artifact,
    Given,
    Provenance,
    RunLike,
    RunRecord,
)
from kbook.report.published import MARK, Published

__all__ = ["glue_number", "publish_figure", "publish_table", "publish_trace"]

Source = Published | Given
_NUMBER_KEY = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_MIN_WORDS = 4


def publish_figure(
    key: str,
    figure: Figure,
    data: pd.DataFrame,
    *,
    caption: str,
    alt: str,
    runs: Iterable[RunLike] = (),
    kind: str = MEASURED,
    sources: Source | Sequence[Source] = (),
    fold: str = "",
) -> None:
    """Publish a figure with the data behind it.

    Args:
        key: `fig-<chapter>-<slug>`; refer to the figure by {numref}`key`.
        figure, data: as the builders of `figures` return them, or any matplotlib figure and its tidy frame.
        caption: one paragraph of MyST: what is shown, in which unit, and what to see in it.
        alt: what is to be seen, in words, for readers who do not see it.
        runs: the runs behind what was measured.
        kind: "measured", "published", "constructed" (nothing was measured) or "scored" (from transcripts that
            were given).
        sources: the published tables behind columns named `… (published)`, or the transcripts.
        fold: title of a closed box to put it into, for what only some readers need.
    Raises:
        KBookError: caption or alt are missing, text is too small to print, published and measured numbers
            share a column, or the runs or sources do not fit the kind.
    """
    _check_key(key, "fig")
    alt = _words(alt, "alt", key)
    if re.search(r"\.(svg|png|jpe?g)\b", alt, re.IGNORECASE):
        raise KBookError("the alt text names a file", key, "Say what is to be seen")
    figures.check_legible(figure, key)
    provenance = _provenance(key, data, runs, kind, sources)
    svg = figures.to_svg(figure, key)
    _close(figure)
    caption = _words(caption, "caption", key)
    _show(Artifact(key, caption, provenance, tables.to_csv(data), svg=svg, alt=alt, fold=fold))


def publish_table(
    key: str,
    frame: pd.DataFrame,
    *,
    caption: str,
    runs: Iterable[RunLike] = (),
    kind: str = MEASURED,
    formats: Mapping[str, str] | None = None,
    sources: Source | Sequence[Source] = (),
    fold: str = "",
) -> None:
    """Publish a table; the CSV beside it holds the same columns in full precision.

    Args:
        key: `tab-<chapter>-<slug>`; refer to the table by {numref}`key`.
        frame: at most 100 rows, its columns named for readers; its index is not shown.
        caption, runs, kind, sources, fold: as in `publish_figure`.
        formats: column → format specification; floats get ".3f" otherwise.
    Raises:
        KBookError: as `publish_figure` and `tables.to_myst`.
    """
    _check_key(key, "tab")
    body = tables.to_myst(frame, formats)
    provenance = _provenance(key, frame, runs, kind, sources)
    preview = frame.to_html(index=False, border=0)
    caption = _words(caption, "caption", key)
    _show(Artifact(key, caption, provenance, tables.to_csv(frame), body=body, preview=preview, fold=fold))


def publish_trace(
    key: str,
    row: Mapping[str, Any],
    *,
    caption: str,
    runs: Iterable[RunLike] = (),
    kind: str = MEASURED,
    matcher: str = "published",
    fold: str = "",
) -> None:
    """Publish one trace of an agent step by step, each step with its channels and the secret where it shows.

    Args:
        key: `tab-<chapter>-<slug>`: a trace is a table of its steps.
        row: one row of a transcript in the official format; its text is shown as inert text.
        caption, runs, kind, fold: as in `publish_figure`.
        matcher: name of the matcher that says where the value shows.
    """
    _check_key(key, "tab")
    steps = traces.read_steps(row, matcher)
    data = traces.to_frame(steps)
    provenance = _provenance(key, data, runs, kind, ())
    artifact = Artifact(
        key,
        _words(caption, "caption", key),
        provenance,
        tables.to_csv(data),
        body=traces.to_myst(steps),
        preview=data.to_html(index=False, border=0),
        fold=fold,
    )
    _show(artifact)


def glue_number(key: str, value: float | str, *, kind: str = MEASURED) -> None:
    """Give a number, or a short text that was computed, a name for the prose of the same chapter.

    In a Markdown cell {glue:text}`key:.2f` stands for the number; a published one is marked as such.

    Args:
        key: lower-case words joined by hyphens.
        value: a finite number, or a text (a name, "none").
        kind: as in `publish_figure`.
    Raises:
        KBookError: the key is malformed, or the number is missing (say in words why there is none).
    """
    if not _NUMBER_KEY.fullmatch(key):
        raise KBookError(f"{key!r} cannot name a number", "glue_number", "Write it like or-all-rtext")
    if kind not in KINDS:
        raise unknown_name("kind", kind, KINDS, key)
    plain = value if isinstance(value, str) else _finite(value, key)
    bundle = {NUMBER_MIME: {"key": key, "value": plain, "kind": kind}, "text/plain": f"{key} = {plain}"}
    _display(bundle, raw=True)


def _provenance(
    key: str, data: pd.DataFrame, runs: Iterable[RunLike], kind: str, sources: Source | Sequence[Source]
) -> Provenance:
    """Check that runs and sources fit what the data holds."""
    if kind not in KINDS:
        raise unknown_name("kind", kind, KINDS, key)
    tables.check_frame(data)
    papers = (sources,) if isinstance(sources, Published | Given) else tuple(sources)
    records = tuple(sorted({RunRecord.of(run) for run in runs}))
    _check_unmixed(key, data)
    _check_kind(key, data, kind, has_runs=bool(records), has_sources=bool(papers))
    cites = tuple(dict.fromkeys(paper.cite for paper in papers if paper.cite))
    return Provenance(kind, records, tuple(dict.fromkeys(paper.source for paper in papers)), cites)


def _check_unmixed(key: str, data: pd.DataFrame) -> None:
    """Refuse a long table in which one column of numbers is measured in some rows and published in others."""
    for column in data.columns:
        if not is_numeric_dtype(data[column]) and {MEASURED, PUBLISHED} <= set(data[column].dropna().astype(str)):
            what = f"the rows of column {column!r} mix measured and published numbers"
            raise KBookError(what, key, f"Give the published ones columns of their own, named '…{MARK}'")


def _check_kind(key: str, data: pd.DataFrame, kind: str, *, has_runs: bool, has_sources: bool) -> None:
    marked = [column for column in data.columns if str(column).endswith(MARK)]
    plain = [c for c in data.columns if is_numeric_dtype(data[c]) and c not in marked]
    faults = {
        "measured numbers need their runs": kind == MEASURED and not has_runs,
        "only measured numbers have runs": kind != MEASURED and has_runs,
        f"columns named '…{MARK}' need their sources": bool(marked) and not has_sources,
        f"sources are given, but no column is named '…{MARK}'": has_sources and not marked and kind != SCORED,
        f"these columns must be named '…{MARK}': {', '.join(map(str, plain))}": kind == PUBLISHED and bool(plain),
        "published numbers need their sources": kind == PUBLISHED and not has_sources,
        "something constructed holds no published numbers": kind == CONSTRUCTED and bool(marked),
        "what was scored needs its transcripts as sources": kind == SCORED and not has_sources,
        "what was scored holds no published numbers": kind == SCORED and bool(marked),
    }
    for fault, found in faults.items():
        if found:
            raise KBookError(fault, key, f"Give runs=, sources= and kind= ({', '.join(KINDS)}) that fit the data")


def _check_key(key: str, kind: str) -> None:
    if ArtifactKey.parse(key).kind != kind:
        remedy = "Begin the key of a figure with fig-, of a table or trace with tab-"
        raise KBookError(f"the key {key!r} does not begin with {kind}-", "publish", remedy)


def _words(text: str, what: str, key: str) -> str:
    """Collapse a text to one line, and refuse one that says nothing."""
    line = " ".join(text.split())
    if len(line.split()) < _MIN_WORDS:
        raise KBookError(f"the {what} {line!r} says too little", key, f"Write {what} in a full sentence")
    return line


def _finite(value: float, key: str) -> float | int:
    """Turn a number of any library into a plain one, and refuse a missing one."""
    number = int(value) if isinstance(value, Integral) else float(value)
    if not math.isfinite(number):
        raise KBookError(f"the number is {number}", key, "Glue a text that says why there is no number")
    return number


def _close(figure: Figure) -> None:
    """Take a figure off pyplot's list, or it would be shown a second time without its alt text."""
    pyplot = sys.modules.get("matplotlib.pyplot")
    if pyplot is not None:
        pyplot.close(figure)


def _show(artifact: Artifact) -> None:
    _display(artifact, raw=False)


def _display(thing: object, *, raw: bool) -> None:
    from IPython.display import display

    display(thing, raw=raw)
