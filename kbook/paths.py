"""Where the project lies: its data folder and its run store, from whatever folder Python was started."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

from kbook.errors import KBookError

PACKAGE = Path(__file__).resolve().parent


@cache
def project_root() -> Path:
    """Find the checkout of the book: beside the package, else at or above the current folder.

    Raises:
        KBookError: there is none; run from within a checkout.
    """
    here = Path.cwd()
    for folder in (PACKAGE.parent, here, *here.parents):
        if (folder / "data" / "profiles").is_dir():
            return folder
    raise KBookError(
        "found no data/profiles at or above this folder", str(here), "Run from within a checkout of K-Book"
    )


def data_folder() -> Path:
    """The folder of what the book ships: profiles, bases, worlds, published numbers, results."""
    return project_root() / "data"


def store_folder() -> Path:
    """The folder of the run store: the environment variable `KBOOK_STORE`, else `_runs` in the checkout."""
    given = os.environ.get("KBOOK_STORE")
    return Path(given).expanduser().absolute() if given else project_root() / "_runs"
