"""The release that the chapters run on: the book's own fictional world, or the official data from a folder.

release = load_release()                               # the book's world, made once and stored
release = load_release("downloads/CLLPU-bench/data")   # the official release: the same chapters, unchanged
"""

from __future__ import annotations

from kbook.construction.faults import Faults
from kbook.construction.pipeline import Construction, construct
from kbook.construction.stages import Settings
from kbook.construction.topics import world_subjects
from kbook.construction.world_provider import WorldProvider
from kbook.corpora.official_units import read_release
from kbook.corpora.units import Release
from kbook.corpora.worlds import load_world
from kbook.store import Store

WORLD = "almanac"
WORLD_SETTINGS = Settings(quota=6)
"""Six pairs of units a topic pair: of the ten facts on each topic, enough are left for as many holdout units."""


def load_release(folder: str = "", *, world: str = WORLD, store: Store | None = None, seed: int = 0) -> Release:
    """Read the official release from a folder, or make that of a world.

    Args:
        folder: the ``data`` folder of the official release; "" for the world's.
        world: name of the world.
        store: where the world's release is kept; by default the project's run store.
        seed: of the draw of the world's holdout units.
    Raises:
        KBookError: as `read_release`, `load_world` and `construct`.
    """
    return read_release(folder) if folder else construct_world(world, store=store, seed=seed).release


def construct_world(
    world: str = WORLD,
    settings: Settings = WORLD_SETTINGS,
    *,
    fault_rate: float = 0.0,
    store: Store | None = None,
    seed: int = 0,
) -> Construction:
    """Make the release of a world by its own tables, with or without planted faults.

    Args:
        world: name of the world.
        settings: sizes and limits.
        fault_rate: probability of a planted fault in each thing that is made, in [0, 1].
        store: by default the project's run store.
        seed: of the holdout units and the faults.
    Raises:
        KBookError: as `load_world` and `construct`.
    """
    made = load_world(world)
    provider = WorldProvider(made, Faults(fault_rate, seed))
    return construct(world_subjects(made), provider, settings, store=store, seed=seed)
