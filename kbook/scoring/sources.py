"""Transcripts where they lie: which file holds which cell, and what its sidecar says of how it was made."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from kbook.errors import KBookError, unknown_name
from kbook.files import read_jsonl
from kbook.keys import LANES, CellKey, check_name
from kbook.scoring.notices import Notice

PROTOCOL = "kbench"
MAX_LINE = 16 * 10**6
"""Longest line that is read, in bytes; a trace of an agent has some thousands."""

Config = Mapping[str, Any]
Reasons = Mapping[tuple[str, str], str]
"""(lane, method) → why the method cannot reach the lane."""


@dataclass(frozen=True)
class Source:
    """The transcript of one cell.

    Args:
        prefix: names the table: cells of different prefixes were made apart and are judged apart.
        key: the cell.
        path: the file of its rows.
        config: its sidecar, what is known of how it was made; None without one.
        sha256: what its bytes must digest to; "" where nothing says so.
    """

    prefix: str
    key: CellKey
    path: Path
    config: Config | None = None
    sha256: str = ""

    def content(self) -> bytes:
        """Read the bytes of the file.

        Raises:
            KBookError: it cannot be read, or has another checksum than it should.
        """
        try:
            content = self.path.read_bytes()
        except OSError as error:
            raise KBookError(f"cannot be read ({error.strerror})", str(self.path), "Restore the file") from None
        if self.sha256 and hashlib.sha256(content).hexdigest() != self.sha256:
            raise KBookError("has another checksum than its manifest says", str(self.path), "Restore the file")
        return content

    def parse(self, content: bytes) -> list[dict[str, Any]]:
        """Read rows from the bytes of the file.

        Raises:
            KBookError: a line is too long or no JSON object; names file and line.
        """
        for number, line in enumerate(content.split(b"\n"), start=1):
            if len(line) > MAX_LINE:
                what = f"a line of {len(line) / 1e6:.1f} MB, of which at most {MAX_LINE / 1e6:.0f} MB are read"
                raise KBookError(what, f"{self.path}, line {number}", "Remove the line, or what fills it")
        return read_jsonl(self.path, content)

    def rows(self) -> list[dict[str, Any]]:
        """Read the file and its rows.

        Raises:
            KBookError: as `content` and `parse`.
        """
        return self.parse(self.content())


@dataclass(frozen=True)
class Found:
    """What a folder holds.

    Args:
        layout: how its cells are kept: "official files", "run store" or "bundle".
        sources: the cells, in the order of prefix and key.
        notices: what a reader must know of the files.
        not_applicable: prefix → combinations that are no gaps, with the reason.
    """

    layout: str
    sources: tuple[Source, ...]
    notices: tuple[Notice, ...] = ()
    not_applicable: Mapping[str, Reasons] = field(default_factory=dict)

    @property
    def prefixes(self) -> tuple[str, ...]:
        """The tables, in order."""
        return tuple(dict.fromkeys(source.prefix for source in self.sources))

    def of(self, prefix: str) -> tuple[Source, ...]:
        """The cells of one table."""
        return tuple(source for source in self.sources if source.prefix == prefix)

    def only(self, prefix: str | None, where: str) -> Found:
        """Leave one table, or all where no prefix is given.

        Raises:
            KBookError: there is no such prefix; names the nearest.
        """
        if prefix is None:
            return self
        if prefix not in self.prefixes:
            raise unknown_name("prefix", prefix, self.prefixes, where)
        return replace(self, sources=self.of(prefix))


def in_order(sources: Sequence[Source]) -> tuple[Source, ...]:
    """Sort cells by table and key; refuse two that are the same cell.

    Raises:
        KBookError: two files hold the same cell; names both.
    """
    seen: dict[tuple[str, CellKey], Source] = {}
    for source in sources:
        place = (source.prefix, source.key)
        if place in seen:
            what = f"the same cell as {seen[place].path.name}"
            raise KBookError(what, str(source.path), "Keep one of the two files")
        seen[place] = source
    return tuple(seen[place] for place in sorted(seen))


def read_object(path: Path, what: str) -> dict[str, Any]:
    """Read a small JSON file that holds one object.

    Raises:
        KBookError: it cannot be read, or holds something else; `what` says what it should be.
    """
    content = read_json(path, what)
    if not isinstance(content, dict):
        raise KBookError(f"not {what}: no JSON object", str(path), "Restore the file")
    return content


def read_json(path: Path, what: str) -> Any:
    """Read a small JSON file.

    Raises:
        KBookError: it cannot be read, or is no JSON; `what` says what it should be.
    """
    try:
        return json.loads(path.read_bytes().decode(), parse_constant=_refuse_constant)
    except OSError as error:
        raise KBookError(f"cannot be read ({error.strerror})", str(path), "Restore the file") from None
    except (ValueError, RecursionError) as error:
        raise KBookError(f"not {what}: no JSON ({error})", str(path), "Restore the file") from None


def read_reasons(content: Any, where: str) -> dict[tuple[str, str], str]:
    """Read a list of combinations that do not apply: `[{"lane": …, "method": …, "reason": …}]`.

    Raises:
        KBookError: it is no such list, or names an unknown lane.
    """
    remedy = 'Write a list of {"lane": …, "method": …, "reason": …}'
    if not isinstance(content, list):
        raise KBookError("not a list of what does not apply", where, remedy)
    reasons = {}
    for entry in content:
        texts = [entry.get(name) for name in ("lane", "method", "reason")] if isinstance(entry, dict) else [None]
        if not all(isinstance(text, str) and text for text in texts):
            raise KBookError(f"{entry!r} does not say what does not apply"[:200], where, remedy)
        lane, method, reason = map(str, texts)
        reasons[check_name("lane", lane, LANES, where), method] = reason
    return reasons


def without_sidecar(sources: Sequence[Source]) -> Iterator[Notice]:
    """Say once how many cells have no sidecar."""
    bare = [source for source in sources if source.config is None]
    if bare:
        text = f"{len(bare)} of {len(sources)} cells have no sidecar: base and settings are not known"
        yield Notice("sidecar_missing", bare[0].prefix, text)


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no number of JSON")
