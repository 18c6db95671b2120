"""What is known about a finished run: who made it, from what, on which machine, in how many seconds.

A manifest is written last and atomically: a folder with a sound manifest is a complete run, any other is not.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import cache, lru_cache
from importlib import import_module, metadata
from pathlib import Path
from typing import Any

from kbook.digests import digest_of, file_digest
from kbook.errors import KBookError
from kbook.files import CORRUPT, write_atomic
from kbook.paths import PACKAGE

MANIFEST = "manifest.json"
SCHEMA_VERSION = 1
_PACKAGES = ("numpy", "torch", "transformers", "tokenizers", "peft", "sentence-transformers", "faiss-cpu")


@dataclass(frozen=True)
class Manifest:
    """The record of a complete run.

    Args:
        key: the string of the run's key.
        digest: digest of `parts`, which the folder's name begins.
        parts: parameters, sources (module → digest), inputs and base.
        profile: the profile under which it was first computed.
        seed: the seed that the key names.
        versions: python, kbook and the packages that decide numbers, as far as installed.
        hardware: system, processor, number of CPUs, memory, GPUs.
        seconds: wall time of the work over all tries.
        started: when the first try began, ISO 8601 in UTC.
        ended: when the manifest was written, likewise.
        commit: `{"id": git commit or "unknown", "dirty": whether tracked files differed from it, or None}`.
        checksums: each file of the run, by its path in the folder → sha256.
        n_rows: rows in `rows.jsonl`; None for a run of files.
        n_batches: batches in which they were made; None likewise.
        extra: what the maker of the run wished to keep, JSON-able.
        question: digest of what was asked, without the source text (`Spec.question`); "" in older runs.
    """

    key: str
    digest: str
    parts: dict[str, Any]
    profile: str
    seed: int
    versions: dict[str, str]
    hardware: dict[str, Any]
    seconds: float
    started: str
    ended: str
    commit: dict[str, Any]
    checksums: dict[str, str]
    n_rows: int | None
    n_batches: int | None
    extra: dict[str, Any]
    schema_version: int = SCHEMA_VERSION
    question: str = ""


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Declare a run complete: all its files must be on the disk already."""
    write_atomic(folder / MANIFEST, manifest_bytes(manifest))


def manifest_bytes(manifest: Manifest) -> bytes:
    """A manifest as the content of its file."""
    content = asdict(manifest)
    content["self"] = digest_of(content)
    return json.dumps(content, indent=1, sort_keys=True).encode() + b"\n"


def read_manifest(folder: Path) -> Manifest | None:
    """Read the manifest of a folder; None where there is none.

    Raises:
        ValueError: as `parse_manifest`.
    """
    try:
        return parse_manifest((folder / MANIFEST).read_bytes())
    except FileNotFoundError:
        return None


def parse_manifest(text: bytes) -> Manifest:
    """Read a manifest from the content of its file.

    Raises:
        ValueError: it is damaged, or written by a later schema.
    """
    try:
        content = json.loads(text)
        sound = isinstance(content, dict) and content.pop("self", None) == digest_of(content)
        manifest = Manifest(**content) if sound else None
    except (ValueError, TypeError, RecursionError, KBookError):
        manifest = None
    if manifest is None or manifest.schema_version != SCHEMA_VERSION:
        raise ValueError("a damaged manifest, or one of another schema")
    return manifest


def damaged_files(folder: Path, manifest: Manifest) -> list[Path]:
    """List the files of a run that are missing or have another checksum than its manifest says."""
    wanted = ((folder / name, checksum) for name, checksum in manifest.checksums.items())
    return [path for path, checksum in wanted if not is_sound(path, checksum)]


def is_sound(path: Path, checksum: str) -> bool:
    """Tell whether a file is there with this sha256; a file that has not changed is hashed once a process."""
    try:
        stat = path.stat()
    except FileNotFoundError:
        return False
    return path.is_file() and _digest_once(path, stat.st_size, stat.st_mtime_ns, stat.st_ino) == checksum


def checksums(folder: Path, skip: frozenset[str]) -> dict[str, str]:
    """Digest every file of a run by its path in the folder, without `skip` and without damaged leftovers."""
    return {str(path.relative_to(folder)): file_digest(path) for path in run_files(folder, skip)}


def run_files(folder: Path, skip: frozenset[str]) -> Iterator[Path]:
    """Yield, in order, every file of a folder that belongs to a run; `skip` names top-level entries."""
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.relative_to(folder).parts[0] not in skip and CORRUPT not in path.name:
            yield path


def now() -> str:
    """The present moment as ISO 8601 in UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def versions() -> dict[str, str]:
    """Versions of what decides numbers, as far as installed; imports none of it."""
    own = import_module("kbook").__version__  # by computed name: a new version alone makes no new digest
    found = {"python": platform.python_version(), "kbook": own}
    for package in _PACKAGES:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return found


@cache
def hardware() -> dict[str, Any]:
    """Describe the machine without naming it.

    *Unit*: `memory_gb` in 10^9 bytes. *Missing*: "unknown", or 0 for the memory.
    """
    return {
        "system": f"{platform.system()} {platform.machine()}",
        "cpu": _cpu_model(),
        "n_cpus": n_cpus(),
        "memory_gb": round(_memory_bytes() / 1e9, 1),
        "gpus": _gpu_models(),
    }


def n_cpus() -> int:
    """How many CPUs this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@cache
def git_commit() -> dict[str, Any]:
    """The commit of the checkout, and whether tracked files differ from it; "unknown" outside of one."""
    git = ("git", "--no-optional-locks", "-C", str(PACKAGE))
    tree_and_commit = _output(*git, "rev-parse", "HEAD:./", "HEAD")  # fails where the package is not tracked
    if not tree_and_commit:
        return {"id": "unknown", "dirty": None}
    changed = _output(*git, "status", "--porcelain", "--untracked-files=no")
    return {"id": tree_and_commit.split()[-1], "dirty": changed != ""}


@lru_cache(maxsize=4096)
def _digest_once(path: Path, size: int, modified: int, inode: int) -> str:
    return file_digest(path)


def _cpu_model() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return _output("sysctl", "-n", "machdep.cpu.brand_string") or platform.processor() or "unknown"


def _memory_bytes() -> int:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError):
        return 0


def _gpu_models() -> list[str]:
    cards = sorted(Path("/proc/driver/nvidia/gpus").glob("*/information"))
    lines = (line for card in cards for line in card.read_text().splitlines())
    return [line.partition(":")[2].strip() for line in lines if line.startswith("Model:")]


def _output(*command: str) -> str:
    """Return what a command prints, "" where it is missing or fails."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=True)
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip()
