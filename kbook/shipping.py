"""Pack what the run store holds into the results that come with the book (`kbook.shipped` reads them).

For maintainers: compute the book at the laptop profile in an empty store, then `kbook ship`.
"""

from __future__ import annotations

from pathlib import Path

from kbook.digests import source_digests
from kbook.errors import KBookError
from kbook.journal import ROWS
from kbook.manifests import Manifest
from kbook.shipped import pack, sources_since
from kbook.store import Run, Store

LIMIT_BYTES = 40_000_000
"""The shipped results of all profiles together stay below this."""


def changed_sources(manifest: Manifest) -> list[str]:
    """The modules whose text is another now than when a run was made."""
    return sources_since(manifest, source_digests(manifest.parts["sources"], missing_ok=True))


def ship(store: Store, profile: str, folder: Path) -> dict[Path, int]:
    """Pack the runs of a profile, one Parquet file for each protocol and base; size of each file in bytes.

    Of runs of one key and question the newest is packed. A run whose source text has changed since, or whose
    manifest does not say its question, is left out: it would speak for code that is not there.

    Raises:
        KBookError: there is nothing to pack, or more than `LIMIT_BYTES`.
    """
    newest: dict[tuple[str, str], Run] = {}
    for run in store.find():  # by key and age
        if run.manifest.profile == profile and run.manifest.question and not changed_sources(run.manifest):
            newest[run.manifest.key, run.manifest.question] = run
    groups: dict[str, list[Run]] = {}
    for run in newest.values():
        protocol, base = run.manifest.key.split("/")[:2]
        groups.setdefault(f"{profile}.{protocol}.{base}", []).append(run)
    if not groups:
        remedy = f"compute the book first: kbook book --fresh --profile {profile}"
        raise KBookError(f"no run of profile {profile} was made by the present source text", str(store.root), remedy)
    sizes = {}
    for name, runs in sorted(groups.items()):
        path = folder / f"{name}.parquet"
        sizes[path] = pack(((run.manifest, _records(run)) for run in runs), path)
    if (total := sum(sizes.values())) > LIMIT_BYTES:
        what = f"{total / 1e6:.1f} MB are more than the {LIMIT_BYTES / 1e6:.0f} MB that may ship"
        raise KBookError(what, str(folder), "Remove runs that no chapter shows, and pack again")
    return sizes


def _records(run: Run) -> bytes | None:
    return run.file(ROWS).read_bytes() if run.manifest.n_rows else None
