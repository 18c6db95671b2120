"""The run store: what takes time is computed once, may be killed at any moment, and is never read damaged.

A run is a key and the digest of what decides its content; its folder is `ROOT/KEY/DIGEST8`. Records grow a
batch at a time (`rows`), models are built as files with checkpoints of their own (`files`). Either way the
manifest comes last, so that a folder with one is complete. Nothing but JSON is loaded here, and nothing
pickled is kept.

Example:
    >>> store = Store(profile="laptop")                                          # doctest: +SKIP
    >>> spec = Spec(parameters={"cells": profile.cells}, sources=("kbook.agent.react",), base=digest)
    >>> run = store.rows(CellKey.parse("kbench/llama-tiny/P/none/forget/seed=0"), spec, batches, answer)
    >>> run.rows()[0]["query_id"]
"""

from __future__ import annotations

import hashlib
import json
import shutil
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from kbook.digests import Spec, canonical_json, digest_of, file_digest
from kbook.errors import KBookError, unknown_name
from kbook.files import StoreWarning, locked, read_jsonl, set_aside, sync, sync_folder, write_atomic
from kbook.journal import JOURNAL, ROWS, Header, RowJournal, other_batches, salvage
from kbook.keys import AnyKey, parse_key
from kbook.manifests import (
    MANIFEST,
    Manifest,
    checksums,
    damaged_files,
    git_commit,
    hardware,
    is_sound,
    now,
    read_manifest,
    run_files,
    versions,
    write_manifest,
)
from kbook.paths import store_folder
from kbook.shipped import Shipped, shipped_results

__all__ = ["CHECKPOINTS", "Run", "Spec", "Store", "StoreWarning", "digest_of", "file_digest", "write_atomic"]

T = TypeVar("T")

CHECKPOINTS = "checkpoints"
TRIES = "tries.json"
_NOT_OF_THE_RUN = frozenset({MANIFEST, JOURNAL, TRIES, CHECKPOINTS, ".lock"})
_PICKLES = frozenset({".bin", ".ckpt", ".joblib", ".pickle", ".pkl", ".pt", ".pth"})


@dataclass(frozen=True)
class Run:
    """A complete run: read-only, and checked against its checksums whenever something is read."""

    key: AnyKey
    path: Path
    manifest: Manifest

    @property
    def digest(self) -> str:
        """The digest of the run, 64 hex characters."""
        return self.manifest.digest

    def rows(self) -> list[dict[str, Any]]:
        """Read all records.

        Raises:
            KBookError: the run holds files instead of records, or they were damaged since it was opened (ask
                the store for the run again: it is then computed anew).
        """
        path = self.path / ROWS
        checksum = self._checksum(ROWS)
        content = path.read_bytes() if path.exists() else b""
        if hashlib.sha256(content).hexdigest() != checksum:
            raise _damaged(path)
        return read_jsonl(path, content)

    def file(self, name: str) -> Path:
        """Return the path of one of the run's files, after checking its bytes.

        Raises:
            KBookError: there is no such file, or it is damaged (ask the store for the run again).
        """
        path = self.path / name
        if not is_sound(path, self._checksum(name)):
            raise _damaged(path)
        return path

    def _checksum(self, name: str) -> str:
        known = self.manifest.checksums
        if name not in known:
            raise unknown_name("file", name, known, str(self.path))
        return known[name]


class Store:
    """Runs under one root folder.

    Args:
        root: the folder; by default `_runs` in the checkout, or what KBOOK_STORE names.
        profile: name of the profile, noted in the manifests of what is computed.
        shipped: packed runs to take from before anything is computed; by default what comes with the checkout.
    """

    def __init__(self, root: Path | str | None = None, profile: str = "laptop", shipped: Shipped | None = None) -> None:
        self.root = Path(root) if root is not None else store_folder()
        self.profile = profile
        self.shipped = shipped or shipped_results()

    def rows(
        self,
        key: AnyKey,
        spec: Spec,
        batches: Sequence[T],
        work: Callable[[T], list[dict[str, Any]]],
        *,
        seed: int | None = None,
        extra: Mapping[str, Any] | None = None,
    ) -> Run:
        """Compute records batch by batch, or read them where they have been computed.

        Interrupted or killed, the next call goes on at the first unfinished batch.

        Args:
            key: the name of the run.
            spec: all that decides its rows; the batches must follow from it alone.
            batches: composed the same way in every call.
            work: turns one batch into its rows; called for unfinished batches only, so load models in it.
            seed: the seed of the work, which is the key's.
            extra: JSON-able things to keep in the manifest.
        Raises:
            KBookError: a row is not JSON-able, the run has another number of batches, or another seed.
        """

        def compute(folder: Path) -> _Done:
            with RowJournal(folder, Header(spec.digest, len(batches), now())) as journal:
                for batch in _progress(batches, len(journal.batches), str(key)):
                    begun = time.monotonic()
                    journal.append(work(batch), time.monotonic() - begun)
            times = journal.header.started, journal.seconds
            return _Done(*times, extra or {}, n_rows=journal.n_rows, n_batches=len(batches))

        run = self._get(key, spec, seed, compute)
        if run.manifest.n_batches != len(batches):
            raise other_batches(run.manifest.n_batches or 0, len(batches), run.path)
        return run

    def files(
        self,
        key: AnyKey,
        spec: Spec,
        build: Callable[[Path], Mapping[str, Any]],
        *,
        seed: int | None = None,
    ) -> Run:
        """Build files, such as a model, or return them where they have been built.

        Args:
            key: the name of the run.
            spec: all that decides the files.
            build: writes them into the run's folder, which it is given, and returns JSON-able things to keep
                in the manifest. What an earlier try left is still there; what it puts under `checkpoints/` to
                go on from is removed once the run is complete. Write with `write_atomic`, or be ready to find
                half a file.
            seed: the seed of the work, which is the key's.
        Raises:
            KBookError: a pickled file was written (write safetensors, JSON or Parquet), or the seed differs.
        """

        def compute(folder: Path) -> _Done:
            tries = _begin_try(folder)
            extra = build(folder)
            _refuse_and_sync(folder)
            return _Done(tries["started"], tries["seconds"] + time.time() - tries["begun"], extra)

        run = self._get(key, spec, seed, compute)
        shutil.rmtree(run.path / CHECKPOINTS, ignore_errors=True)
        return run

    def lookup(self, key: AnyKey, spec: Spec) -> Run | None:
        """Return the complete, undamaged run of this key and digest, or a shipped one, or None; computes nothing."""
        folder, digest = self._folder(key, spec.digest), spec.digest
        if (folder / MANIFEST).exists():
            if run := _sound_run(key, folder, digest):
                return run
            with locked(folder):
                if run := _mended(key, folder, digest):
                    return run
        return self._unpacked(key, spec)

    def account(self, key: AnyKey, spec: Spec) -> Run | None:
        """As `lookup`, or else a shipped run of which only the manifest is here: its files cannot be read."""
        if (run := self.lookup(key, spec)) or not (packed := self.shipped.find(str(key), spec.question)):
            return run
        return Run(key, self._folder(key, packed.manifest.digest), packed.manifest)

    def _unpacked(self, key: AnyKey, spec: Spec) -> Run | None:
        """Bring a shipped run's records into the store, under the digest that it was made with."""
        packed = self.shipped.find(str(key), spec.question)
        if packed is None or packed.rows is None:
            return None
        folder, digest = self._folder(key, packed.manifest.digest), packed.manifest.digest
        if run := _sound_run(key, folder, digest):
            return run
        with locked(folder):
            write_atomic(folder / ROWS, packed.rows)
            write_manifest(folder, packed.manifest)
        return _sound_run(key, folder, digest)

    def find(self, prefix: str = "") -> list[Run]:
        """List complete runs whose key begins with `prefix`, of any digest and profile, by key and age.

        Files are not checked here but when they are read. An unreadable manifest is named in a warning.
        """
        runs = []
        for path in self.root.rglob(MANIFEST):
            try:
                manifest = read_manifest(path.parent)
            except ValueError as error:
                warnings.warn(f"{path}: {error}; its run is left out", StoreWarning, stacklevel=2)
                continue
            if manifest and manifest.key.startswith(prefix):
                runs.append(Run(parse_key(manifest.key), path.parent, manifest))
        return sorted(runs, key=lambda run: (run.manifest.key, run.manifest.ended, run.digest))

    def unfinished(self) -> list[Path]:
        """List the folders of runs that were begun and are not complete; asking for one continues it."""
        begun = {path.parent for name in (JOURNAL, TRIES) for path in self.root.rglob(name)}
        return sorted(folder for folder in begun if not (folder / MANIFEST).exists())

    def _folder(self, key: AnyKey, digest: str) -> Path:
        return self.root / key.path / digest[:8]

    def _get(self, key: AnyKey, spec: Spec, seed: int | None, compute: Callable[[Path], _Done]) -> Run:
        if seed not in (None, key.seed):
            remedy = "Put every other seed among the parameters of the Spec"
            raise KBookError(f"the work has the seed {seed}, its key another", str(key), remedy)
        digest = spec.digest
        folder = self._folder(key, digest)
        if run := self.lookup(key, spec):
            return run
        with locked(folder):  # another process may have finished it while this one waited
            if run := _mended(key, folder, digest):
                return run
            for leftover in folder.rglob(".*.tmp"):
                leftover.unlink()
            manifest = self._manifest(key, spec, folder, compute(folder))
            write_manifest(folder, manifest)
            return Run(key, folder, manifest)

    def _manifest(self, key: AnyKey, spec: Spec, folder: Path, done: _Done) -> Manifest:
        return Manifest(
            key=str(key),
            digest=spec.digest,
            parts=spec.parts,
            profile=self.profile,
            seed=key.seed,
            versions=versions(),
            hardware=hardware(),
            seconds=round(done.seconds, 3),
            started=done.started,
            ended=now(),
            commit=git_commit(),
            checksums=checksums(folder, _NOT_OF_THE_RUN),
            n_rows=done.n_rows,
            n_batches=done.n_batches,
            extra=json.loads(canonical_json(dict(done.extra))),
            question=spec.question,
        )


@dataclass(frozen=True)
class _Done:
    """What the work on a run reports when it is finished."""

    started: str
    seconds: float
    extra: Mapping[str, Any]
    n_rows: int | None = None
    n_batches: int | None = None


def _sound_run(key: AnyKey, folder: Path, digest: str) -> Run | None:
    """Open a complete run with all its files sound; None otherwise. Needs no lock: it changes nothing."""
    try:
        manifest = read_manifest(folder)
    except ValueError:
        return None
    if manifest is None or damaged_files(folder, manifest):
        return None
    if (manifest.digest, manifest.key) != (digest, str(key)):
        raise KBookError("the folder holds another run than its name says", str(folder), "Move it away")
    return Run(key, folder, manifest)


def _mended(key: AnyKey, folder: Path, digest: str) -> Run | None:
    """Under the lock: open a sound run, or set aside what is damaged so that it can be computed again."""
    if run := _sound_run(key, folder, digest):
        return run
    try:
        manifest = read_manifest(folder)
    except ValueError as error:
        set_aside(folder / MANIFEST, str(error))
        return None
    if manifest is None:
        return None
    damaged = damaged_files(folder, manifest)
    (folder / MANIFEST).unlink()
    for path in damaged:
        if path.name == ROWS and (folder / JOURNAL).exists():
            salvage(folder)  # keeps the batches before the damage
        else:
            set_aside(path, "its checksum is wrong" if path.exists() else "missing")
    return None


def _begin_try(folder: Path) -> dict[str, Any]:
    """Note that a try begins; add up how far earlier tries came, by the last file that they wrote."""
    path = folder / TRIES
    try:
        tries = json.loads(path.read_bytes())
        newest = max((p.stat().st_mtime for p in folder.rglob("*") if p.is_file()), default=0.0)
        seconds = tries["seconds"] + max(0.0, newest - tries["begun"])
        started = str(tries["started"])
    except (OSError, ValueError, TypeError, KeyError):
        seconds, started = 0.0, now()
    tries = {"started": started, "seconds": seconds, "begun": time.time()}
    write_atomic(path, json.dumps(tries).encode())
    return tries


def _refuse_and_sync(folder: Path) -> None:
    """Refuse pickled files and the store's own names; bring the rest to the disk before the manifest."""
    for path in run_files(folder, _NOT_OF_THE_RUN - {MANIFEST}):
        if path.suffix in _PICKLES or path.name == MANIFEST:
            raise KBookError("a run may not hold this file", str(path), "Write safetensors, JSON or Parquet")
        with open(path, "rb") as file:
            sync(file.fileno())
        sync_folder(path.parent)


def _progress(batches: Sequence[T], done: int, name: str) -> Iterator[T]:
    """Go through the unfinished batches under a progress bar, silent where nobody watches."""
    from tqdm import tqdm

    bar = tqdm(total=len(batches), initial=done, desc=name, unit="batch", disable=not sys.stderr.isatty())
    with bar:
        for batch in batches[done:]:
            yield batch
            bar.update()


def _damaged(path: Path) -> KBookError:
    return KBookError(
        "missing or damaged: its checksum is wrong", str(path), "Run again what made it, to compute it anew"
    )
