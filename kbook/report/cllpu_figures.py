"""Figures that only protocol B needs: small matrices side by side, pairs of points, bars of two wordings.

Each returns the figure and the tidy frame behind it, as `kbook.report.figures` does.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from kbook.report import fonts
from kbook.report.figures import FRACTIONS, Plot, canvas, look, looks
from kbook.report.published import MARK
from kbook.report.text import visible

COLUMNS = 3
"""Matrices side by side, at most."""
ABSENT_TINT = "#E8E8E8"
_FEW = 6
"""Codes that fit side by side under a small matrix."""


@look()
def matrices(
    frame: pd.DataFrame,
    *,
    row: str,
    column: str,
    value: str,
    panel: str,
    block: str,
    label: str,
    limits: tuple[float, float] = (0.0, 1.0),
) -> Plot:
    """Draw language by language matrices as tints on one scale, at most three side by side.

    Where row and column are the same language, the cell is framed. A cell that is missing is grey.

    Args:
        frame: one row a cell; rows and columns are codes of languages.
        row, column, value: of a matrix.
        block, panel: the two names of a matrix; matrices keep their order in the frame.
        label: of the scale.
        limits: of the scale.
    """
    places = list(frame[[block, panel]].drop_duplicates().itertuples(index=False, name=None))
    rows, columns = (_codes(frame[name]) for name in (row, column))
    n_wide = _abreast(frame[panel].nunique(), len(places))
    n_lines, side = -(-len(places) // n_wide), min(2.2, 4.6 / n_wide) * len(rows) / max(len(rows), len(columns))
    figure, axes = canvas(n_lines, n_wide, height=0.7 + n_lines * (side + 0.25))
    for axis, (group, name) in zip(axes.flat, places, strict=False):
        cells = frame[(frame[block] == group) & (frame[panel] == name)]
        _matrix(axis, cells.pivot(index=row, columns=column, values=value), rows, columns, limits)
        axis.set_title(visible(f"{group}: {name}"), fontsize=8)
    for axis in axes.flat[len(places) :]:
        axis.set_visible(False)
    _language_ticks(axes, rows, columns, row, column)
    shades = mpl.cm.ScalarMappable(mpl.colors.Normalize(*limits), "cividis")
    figure.colorbar(shades, ax=axes, label=label, shrink=0.5, aspect=30)
    return Plot(figure, frame[[block, panel, row, column, value]].reset_index(drop=True))


@look()
def pairs(frame: pd.DataFrame, *, row: str, panel: str, line: str, ends: tuple[str, str], label: str) -> Plot:
    """Draw two values of each row as points on a line, one panel a group; the paper's hollow, below them.

    Args:
        frame: one row a point pair, with columns ``ends`` and, where known, ``… (published)`` of them.
        row: names down, the same in all panels.
        panel, line: columns of panels across and down.
        ends: names of the two columns.
        label: of the horizontal axes.
    """
    rows, across, down = (list(frame[name].drop_duplicates()) for name in (row, panel, line))
    height = len(down) * (0.45 + 0.25 * len(rows)) + 0.6
    figure, axes = canvas(len(down), len(across), height=height)
    for i, j in np.ndindex(axes.shape):
        axis: Any = axes[i, j]
        part = frame[(frame[line] == down[i]) & (frame[panel] == across[j])]
        for mark, offset in (("", -0.16), (MARK, 0.2)):
            _pairs(axis, part, [rows.index(r) + offset for r in part[row]], ends, mark)
        axis.set_yticks(range(len(rows)), [visible(r) for r in rows])
        axis.set(ylim=(len(rows) - 0.5, -0.5), xlim=FRACTIONS, title=f"{down[i]}: {across[j]}")
        axis.grid(visible=False, axis="y")
    for axis in axes[-1]:
        axis.set_xlabel(label)
    handles, names = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=4)
    return Plot(figure, frame[[line, panel, row, *ends, *(f"{e}{MARK}" for e in ends)]].reset_index(drop=True))


@look()
def gaps(frame: pd.DataFrame, *, row: str, panel: str, bars: tuple[str, str], gap: str, label: str) -> Plot:
    """Draw two bars a row and write beside them by how many points the second is longer.

    Args:
        frame: one row a pair of bars.
        row, panel: names down and across.
        bars: columns of the two lengths, fractions.
        gap: column of the difference, in points.
        label: of the horizontal axes.
    """
    rows, panels = list(frame[row].drop_duplicates()), list(frame[panel].drop_duplicates())
    figure, axes = canvas(1, len(panels), height=0.9 + 0.42 * len(rows))
    for axis, name in zip(axes[0], panels, strict=True):
        part = frame[frame[panel] == name]
        places = np.array([rows.index(r) for r in part[row]], dtype=float)
        for (column, drawn), offset in zip(looks(bars).items(), (-0.19, 0.19), strict=True):
            style = {"color": drawn.color, "hatch": drawn.hatch, "edgecolor": "white", "linewidth": 0}
            axis.barh(places + offset, part[column], height=0.36, label=visible(column), **style)
        for place, record in zip(places, part.to_dict("records"), strict=True):
            end = np.nanmax([record[bar] for bar in bars] + [0.0])
            text = f"{record[gap]:+.1f}".replace("-", "−") if np.isfinite(record[gap]) else ""
            axis.text(end + 0.03, place, text, va="center", fontsize=8)
        axis.set_yticks(range(len(rows)), [visible(r) for r in rows])
        axis.set(xlim=(0, 1.45), xticks=[0, 0.5, 1], ylim=(len(rows) - 0.5, -0.5), xlabel=label)
        axis.set_title(visible(name), fontsize=8)
        axis.grid(visible=False, axis="y")
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
    return Plot(figure, frame[[panel, row, *bars, gap]].reset_index(drop=True))


def _abreast(n_panels: int, n_places: int) -> int:
    """How many matrices stand side by side: those of a block if they fit, so that blocks lie below one another."""
    fits = 1 < n_panels < COLUMNS
    return n_panels if fits else min(COLUMNS, n_places)


def _codes(names: pd.Series) -> list[str]:
    """The languages of a column in the order of the book."""
    found = set(names)
    return [code for code in fonts.LANGUAGES if code in found]


def _matrix(axis: Axes, table: pd.DataFrame, rows: Sequence[str], columns: Sequence[str], limits: Any) -> None:
    values = table.reindex(index=rows, columns=columns).to_numpy(dtype=float)
    tints = mpl.colormaps["cividis"].with_extremes(bad=ABSENT_TINT)
    axis.imshow(np.ma.masked_invalid(values), cmap=tints, vmin=limits[0], vmax=limits[1], aspect="equal")
    for y, x in ((y, columns.index(code)) for y, code in enumerate(rows) if code in columns):
        frame: dict[str, Any] = {"fill": False, "linewidth": 1.0, "edgecolor": "#D55E00"}
        axis.add_patch(mpl.patches.Rectangle((x - 0.5, y - 0.5), 1, 1, **frame))
    axis.grid(visible=False)
    axis.tick_params(length=0)
    axis.spines[:].set_visible(False)


def _language_ticks(axes: np.ndarray, rows: Sequence[str], columns: Sequence[str], row: str, column: str) -> None:
    """Name the rows in full at the left, and the columns, for which there is less room, by code."""
    for axis in axes.flat:
        axis.set_xticks(range(len(columns)), columns, rotation=90 if len(columns) > _FEW else 0)
        axis.set_yticks(range(len(rows)), [fonts.label(code) for code in rows])
        axis.label_outer()
    for axis in axes[:, 0]:
        axis.set_ylabel(visible(row))
    for axis in axes[-1]:
        axis.set_xlabel(visible(column))


def _pairs(axis: Axes, part: pd.DataFrame, places: Sequence[float], ends: tuple[str, str], mark: str) -> None:
    values = [part[f"{end}{mark}"].to_numpy(dtype=float) for end in ends]
    colour = "#777777" if mark else "black"
    axis.hlines(places, *values, color=colour, lw=0.9, zorder=2)
    for (end, drawn), found in zip(looks(ends).items(), values, strict=True):
        style: dict[str, Any] = {"mfc": "white", "mec": drawn.color} if mark else {"color": drawn.color}
        axis.plot(found, places, drawn.marker, ms=4.5, ls="", label=f"{end}{mark}", zorder=3, **style)
