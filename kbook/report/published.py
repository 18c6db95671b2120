"""The two papers' own numbers, as facts with their source: data/published/NAME.csv beside NAME.toml.

Columns of numbers come back named `… (published)`, so that a published and a measured number cannot end up in
one column by accident.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
from pandas.api.types import is_numeric_dtype

from kbook.errors import KBookError, unknown_name
from kbook.paths import data_folder

MARK = " (published)"


@dataclass(frozen=True)
class Published:
    """One published table.

    Args:
        name: file name without suffix.
        frame: label columns as they stand, number columns named `… (published)`.
        source: the paper, its version and the place in it, in words.
        cite: the key of the paper in the bibliography.
    """

    name: str
    frame: pd.DataFrame
    source: str
    cite: str

    def number(self, column: str, **labels: str) -> float:
        """Look up one number by the values of its label columns.

        Raises:
            KBookError: no row, or more than one, has these labels.
        """
        chosen = self.frame
        for label, value in labels.items():
            chosen = chosen[chosen[label] == value]
        if len(chosen) != 1:
            wanted = ", ".join(f"{k}={v!r}" for k, v in labels.items())
            raise KBookError(f"{len(chosen)} rows have {wanted}", self.name, "Name exactly one row")
        return float(chosen[column if column.endswith(MARK) else column + MARK].iloc[0])


def published(name: str, folder: Path | None = None) -> Published:
    """Read a published table.

    Raises:
        KBookError: there is no such table, or its sidecar lacks the source.
    """
    folder = folder or data_folder() / "published"
    names = sorted(path.stem for path in folder.glob("*.csv"))
    if name not in names:
        raise unknown_name("published table", name, names)
    frame = pd.read_csv(folder / f"{name}.csv")
    sidecar = tomllib.loads((folder / f"{name}.toml").read_text(encoding="utf-8"))
    if not sidecar.get("source") or not sidecar.get("cite"):
        raise KBookError("no source or cite", str(folder / f"{name}.toml"), "Say where the numbers stand")
    return Published(name, frame.rename(columns=_marked(frame)), sidecar["source"], sidecar["cite"])


def _marked(frame: pd.DataFrame) -> dict[str, str]:
    return {column: f"{column}{MARK}" for column in frame.columns if is_numeric_dtype(frame[column])}
