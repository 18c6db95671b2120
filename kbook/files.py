"""Files that survive a crash: atomic writes, locks between processes, records that name a bad line."""

from __future__ import annotations

import fcntl
import json
import os
import secrets
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kbook.errors import KBookError

CORRUPT = ".corrupt-"


class StoreWarning(UserWarning):
    """Something in the run store was damaged, and was set aside; the message names it."""


def write_atomic(path: Path, content: bytes) -> None:
    """Write a file so that after a crash it holds either its old or its new content, whole.

    The folder is made where it is missing. A leftover `.NAME.*.tmp` of a killed writer is harmless.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    try:
        with open(temporary, "xb") as file:
            file.write(content)
            sync(file.fileno())
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
    sync_folder(path.parent)


def sync(descriptor: int) -> None:
    """Wait until what was written to an open file is on the disk."""
    os.fsync(descriptor)


def sync_folder(folder: Path) -> None:
    """Wait until new, renamed and removed names in a folder are on the disk."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        sync(descriptor)
    finally:
        os.close(descriptor)


def set_aside(path: Path, reason: str) -> None:
    """Rename a damaged file to `NAME.corrupt-N`, so that nobody reads it, and warn by name.

    A file that is missing is only warned of.
    """
    fate = "to be computed again"
    if path.exists():
        n = 0
        while (aside := path.with_name(f"{path.name}{CORRUPT}{n}")).exists():
            n += 1
        os.replace(path, aside)
        sync_folder(path.parent)
        fate = f"set aside as {aside.name}, {fate}"
    warnings.warn(f"{path}: {reason}; {fate}", StoreWarning, stacklevel=2)


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold a folder for this process; another process that wants it waits until it is free.

    The lock is the operating system's, on the file `.lock`: it ends with the process, however that ends.

    Raises:
        KBookError: the folder cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(folder / ".lock", os.O_RDWR | os.O_CREAT, 0o666)
    except OSError as error:
        remedy = "Make it writable, or name another store in the environment variable KBOOK_STORE"
        raise KBookError(f"cannot be written ({error.strerror})", str(folder), remedy) from None
    try:
        _wait(descriptor, folder)
        yield
    finally:
        os.close(descriptor)


def read_jsonl(path: Path, content: bytes | None = None) -> list[dict[str, Any]]:
    """Read a record file, one JSON object a line; empty lines are skipped.

    Args:
        path: the file.
        content: its bytes, if they have been read already.
    Raises:
        KBookError: a line is not a JSON object (cut off, binary, too deep …); names file and line.
    """
    return [row for _, row in numbered_jsonl(path, content)]


def numbered_jsonl(path: Path, content: bytes | None = None) -> list[tuple[int, dict[str, Any]]]:
    """As `read_jsonl`, each record with the number of its line, from 1."""
    data = path.read_bytes() if content is None else content
    lines = data.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    return [(number, _record(line, path, number)) for number, line in enumerate(lines, start=1) if line.strip()]


def write_jsonl(rows: list[dict[str, Any]]) -> bytes:
    """Write rows as a record file holds them: UTF-8, one object a line, keys in the given order.

    Raises:
        KBookError: a row cannot be written as JSON; names its number.
    """
    return b"".join(_line(row, number) for number, row in enumerate(rows, start=1))


def _line(row: dict[str, Any], number: int) -> bytes:
    try:
        text = json.dumps(row, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError) as error:
        remedy = "Give plain numbers, strings, lists and dicts"
        raise KBookError(f"row {number} cannot be written as JSON ({error})", "records", remedy) from None
    try:
        return text.encode() + b"\n"
    except UnicodeEncodeError:  # half a surrogate pair, which only an escape can carry
        return json.dumps(row, allow_nan=False).encode() + b"\n"


def _record(line: bytes, path: Path, number: int) -> dict[str, Any]:
    try:
        row = json.loads(line.decode())
    except (ValueError, RecursionError) as error:
        problem = f"not a line of JSON ({error})"
    else:
        if isinstance(row, dict):
            return row
        problem = "not a JSON object"
    remedy = "Restore the file, or remove this line to do without its record"
    raise KBookError(problem, f"{path}, line {number}", remedy)


def _wait(descriptor: int, folder: Path) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        if sys.stderr.isatty():
            print(f"waiting for another process that works on {folder}", file=sys.stderr)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
