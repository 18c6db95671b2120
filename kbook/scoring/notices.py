"""What a reader of scores must know about the table as a whole, each kind by its name.

What concerns single rows of a cell is in `transcripts.NOTES` and travels with the cell.
"""

from __future__ import annotations

from dataclasses import dataclass

NOTICES = {
    "cell_empty": "a cell has no rows",
    "cell_incomplete": "a cell has fewer or more rows than its sidecar says were asked",
    "rows_unpaired": "rows of a method or of its baseline have no partner and are left out of the comparison",
    "seeds_missing": "a cell lacks seeds that others of its lane have: its pool is incomplete",
    "lane_not_measured": "a method has no cell in a lane that others of its table have, and no reason is given",
    "sidecar_missing": "cells have no sidecar: their base and settings are not known",
    "models_differ": "a method's model is another than its baseline's, and no sidecar says that both have one base",
    "not_comparable": "a sidecar says that the run is not comparable with the benchmark's",
    "pairing_missing": "a forget cell lacks its retain cell or an untreated reference",
    "run_superseded": "the store holds older runs of a cell, which are not read",
    "run_of_other_origin": "the store holds cells of another base or corpus, which are not read",
    "run_unfinished": "the store holds runs that were begun and are not complete, which are not read",
    "file_unlisted": "a file of the bundle is not listed in its manifest and is not read",
}


@dataclass(frozen=True)
class Notice:
    """One warning.

    Args:
        code: a key of `NOTICES`, or of `transcripts.NOTES` for a summary over cells.
        where: the cell, file or folder that it is about; "" for all.
        text: what is the matter, in words.
    """

    code: str
    where: str
    text: str

    def __str__(self) -> str:
        return f"{self.where}: {self.text}" if self.where else self.text
