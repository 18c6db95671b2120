"""`kbook score`, `kbook bundle` and `kbook report`: from a folder of transcripts to what a reader holds in hand."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

from kbook.errors import KBookError
from kbook.files import write_atomic
from kbook.report.scorecard import scorecard, to_json
from kbook.report.scorecard_html import GENERATOR, page
from kbook.report.scorecard_text import report_lines
from kbook.scoring.bundle import MANIFEST
from kbook.scoring.folder import Scored, score_folder
from kbook.scoring.notices import Notice
from kbook.scoring.packing import write_bundle

STDOUT = Path("-")
INDEX = "index.html"


def score(
    cells: Path,
    prefix: str | None = None,
    *,
    rule: str = "published",
    json: Path | None = None,
    html: Path | None = None,
) -> None:
    """Score a folder, print the report, and write it where that is asked for.

    Nothing is written before all is scored.

    Args:
        cells: folder of official files, run store or bundle.
        prefix: only the cells of this table.
        rule: name of the matcher.
        json: file for the JSON object; `-` prints it in place of the report.
        html: folder for the HTML report.

    Raises:
        KBookError: as `score_folder`; an output would replace what is no output of this command.
    """
    scored = score_folder(cells, prefix, rule=rule)
    card = scorecard(scored) if json or html else {}
    files = {json: to_json(card)} if json not in (None, STDOUT) else {}
    files |= {html / INDEX: page(scored, card)} if html else {}
    for path in files:
        _check(path, scored)
    for path, text in files.items():
        _write(path, text)
    sys.stdout.write(to_json(card) if json == STDOUT else "\n".join(report_lines(scored)) + "\n")


def report(bundle: Path, *, rule: str = "published", json: Path | None = None, html: Path | None = None) -> None:
    """Check a bundle, then score it as `score` does.

    Raises:
        KBookError: the folder is no sound bundle, or as `score`.
    """
    if bundle.is_dir() and not (bundle / MANIFEST).exists():
        raise KBookError("is no bundle", str(bundle), f"Make one with kbook bundle --cells {bundle} --out NAME")
    score(bundle, rule=rule, json=json, html=html)


def bundle(cells: Path, out: Path, prefix: str | None = None) -> None:
    """Write a bundle and say what it holds and what it lacks.

    Raises:
        KBookError: as `write_bundle`.
    """
    made = write_bundle(cells, out, prefix)
    print(f"{made.path}: {made.n_cells} cells")
    print("\n".join(_warnings(made.notices)), end="\n" if made.notices else "")


def _warnings(notices: Iterable[Notice]) -> list[str]:
    return [f"  [{notice.code}] {notice}" for notice in notices]


def _check(path: Path, scored: Scored) -> None:
    """Refuse to write over a transcript, a folder, or a page that another program made."""
    if path.resolve() in {source.path.resolve() for source in scored.found.sources}:
        raise KBookError("is one of the transcripts that were scored", str(path), "Name another file")
    if path.is_dir():
        raise KBookError("is a folder", str(path), "Name a file")
    if path.name == INDEX and path.is_file() and GENERATOR.encode() not in path.read_bytes()[:4096]:
        raise KBookError("is a page that this command did not make", str(path), "Name another folder")


def _write(path: Path, text: str) -> None:
    try:
        write_atomic(path, text.encode())
    except OSError as error:
        raise KBookError(f"cannot be written ({error.strerror})", str(path), "Name another place") from None
