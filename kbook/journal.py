"""A record file that grows a batch at a time and can be continued after a kill at any moment.

`rows.jsonl` holds the rows and nothing else, so that it has the same bytes however often it was interrupted.
`rows.journal` beside it says where each finished batch ends and what its bytes must be. A batch exists once
its line is in the journal, and that line is written after the rows are on the disk: rows beyond the last line
are the torn tail of a killed batch, while rows that a line promises and that are not there are damage.
"""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

from kbook.errors import KBookError
from kbook.files import set_aside, sync, write_atomic, write_jsonl

ROWS = "rows.jsonl"
JOURNAL = "rows.journal"


@dataclass(frozen=True)
class Header:
    """The first line of a journal: whose rows these are, and when they were begun."""

    digest: str
    n_batches: int
    started: str


@dataclass(frozen=True)
class Batch:
    """One line of a journal: where a finished batch ends, and the time it took.

    *Unit*: `end` bytes from the start of `rows.jsonl`, `seconds` of wall time.
    """

    n_rows: int
    end: int
    sha256: str
    seconds: float


class RowJournal:
    """The open record file of a run; use as a context manager, under the lock of the folder.

    Opening drops the torn tail of a killed batch. A damaged `rows.jsonl` is set aside with a warning, and the
    batches before the damage are kept.

    Args:
        folder: where the two files are, or will be.
        header: what a new journal begins with; an older one must agree in digest and number of batches.
    Raises:
        KBookError: the folder holds other batches than these.
    """

    def __init__(self, folder: Path, header: Header) -> None:
        self._folder = folder
        found = salvage(folder)
        if found is None:
            write_atomic(folder / JOURNAL, _encode(header))
            write_atomic(folder / ROWS, b"")
            found = header, []
        self.header, self.batches = found
        if (self.header.digest, self.header.n_batches) != (header.digest, header.n_batches):
            raise other_batches(self.header.n_batches, header.n_batches, folder)
        self._rows = os.open(folder / ROWS, os.O_WRONLY | os.O_APPEND)
        self._journal = os.open(folder / JOURNAL, os.O_WRONLY | os.O_APPEND)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._rows)
        os.close(self._journal)

    @property
    def n_rows(self) -> int:
        """How many rows the finished batches hold."""
        return sum(batch.n_rows for batch in self.batches)

    @property
    def seconds(self) -> float:
        """Wall time of the finished batches, over all tries."""
        return sum(batch.seconds for batch in self.batches)

    def append(self, rows: list[dict[str, Any]], seconds: float) -> None:
        """Add one batch; when this returns it is on the disk.

        Raises:
            KBookError: a row cannot be written as JSON; nothing is added then.
        """
        content = write_jsonl(rows)
        end = (self.batches[-1].end if self.batches else 0) + len(content)
        batch = Batch(len(rows), end, hashlib.sha256(content).hexdigest(), round(seconds, 3))
        _write_all(self._rows, content)
        sync(self._rows)
        _write_all(self._journal, _encode(batch))
        sync(self._journal)
        self.batches.append(batch)


def salvage(folder: Path) -> tuple[Header, list[Batch]] | None:
    """Bring the two files of a folder into agreement; return what is sound, None where nothing is.

    A torn tail is cut off. Damaged files are set aside with a warning that names them.
    """
    journal, rows = folder / JOURNAL, folder / ROWS
    header, promised = _read_journal(journal)
    if header is None:
        for path in (journal, rows):
            if path.exists():
                set_aside(path, "its journal is missing or damaged")
        return None
    content = rows.read_bytes() if rows.exists() else b""
    sound = _sound_batches(promised, content)
    end = sound[-1].end if sound else 0
    if len(sound) < len(promised):
        line = content[:end].count(b"\n") + 1
        set_aside(rows, f"damaged at or after line {line}" if rows.exists() else "missing")
    if len(content) != end or not rows.exists():
        write_atomic(rows, content[:end])
    kept = _encode(header) + b"".join(map(_encode, sound))
    if journal.read_bytes() != kept:
        write_atomic(journal, kept)
    return header, sound


def other_batches(found: int, wanted: int, folder: Path) -> KBookError:
    """Build the error for a run that is continued or read with another number of batches than it has."""
    what = f"this run has {found} batches, and is now asked for as one of {wanted}"
    return KBookError(what, str(folder), "Put whatever decides the batches among the parameters of the run's Spec")


def _read_journal(path: Path) -> tuple[Header | None, list[Batch]]:
    """Read a journal up to its first line that is not whole."""
    lines = path.read_bytes().split(b"\n")[:-1] if path.exists() else []
    header: Header | None = None
    batches: list[Batch] = []
    try:
        for line in lines:
            item = json.loads(line)
            if header is None:
                header = Header(str(item["digest"]), int(item["n_batches"]), str(item["started"]))
            else:
                batches.append(_batch(item))
    except (ValueError, TypeError, KeyError):
        pass  # what follows a damaged line is computed again
    return header, batches


def _batch(item: dict[str, Any]) -> Batch:
    return Batch(int(item["n_rows"]), int(item["end"]), str(item["sha256"]), float(item["seconds"]))


def _sound_batches(promised: list[Batch], content: bytes) -> list[Batch]:
    sound: list[Batch] = []
    start = 0
    for batch in promised:
        piece = content[start : batch.end]
        found = (len(piece), piece.count(b"\n"), hashlib.sha256(piece).hexdigest())
        if found != (batch.end - start, batch.n_rows, batch.sha256):
            break
        sound.append(batch)
        start = batch.end
    return sound


def _encode(item: Header | Batch) -> bytes:
    return json.dumps(asdict(item)).encode() + b"\n"


def _write_all(descriptor: int, content: bytes) -> None:
    view = memoryview(content)
    while view:
        view = view[os.write(descriptor, view) :]
