"""The results that come with the book: a few cells, drawn at random, are computed once more and must agree.

KBOOK_RECOMPUTE sets how many (2 by default), KBOOK_RECOMPUTE_SEED which; KBOOK_RECOMPUTE_LANES may add P, which needs
an injection, minutes for each base.
"""

import os

import pytest

from kbook.kbench import KBench
from kbook.keys import CellKey, parse_key
from kbook.paths import data_folder
from kbook.recomputing import draw, recompute
from kbook.shipped import Shipped
from kbook.store import Store

FILES = sorted((data_folder() / "results").glob("laptop.kbench.*.parquet"))
LANES = os.environ.get("KBOOK_RECOMPUTE_LANES", "C R-text R-struct").split()


def drawn() -> list[CellKey]:
    keys = [parse_key(key) for key in Shipped(FILES).keys()]
    n, seed = (int(os.environ.get(f"KBOOK_RECOMPUTE{name}", default)) for name, default in (("", 2), ("_SEED", 0)))
    return draw([key for key in keys if isinstance(key, CellKey)], n, seed, LANES)


@pytest.mark.skipif(not FILES, reason="no results are shipped")
@pytest.mark.parametrize("key", drawn(), ids=str)
def test_a_shipped_cell_is_found_again(key, tmp_path):
    shown = Store(tmp_path / "shown", "laptop", Shipped(FILES))
    found = recompute(
        KBench("laptop", base=key.base, store=shown), key, Store(tmp_path / "here", "laptop", Shipped(()))
    )
    assert found.agrees, found
