"""Results that come with the book: runs packed into a few Parquet files, from which the run store takes what it lacks.

A packed run answers the same *question*: the same key, parameters, inputs and base (`kbook.digests.Spec.question`),
whatever the source text was that answered it. So an edited comment does not make a reader compute for hours; the run
keeps its own manifest, which says what code it was. Of a model only the manifest is packed, not its weights.

KBOOK_SHIPPED=off, or `kbook book --fresh`, computes everything anew.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from kbook.errors import KBookError
from kbook.files import write_atomic
from kbook.manifests import Manifest, manifest_bytes, parse_manifest
from kbook.paths import data_folder

SWITCH = "KBOOK_SHIPPED"
COMPRESSION = {"compression": "zstd", "compression_level": 19}


def shipped_results() -> Shipped:
    """What ships with the checkout, under `data/results`; nothing where KBOOK_SHIPPED is "off"."""
    off = os.environ.get(SWITCH, "").casefold() in ("off", "0", "no")
    return Shipped(()) if off else _shipped_in(data_folder() / "results")


@cache
def _shipped_in(folder: Path) -> Shipped:
    return Shipped(tuple(sorted(folder.glob("*.parquet"))))


@dataclass(frozen=True)
class Packed:
    """A packed run: its manifest, and the bytes of its records, or None for a run of files."""

    manifest: Manifest
    rows: bytes | None


class Shipped:
    """Packed runs of some files.

    Raises:
        KBookError: a file is no such Parquet file.
    """

    def __init__(self, files: Iterable[Path]) -> None:
        self._places = {question: place for path in files for question, place in _index(path)}

    def __len__(self) -> int:
        return len(self._places)

    def keys(self) -> list[str]:
        """The keys of all packed runs, sorted."""
        return sorted(key for key, _ in self._places)

    def find(self, key: str, question: str) -> Packed | None:
        """The run that answers a question, or None.

        Raises:
            KBookError: it is there, and damaged.
        """
        place = self._places.get((key, question))
        if place is None:
            return None
        path, group = place
        (row,) = _open(path).read_row_group(group).to_pylist()
        try:
            return Packed(parse_manifest(row["manifest"]), row["rows"])
        except ValueError as error:
            raise _not_ours(path, f"run {key}: {error}") from None


def pack(runs: Iterable[tuple[Manifest, bytes | None]], path: Path) -> int:
    """Write runs into one Parquet file, one row group each; return its size in bytes.

    Args:
        runs: manifest, and the bytes of `rows.jsonl` or None.
        path: of the file, replaced atomically.
    Raises:
        KBookError: a manifest does not say its question (made before questions were kept: compute it again).
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pa.schema(
        [("key", pa.string()), ("question", pa.string()), ("manifest", pa.binary()), ("rows", pa.binary())]
    )
    buffer = pa.BufferOutputStream()
    with pq.ParquetWriter(buffer, schema, **COMPRESSION) as writer:
        for manifest, rows in sorted(runs, key=lambda run: (run[0].key, run[0].question)):
            if not manifest.question:
                raise KBookError("the manifest keeps no question", manifest.key, "Remove the run and compute it again")
            values = {"key": manifest.key, "question": manifest.question, "manifest": manifest_bytes(manifest)}
            writer.write_table(pa.Table.from_pylist([{**values, "rows": rows}], schema))
    content = buffer.getvalue().to_pybytes()
    write_atomic(path, content)
    return len(content)


def _index(path: Path) -> list[tuple[tuple[str, str], tuple[Path, int]]]:
    try:
        found = _open(path).read(columns=["key", "question"]).to_pydict()
    except (OSError, ValueError, KeyError) as error:
        raise _not_ours(path, str(error)) from None
    pairs = zip(found["key"], found["question"], strict=True)
    return [(pair, (path, group)) for group, pair in enumerate(pairs)]


@cache
def _open(path: Path) -> Any:
    import pyarrow.parquet as pq

    return pq.ParquetFile(path)


def _not_ours(path: Path, why: str) -> KBookError:
    return KBookError(f"no file of packed runs ({why})", str(path), f"Restore it, or compute anew with {SWITCH}=off")


def sources_since(manifest: Manifest, current: Mapping[str, str]) -> list[str]:
    """The modules whose text is another now than when a run was made.

    Args:
        manifest: of the run.
        current: module to the digest of its present text (`kbook.digests.source_digests`).
    """
    made_with: Mapping[str, str] = manifest.parts["sources"]
    return sorted(name for name, digest in made_with.items() if current.get(name) != digest)
