"""Bundles: transcripts with their sidecars in one folder that can be handed on, checked and scored offline.

A bundle is `bundle.json` and `cells/`. The manifest holds the checksum of every file, what is known of the
making of each cell, and which cells are compared. It says all that the public harness's schema asks for, so
that either side can read what the other wrote.

    {"schema": "kbench-transcript-bundle@1-candidate", "cells": [{"file": "cells/demo_P_eco_forget_seed0.jsonl",
     "sha256": "…", "prefix": "demo", "substrate": "P", "method": "eco", "split": "forget", "seed": 0, …}], …}
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any

from kbook.digests import digest_of, file_digest
from kbook.errors import KBookError
from kbook.keys import CellKey, OfficialName, parse_official
from kbook.scoring.notices import Notice
from kbook.scoring.sidecars import check_sidecar, partners
from kbook.scoring.sources import PROTOCOL, Found, Source, in_order, read_object, read_reasons

MANIFEST = "bundle.json"
SCHEMA = "kbench-transcript-bundle@1-candidate"
CELLS = "cells"
ROLES = ("retain", "reference_forget", "reference_retain")

_SHA256 = re.compile(r"[0-9a-f]{64}")
_RESTORE = "Get the bundle anew from where it came"


def open_bundle(path: Path) -> Found:
    """Check a bundle and list its cells.

    Every listed file is hashed. Nothing outside the bundle is opened, wherever its manifest may point.

    Raises:
        KBookError: the manifest is damaged or of another schema; a path leaves the bundle, by `..`, from the
            root or by a symbolic link; a file is missing or has another checksum; a cell has none; a sidecar
            or a pairing contradicts the names of its cells.
    """
    manifest = _read_manifest(path)
    entries, where = manifest["cells"], str(path / MANIFEST)
    listed = _checked_files(path, manifest)
    sources = in_order([_source(path, entry, listed, where) for entry in entries])
    names = {source.path.relative_to(path).as_posix(): source for source in sources}
    notices = (*_unlisted(path, listed), *_pairing_notices(names, manifest.get("pairings"), where))
    stated = manifest.get("not_applicable", {})
    if not isinstance(stated, dict):
        raise KBookError("not_applicable is no object", where, _RESTORE)
    reasons = {prefix: read_reasons(content, where) for prefix, content in stated.items()}
    return Found("bundle", sources, notices, reasons)


def pairings(names: Mapping[str, Source]) -> list[dict[str, Any]]:
    """Say which cells are compared: each treated forget cell with its retain cell and the untreated ones.

    Args:
        names: file in the bundle → its cell.

    Missing: None where a bundle lacks the cell.
    """
    files = {(source.prefix, source.key): file for file, source in names.items()}
    found = []
    for file, source in names.items():
        if source.key.split == "forget" and source.key.method != "none":
            found.append({"forget": file, **_roles(source, names, files)})
    return found


def is_own(folder: Path) -> bool:
    """Whether a folder is a bundle and nothing else, so that another may take its place."""
    try:
        manifest = _read_manifest(folder)
        listed = {*_listed(manifest), MANIFEST}
    except KBookError:
        return False
    return {file.relative_to(folder).as_posix() for file in _files(folder)} <= listed


def seal(content: Mapping[str, Any]) -> dict[str, Any]:
    """Add the digest of a manifest to it, which `open_bundle` checks."""
    return {**content, "self": digest_of(dict(content))}


def _read_manifest(path: Path) -> dict[str, Any]:
    place = _inside(path, MANIFEST)
    manifest = read_object(place, "a manifest")
    if manifest.get("schema") != SCHEMA:
        what = f"the schema is {str(manifest.get('schema'))[:80]!r}"
        raise KBookError(what, str(place), f"Known: {SCHEMA}")
    stated = manifest.pop("self", None)
    if stated is not None and stated != digest_of(manifest):
        raise KBookError("was changed after it was written: its digest is wrong", str(place), _RESTORE)
    cells = manifest.get("cells")
    if not (isinstance(cells, list) and cells and all(isinstance(entry, dict) for entry in cells)):
        raise KBookError("lists no cells", str(place), _RESTORE)
    return manifest


def _listed(manifest: Mapping[str, Any]) -> dict[str, str]:
    """Every file that a manifest answers for, with its checksum, "" where it has none."""
    files = manifest.get("files")
    listed = {name: _sha256(entry) for name, entry in files.items()} if isinstance(files, dict) else {}
    for entry in manifest["cells"]:
        name, checksum = str(entry.get("file")), _sha256(entry)
        if listed.setdefault(name, checksum) != checksum:
            raise KBookError(f"two checksums for {name}", MANIFEST, _RESTORE)
    return listed


def _sha256(entry: Any) -> str:
    checksum = entry.get("sha256") if isinstance(entry, dict) else None
    return checksum if isinstance(checksum, str) and _SHA256.fullmatch(checksum) else ""


def _checked_files(path: Path, manifest: Mapping[str, Any]) -> dict[str, str]:
    listed = _listed(manifest)
    for name, checksum in listed.items():
        file = _inside(path, name)
        if not checksum:
            raise KBookError("has no checksum in the manifest", str(file), _RESTORE)
        if file_digest(file) != checksum:
            raise KBookError("has another checksum than the manifest says", str(file), _RESTORE)
    return listed


def _inside(root: Path, name: str) -> Path:
    """The path of a regular file of a bundle.

    Raises:
        KBookError: the name leads out of the bundle, or to no regular file.
    """
    parts = PurePosixPath(name).parts
    if not parts or PurePosixPath(name).is_absolute() or ".." in parts or "\\" in name or "\0" in name:
        raise KBookError(f"the path {name!r} leaves the bundle"[:300], str(root / MANIFEST), _RESTORE)
    place = root
    for part in parts:
        place = place / part
        if place.is_symlink():
            what = f"the path {name!r} leads through a symbolic link"[:300]
            raise KBookError(what, str(root / MANIFEST), "Replace the link by the file")
    if not place.is_file():
        raise KBookError("is missing from the bundle", str(place), _RESTORE)
    return place


def _source(path: Path, entry: Mapping[str, Any], listed: Mapping[str, str], where: str) -> Source:
    name = str(entry.get("file"))
    official = parse_official(PurePosixPath(name).name.removesuffix(".jsonl"))
    said = (entry.get("prefix"), entry.get("substrate"), entry.get("method"), entry.get("split"), entry.get("seed"))
    wanted = (official.prefix, official.lane, official.method, official.split, official.seed)
    if said != wanted:
        raise KBookError(f"the entry of {name} contradicts its name: {said} and {wanted}"[:400], where, _RESTORE)
    provenance = entry.get("provenance")
    config = provenance.get("harness_sidecar_config") if isinstance(provenance, dict) else None
    if config is not None and not isinstance(config, dict):
        raise KBookError(f"the sidecar of {name} is no JSON object", where, _RESTORE)
    if config is not None:
        check_sidecar(config, official, where)
        _same_as_file(path, entry, config)
    table, key = _table_and_key(entry, official, where)
    return Source(table, key, path / name, config, listed[name])


def _same_as_file(path: Path, entry: Mapping[str, Any], config: Mapping[str, Any]) -> None:
    """The sidecar in the manifest and the one beside the cell must say the same."""
    sidecar = entry.get("sidecar")
    if isinstance(sidecar, str) and read_object(_inside(path, sidecar), "a sidecar") != config:
        raise KBookError("says something else than the manifest", str(path / sidecar), _RESTORE)


def _table_and_key(entry: Mapping[str, Any], official: OfficialName, where: str) -> tuple[str, CellKey]:
    """The table and the whole key of a cell: ours are stated, those of other bundles follow from the name."""
    stated = entry.get("kbook")
    if not isinstance(stated, dict):
        return official.prefix, official.cell(PROTOCOL, official.prefix)
    key = CellKey.parse(str(stated.get("key")))
    if (key.lane, key.method, key.split, key.seed) != (official.lane, official.method, official.split, official.seed):
        raise KBookError(f"the key {key} is not that of the file {entry.get('file')}"[:300], where, _RESTORE)
    table = replace(key, base=str(stated.get("table"))).base  # a name like any other in a key
    return table, key


def _roles(
    source: Source, names: Mapping[str, Source], files: Mapping[tuple[str, CellKey], str]
) -> dict[str, str | None]:
    table = {other.key: other for other in names.values() if other.prefix == source.prefix}
    near = dict(partners(source.key, table))
    retain = near.get("retain")
    untreated = dict(partners(retain, table)).get("baseline") if retain else _retain_of(near.get("baseline"), table)
    chosen = {"retain": retain, "reference_forget": near.get("baseline"), "reference_retain": untreated}
    return {role: files[source.prefix, key] if key else None for role, key in chosen.items()}


def _retain_of(key: CellKey | None, table: Mapping[CellKey, Source]) -> CellKey | None:
    return dict(partners(key, table)).get("retain") if key else None


def _pairing_notices(names: Mapping[str, Source], stated: Any, where: str) -> Iterator[Notice]:
    """Compare the stated pairings with those that follow from the names of the cells.

    Raises:
        KBookError: a stated pairing is another one.
    """
    if not isinstance(stated, list) or not all(isinstance(entry, dict) for entry in stated):
        raise KBookError("pairings is no list of objects", where, _RESTORE)
    by_forget = {str(entry.get("forget")): entry for entry in stated}
    derived = {pairing["forget"]: pairing for pairing in pairings(names)}
    for forget in by_forget.keys() - derived.keys():
        raise KBookError(f"pairs {forget!r}, which is no treated forget cell of the bundle"[:300], where, _RESTORE)
    for forget, pairing in derived.items():
        entry = by_forget.get(forget, {role: None for role in ROLES})
        for role in ROLES:
            if entry.get(role) not in (None, pairing[role]):
                what = f"pairs {forget} with {entry.get(role)!r} as {role}; by its name it is {pairing[role]!r}"
                raise KBookError(what[:400], where, _RESTORE)
        yield from missing_partners(pairing)


def missing_partners(pairing: Mapping[str, Any]) -> Iterator[Notice]:
    """Name what a forget cell lacks to be judged in full."""
    missing = [role.replace("_", " ") for role in ROLES if pairing[role] is None]
    if missing:
        yield Notice("pairing_missing", pairing["forget"], f"the bundle lacks its {', '.join(missing)} cell")


def _unlisted(path: Path, listed: Mapping[str, str]) -> Iterator[Notice]:
    for file in _files(path):
        name = file.relative_to(path).as_posix()
        if name not in listed and name != MANIFEST:
            yield Notice("file_unlisted", name, "is not listed in the manifest and is not read")


def _files(folder: Path) -> Sequence[Path]:
    """Every file and link below a folder; links are not followed."""
    found = []
    for place, folders, files in os.walk(folder):
        found += [Path(place) / name for name in files]
        found += [link for name in folders if (link := Path(place) / name).is_symlink()]
    return sorted(found)
