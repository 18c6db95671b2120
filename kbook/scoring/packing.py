"""Write a bundle from a folder of transcripts: whole or not at all, and never over what is not a bundle."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from kbook import __version__
from kbook.errors import KBookError
from kbook.files import sync_folder, write_atomic
from kbook.manifests import now
from kbook.scoring.bundle import CELLS, MANIFEST, SCHEMA, is_own, missing_partners, pairings, seal
from kbook.scoring.folder import find_cells
from kbook.scoring.notices import Notice
from kbook.scoring.sidecars import SUFFIX, check_bases, model_of
from kbook.scoring.sources import Found, Source, without_sidecar

_IDENTITY = ("file", "model", "base_model", "method", "substrate", "split", "seed", "n", "api", "comparable")
_PAIRED = ("prefix", "model", "base_model", "substrate", "method", "seed", "api")
_SCORER = "v2"  # of the public harness, whose row format this is; its reader asks for it

Record = dict[str, Any]


@dataclass(frozen=True)
class Bundle:
    """What was written.

    Args:
        path: the folder.
        n_cells: cells in it.
        notices: what a receiver will miss in it.
    """

    path: Path
    n_cells: int
    notices: tuple[Notice, ...]


def write_bundle(cells: Path, out: Path, prefix: str | None = None) -> Bundle:
    """Put the transcripts of a folder and all that is known of their making into a bundle.

    Args:
        cells: folder of official files, run store or bundle.
        out: the folder to write; a bundle that is there already is replaced.
        prefix: only the cells of this table.

    Raises:
        KBookError: as `folder.find_cells`; a file is no transcript; cells that would be compared come from
            different bases; `out` exists and is something else than a bundle, or cannot be written.
    """
    found = find_cells(cells, prefix)
    notices = list(found.notices)
    for name in found.prefixes:
        notices += [*without_sidecar(found.of(name)), *check_bases(found.of(name))]
    with _replacing(out) as folder:
        files: dict[str, Record] = {}
        entries = {}
        for source in found.sources:
            entry = _write_cell(folder, source, files)
            entries[entry["file"]] = entry
        paired = pairings(dict(zip(entries, found.sources, strict=True)))
        manifest = _manifest(found, entries, paired, files)
        write_atomic(folder / MANIFEST, json.dumps(seal(manifest), indent=1, sort_keys=True).encode() + b"\n")
    notices += [notice for pairing in paired for notice in missing_partners(pairing)]
    return Bundle(out, len(entries), tuple(dict.fromkeys(notices)))


def _write_cell(folder: Path, source: Source, files: dict[str, Record]) -> Record:
    """Write one cell and its sidecar, note their checksums, and return its entry of the manifest."""
    key, config, content = source.key, source.config, source.content()
    prefix = f"{source.prefix}.{key.variant}" if key.variant else source.prefix
    stem = f"{CELLS}/{replace(key, variant='').official_stem(prefix)}"
    file, sidecar = f"{stem}.jsonl", f"{stem}{SUFFIX}" if config is not None else None
    if file in files:
        raise KBookError("two cells would have one file name", str(source.path), "Bundle one table, with --prefix")
    files[file] = _write(folder / file, content)
    if sidecar is not None:
        files[sidecar] = _write(folder / sidecar, json.dumps(config, indent=1, sort_keys=True).encode() + b"\n")
    known = config or {}
    return {
        "file": file,
        "sidecar": sidecar,
        "prefix": prefix,
        "substrate": key.lane,
        "method": key.method,
        "split": key.split,
        "seed": key.seed,
        "n": len(source.parse(content)),
        "model": model_of(config),
        "base_model": known.get("api_model") or known.get("base_model") or model_of(config),
        "api": known.get("api_model") is not None,
        "comparable": known.get("comparable") is not False,
        "sha256": files[file]["sha256"],
        "provenance": {"harness_sidecar_config": config},
        "kbook": {"table": source.prefix, "key": str(key)},
    }


def _write(path: Path, content: bytes) -> Record:
    write_atomic(path, content)
    return {"sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}


def _manifest(
    found: Found, entries: Mapping[str, Record], paired: Sequence[Record], files: Mapping[str, Record]
) -> Record:
    """Everything that the public schema asks for, and beside it what it has no place for."""
    configs = {file: entry["provenance"]["harness_sidecar_config"] for file, entry in entries.items()}
    return {
        "schema": SCHEMA,
        "created_at": now(),
        "made_by": f"kbook {__version__}",
        "kbench_version": None,
        "scorer_version": _SCORER,
        "run_identity": [{name: entry[name] for name in _IDENTITY} for entry in entries.values()],
        "provenance": {"harness_sidecar_configs": configs},
        "cells": list(entries.values()),
        "pairings": [{**{name: entries[p["forget"]][name] for name in _PAIRED}, **p} for p in paired],
        "not_applicable": {
            prefix: [{"lane": lane, "method": method, "reason": why} for (lane, method), why in reasons.items()]
            for prefix, reasons in found.not_applicable.items()
            if reasons and prefix in found.prefixes
        },
        "files": dict(files),
    }


@contextmanager
def _replacing(out: Path) -> Iterator[Path]:
    """Give a new folder to write into, which takes the place of `out` once all is written.

    Raises:
        KBookError: `out` is something else than a bundle or an empty folder, or cannot be written.
    """
    _refuse_foreign(out)
    token = secrets.token_hex(4)
    new, old = (out.with_name(f".{out.name}.{token}.{part}") for part in ("tmp", "old"))
    try:
        new.mkdir(parents=True)
        yield new
        if out.exists():
            os.replace(out, old)
        os.replace(new, out)
        sync_folder(out.parent)
    except OSError as error:
        remedy = "Make the folder above it writable, or name another"
        raise KBookError(f"cannot be written ({error.strerror})", str(out), remedy) from None
    finally:
        shutil.rmtree(new, ignore_errors=True)
        shutil.rmtree(old, ignore_errors=True)


def _refuse_foreign(out: Path) -> None:
    if not out.name:
        raise KBookError("names no folder", str(out), "Give a new folder, as in --out eco.bundle")
    if out.is_symlink() or (out.exists() and not out.is_dir()):
        raise KBookError("exists and is no folder", str(out), "Name another folder")
    if out.is_dir() and any(out.iterdir()) and not is_own(out):
        raise KBookError("is not empty, and holds something else than a bundle", str(out), "Name another folder")
