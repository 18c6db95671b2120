"""The one look of all figures, and general builders that return the figure and the tidy frame behind it.

Nothing here needs colour alone: every series also has its marker, hatch or a label beside it. Text is never
read as mathematics, because names in it may come from anywhere. Widths are fixed, text is at least 8 points.
"""

from __future__ import annotations

import io
import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.text import Text

from kbook.errors import KBookError, unknown_name
from kbook.keys import CHANNELS, LANES
from kbook.report import fonts
from kbook.report.text import visible

WIDTHS = {"full": 6.5, "half": 3.4}
MIN_POINTS = 8.0
FRACTIONS = (-0.04, 1.04)
"""Limits of an axis of fractions, with room for the marks at its ends."""
LETTER = 0.07
"""Mean width of a letter of 8 points, in inches."""

# Okabe and Ito's palette, told apart by all common kinds of colour vision and, by lightness, in grey.
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#999999")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
HATCHES = ("", "///", "...", "\\\\\\", "xxx", "---", "+++", "ooo")

STYLE: dict[Any, Any] = {
    "figure.dpi": 150,
    "figure.constrained_layout.use": True,
    "font.size": 9,
    "axes.labelsize": 9,
    "axes.titlesize": 9,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#DDDDDD",
    "grid.linewidth": 0.6,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "legend.fontsize": 8,
    "legend.frameon": False,
    "hatch.linewidth": 0.5,
    "lines.markersize": 5,
    "text.parse_math": False,
    "axes.formatter.use_mathtext": False,
    "axes.unicode_minus": True,
}


class Plot(NamedTuple):
    """A figure and the tidy frame of exactly what it shows."""

    figure: Figure
    data: pd.DataFrame


class Look(NamedTuple):
    """How one series is drawn, everywhere in the book."""

    color: str
    marker: str
    hatch: str


def looks(names: Sequence[str]) -> dict[str, Look]:
    """Give each series its look; channels and lanes have the same one in every figure.

    Raises:
        KBookError: there are more series than can be told apart.
    """
    fixed = next((known for known in (CHANNELS, LANES) if set(names) <= set(known)), tuple(names))
    if len(fixed) > len(PALETTE):
        remedy = "Draw panels, or fewer series"
        raise KBookError(f"{len(fixed)} series cannot be told apart in one panel", "figures", remedy)
    all_looks = dict(zip(fixed, map(Look, PALETTE, MARKERS, HATCHES), strict=False))
    return {name: all_looks[name] for name in names}


@contextmanager
def look() -> Iterator[None]:
    """Draw in the book's look: a block, or (as a decorator) a function, that makes a figure by hand."""
    with mpl.rc_context({**STYLE, "font.family": fonts.families()}):
        yield


def canvas(
    n_rows: int = 1, n_columns: int = 1, *, width: str = "full", height: float = 3.0, sharey: bool = True
) -> tuple[Figure, np.ndarray]:
    """Open a figure of the book's look, outside of pyplot's list of open figures.

    Args:
        n_rows, n_columns: panels.
        width: "full" (6.5 inches) or "half" (3.4).
        height: of the whole figure, in inches.
        sharey: whether panels share their vertical axis.
    Returns:
        the figure and its axes, always as a two-dimensional array.
    """
    if width not in WIDTHS:
        raise unknown_name("width", width, WIDTHS, "figures")
    with look():
        figure = Figure(figsize=(WIDTHS[width], height), layout="constrained")
        return figure, figure.subplots(n_rows, n_columns, squeeze=False, sharey=sharey)


def to_svg(figure: Figure, key: str) -> str:
    """Write a figure as SVG whose text is drawn as paths; the same figure gives the same bytes."""
    buffer = io.StringIO()
    with look(), mpl.rc_context({"svg.fonttype": "path", "svg.hashsalt": key}):
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    return re.sub(r"[ \t]+$", "", buffer.getvalue(), flags=re.MULTILINE)


def check_legible(figure: Figure, where: str) -> None:
    """Refuse a figure that cannot be read in print.

    Raises:
        KBookError: a text is smaller than 8 points, or the figure is wider than a page.
    """
    small = [
        text for text in figure.findobj(Text) if text.get_text().strip() and float(text.get_fontsize()) < MIN_POINTS
    ]
    if small:
        what = f"the text {small[0].get_text()!r} has {float(small[0].get_fontsize()):.1f} points"
        raise KBookError(what, where, f"Use at least {MIN_POINTS:g} points")
    if figure.get_figwidth() > WIDTHS["full"] + 1e-6:
        remedy = f"Make it at most {WIDTHS['full']} inches wide"
        raise KBookError(f"the figure is {figure.get_figwidth():.1f} inches wide", where, remedy)


@look()
def intervals(
    frame: pd.DataFrame,
    *,
    value: str,
    low: str,
    high: str,
    row: str,
    panel: str = "",
    series: str = "",
    published: str = "",
    label: str = "",
    limits: tuple[float, float] | None = None,
) -> Plot:
    """Draw estimates as points with intervals: rows down, one panel a group, one marker a series.

    Args:
        frame: one row an estimate.
        value, low, high: columns of the estimate and its interval; NaN is left out.
        row, panel, series: columns of names; rows and panels keep their order in the frame.
        published: column `… (published)` of the paper's values, drawn as hollow diamonds beside ours.
        label: of the horizontal axis.
        limits: of the horizontal axis, where all panels should have the same.
    """
    frame = _with_names(frame, panel, row, series)
    panels, rows, names = _names(frame, panel), _names(frame, row), _names(frame, series)
    height = 0.9 + max(0.24, 0.13 * len(names)) * len(rows)
    figure, axes = canvas(1, len(panels), height=height)
    drawn = looks(names)
    for axis, name in zip(axes[0], panels, strict=True):
        part = frame[frame[panel] == name] if panel else frame
        for k, each in enumerate(names):
            points = part[part[series] == each] if series else part
            offset = 0.16 * (k - (len(names) - 1) / 2)
            places = [rows.index(r) + offset for r in points[row]]
            _points(axis, points, (value, low, high), places, drawn[each], each or "measured" * bool(published))
        if published:
            known = part.dropna(subset=[published])
            places = [rows.index(r) + 0.3 for r in known[row]]
            axis.plot(known[published], places, "D", mfc="white", mec="black", ms=4.5, label="published", zorder=4)
        _frame_rows(axis, rows, visible(name) if panel else "", label or value)
        axis.set_xlim(limits)
    _legend(figure, axes)
    columns = [c for c in (panel, row, series, value, low, high, published) if c]
    return Plot(figure, frame[columns].reset_index(drop=True))


@look()
def shares(frame: pd.DataFrame, *, row: str, part: str, share: str, label: str = "share") -> Plot:
    """Draw one stacked bar a row, its parts told apart by colour and hatch, and labelled where they fit."""
    frame = _with_names(frame, row, part)
    rows, parts = _names(frame, row), _names(frame, part)
    table = frame.pivot(index=row, columns=part, values=share).reindex(index=rows, columns=parts).fillna(0.0)
    figure, axes = canvas(height=1.1 + 0.42 * len(rows))
    axis, left = axes[0, 0], np.zeros(len(rows))
    for name, drawn in looks(parts).items():
        widths = table[name].to_numpy(dtype=float)
        style = {"color": drawn.color, "hatch": drawn.hatch, "edgecolor": "white", "linewidth": 0.6}
        axis.barh(range(len(rows)), widths, left=left, label=visible(name), height=0.62, **style)
        for y, (start, width) in enumerate(zip(left, widths, strict=True)):
            if width >= 0.08:
                box = {"boxstyle": "round,pad=0.15", "fc": "white", "ec": "none", "alpha": 0.85}
                axis.text(start + width / 2, y, f"{width:.2f}", ha="center", va="center", fontsize=8, bbox=box)
        left = left + widths
    _frame_rows(axis, rows, "", label)
    axis.set_xlim(0, max(1.0, float(left.max())))
    _legend(figure, axes)
    return Plot(figure, frame[[row, part, share]].reset_index(drop=True))


@look()
def verdicts(
    frame: pd.DataFrame,
    *,
    row: str,
    column: str,
    verdict: str,
    colors: Mapping[str, str],
    detail: str = "",
    panel: str = "",
) -> Plot:
    """Draw a matrix of words: each cell is tinted by its verdict and has it written inside, broken where it must be.

    Args:
        frame: one row a cell.
        row, column: names of the two sides, in their order in the frame.
        verdict: what is written in the cell; a combination that is not in the frame stays empty.
        colors: verdict → tint; a verdict of another name stays white.
        detail: column of a second line.
        panel: column of groups, drawn side by side with the same rows and columns.
    """
    frame = _with_names(frame, row, column, panel)
    panels, rows, columns = _names(frame, panel), _names(frame, row), _names(frame, column)
    room = WIDTHS["full"] - LETTER * max(map(len, rows))
    width = int(room / (len(panels) * len(columns)) / LETTER)
    texts = [_written(record, (verdict, detail), width) for record in frame.to_dict("records")]
    height = 0.1 + 0.145 * max((text.count("\n") + 1 for text in texts), default=1)
    figure, axes = canvas(1, len(panels), height=0.7 + 0.25 * bool(panel) + height * len(rows))
    for record, text in zip(frame.to_dict("records"), texts, strict=True):
        axis = axes[0, panels.index(record[panel]) if panel else 0]
        x, y = columns.index(record[column]), rows.index(record[row])
        tint = colors.get(str(record[verdict]), "white")
        axis.add_patch(mpl.patches.Rectangle((x - 0.5, y - 0.5), 1, 1, fc=tint, ec="white", lw=2))
        axis.text(x, y, text, ha="center", va="center_baseline", fontsize=8, linespacing=1.05, color=_ink(tint))
    for axis, title in zip(axes[0], panels, strict=True):
        _frame_matrix(axis, rows, columns)
        axis.set_title(visible(title))
    names = [c for c in (panel, row, column, verdict, detail) if c]
    return Plot(figure, frame[names].reset_index(drop=True))


@look()
def heat(frame: pd.DataFrame, *, row: str, column: str, value: str, spec: str = ".2f", label: str = "") -> Plot:
    """Draw a matrix of numbers, each written in its cell; missing combinations stay white."""
    frame = _with_names(frame, row, column)
    rows, columns = _names(frame, row), _names(frame, column)
    table = frame.pivot(index=row, columns=column, values=value).reindex(index=rows, columns=columns)
    values = table.to_numpy(dtype=float)
    figure, axes = canvas(height=0.9 + 0.4 * len(rows))
    axis = axes[0, 0]
    image = axis.imshow(values, cmap="cividis", aspect="auto")
    for (y, x), number in np.ndenumerate(values):
        if np.isfinite(number):
            ink = _ink(mpl.colors.to_hex(image.cmap(image.norm(number))))
            axis.text(x, y, format(number, spec), ha="center", va="center", fontsize=8, color=ink)
    width = int((WIDTHS["full"] - 1 - LETTER * max(map(len, rows))) / len(columns) / LETTER)
    _frame_matrix(axis, rows, ["\n".join(textwrap.wrap(column, max(width, 6))) for column in columns])
    figure.colorbar(image, ax=axis, label=label or value, shrink=0.9)
    return Plot(figure, frame[[row, column, value]].reset_index(drop=True))


@look()
def scatter(
    frame: pd.DataFrame, *, x: str, y: str, name: str = "", series: str = "", panel: str = "", height: float = 3.4
) -> Plot:
    """Draw points, one marker a series, one panel a group; with a ``name``, it stands beside its point."""
    frame = _with_names(frame, panel, series)
    panels, names = _names(frame, panel), _names(frame, series)
    figure, axes = canvas(1, len(panels), height=height)
    drawn = looks(names)
    for axis, title in zip(axes[0], panels, strict=True):
        part = frame[frame[panel] == title] if panel else frame
        for each in names:
            points = part[part[series] == each] if series else part
            style: dict[str, Any] = {"color": drawn[each].color, "alpha": 0.85, "label": visible(each) or None}
            axis.plot(points[x], points[y], drawn[each].marker, **style)
        for record in part.to_dict("records") if name else ():
            at = (record[x], record[y])
            text = visible(str(record[name]))
            axis.annotate(text, at, xytext=(4, 4), textcoords="offset points", fontsize=8)
        axis.set(xlabel=x, title=visible(title) if panel else "")
        axis.margins(0.16)
    axes[0, 0].set_ylabel(y)
    _legend(figure, axes)
    return Plot(figure, frame[[c for c in (panel, series, name, x, y) if c]].reset_index(drop=True))


@look()
def curves(
    frame: pd.DataFrame,
    *,
    x: str,
    y: str,
    series: str = "",
    panel: str = "",
    low: str = "",
    high: str = "",
    scale: str = "linear",
    height: float = 2.8,
) -> Plot:
    """Draw lines over `x`, told apart by colour and marker, one panel a group; bands where there are bounds.

    Args:
        frame: one row a point.
        x, y: columns of numbers; `x` may hold names.
        series, panel: columns of names.
        low, high: columns of the bounds.
        scale: of `y`, as matplotlib names it.
        height: of the figure, in inches.
    """
    frame = _with_names(frame, panel, series)
    panels, names = _names(frame, panel), _names(frame, series)
    figure, axes = canvas(1, len(panels), height=height)
    for axis, title in zip(axes[0], panels, strict=True):
        group = frame[frame[panel] == title] if panel else frame
        for each, drawn in looks(names).items():
            part = group[group[series] == each] if series else group
            every = max(1, len(part) // 8)
            style: dict[str, Any] = {"color": drawn.color, "marker": drawn.marker, "markevery": every, "lw": 1.3}
            axis.plot(part[x], part[y], label=visible(each) or "_nolegend_", **style)
            if low and high:
                axis.fill_between(part[x], part[low], part[high], color=drawn.color, alpha=0.15, lw=0)
        axis.set(xlabel=x, yscale=scale, title=visible(title) if panel else "")
    axes[0, 0].set_ylabel(y)
    _legend(figure, axes)
    return Plot(figure, frame[[c for c in (panel, series, x, y, low, high) if c]].reset_index(drop=True))


def _names(frame: pd.DataFrame, column: str) -> list[str]:
    """Distinct names of a column in order of appearance; one nameless group where there is no column, or no row."""
    return (list(frame[column].drop_duplicates()) if column else []) or [""]


def _with_names(frame: pd.DataFrame, *columns: str) -> pd.DataFrame:
    """Read what tells rows, panels or series apart as names, seeds and other numbers too."""
    return frame.astype({column: str for column in columns if column})


def _written(record: Mapping[str, Any], columns: Sequence[str], width: int) -> str:
    """The words of a cell, each column on lines of its own that are at most so many letters long."""
    words = [visible(str(record[column])) for column in columns if column]
    return "\n".join(line for text in words for line in textwrap.wrap(text, max(1, width), break_long_words=False))


def _points(
    axis: Axes,
    points: pd.DataFrame,
    columns: tuple[str, str, str],
    places: list[float],
    look: Look,
    name: str,
) -> None:
    middle, low, high = (points[column].to_numpy(dtype=float) for column in columns)
    below, above = np.maximum(middle - low, 0.0), np.maximum(high - middle, 0.0)
    style: dict[str, Any] = {"fmt": look.marker, "color": look.color, "elinewidth": 1.1, "capsize": 2}
    axis.errorbar(middle, places, xerr=np.vstack([below, above]), label=visible(name) or "_nolegend_", **style)


def _frame_rows(axis: Axes, rows: Sequence[str], title: str, label: str) -> None:
    axis.set_yticks(range(len(rows)), [visible(row) for row in rows])
    axis.set_ylim(len(rows) - 0.5, -0.5)
    axis.set(title=title, xlabel=label)
    axis.grid(visible=False, axis="y")


def _frame_matrix(axis: Axes, rows: Sequence[str], columns: Sequence[str]) -> None:
    axis.set_xticks(range(len(columns)), [visible(column) for column in columns])
    axis.set_yticks(range(len(rows)), [visible(row) for row in rows])
    axis.set_xlim(-0.5, len(columns) - 0.5)
    axis.set_ylim(len(rows) - 0.5, -0.5)
    axis.xaxis.tick_top()
    axis.grid(visible=False)
    axis.tick_params(length=0)
    axis.spines[:].set_visible(False)


def _legend(figure: Figure, axes: np.ndarray) -> None:
    """Put one legend for all panels below them; nothing where no series has a name."""
    found = [axis.get_legend_handles_labels() for axis in axes.flat]
    entries = {label: handle for handles, labels in found for handle, label in zip(handles, labels, strict=True)}
    if entries:
        figure.legend(entries.values(), entries.keys(), loc="outside lower center", ncols=min(6, len(entries)))


def _ink(background: str) -> str:
    """Black or white, whichever has the higher contrast on a background.

    Source: WCAG 2, relative luminance and contrast ratio.
    """
    red, green, blue = (
        c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in mpl.colors.to_rgb(background)
    )
    luminance = 0.2126 * red + 0.7152 * green + 0.0722 * blue
    return "black" if (luminance + 0.05) / 0.05 > 1.05 / (luminance + 0.05) else "white"
