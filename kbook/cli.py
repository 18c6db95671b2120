"""The command line: `kbook run`, `kbook book`, `kbook cells`, `kbook base`, `kbook score`, `kbook doctor`.

Each command imports what it needs when it runs, so that `kbook --help` answers at once.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TextIO

from kbook import __version__
from kbook.errors import KBookError

BAD_INPUT, INTERRUPTED = 2, 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; return 0, 1 (something is missing), 2 (bad input) or 130 (interrupted)."""
    options = _parser().parse_args(arguments)
    warnings.showwarning = _show_warning
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # `kill` ends a command as Ctrl-C does
    try:
        status: int = options.command(options)
        sys.stdout.flush()
        return status
    except KBookError as error:
        print(f"kbook: {error}", file=sys.stderr)
        return BAD_INPUT
    except KeyboardInterrupt:
        print("\nkbook: interrupted; the same command goes on where it stopped", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:  # the reader of a pipe, such as `head`, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="kbook",
        description="Two benchmarks of language-model unlearning as a book that runs.",
        epilog="Begin with `kbook doctor`.",
    )
    parser.add_argument("--version", action="version", version=f"kbook {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)

    run = commands.add_parser("run", help="run one chapter, with other parameters if you like")
    run.add_argument("chapter", metavar="CHAPTER", help="name of a notebook, as in kbench_topology")
    run.add_argument("-p", action="append", default=[], metavar="NAME=VALUE", help="set a parameter of the chapter")
    _add_profile(run)
    run.set_defaults(command=_run)

    book = commands.add_parser("book", help="run every chapter and build the HTML")
    _add_profile(book)
    book.add_argument("--fresh", action="store_true", help="compute everything anew")
    book.set_defaults(command=_book)

    cells = commands.add_parser("cells", help="list what the run store holds")
    cells.add_argument("prefix", nargs="?", default="", metavar="KEY", help="only keys that begin like this")
    cells.set_defaults(command=_cells)

    base = commands.add_parser("base", help="train an embedded base model, or measure its abilities")
    base.add_argument("action", choices=("train", "check"))
    base.add_argument("name", metavar="NAME", help="as in llama-tiny")
    base.set_defaults(command=_base)

    score = commands.add_parser("score", help="score a folder of transcripts, of any origin")
    score.add_argument("--cells", required=True, type=Path, metavar="DIR", help="folder of transcript files (JSONL)")
    score.set_defaults(command=_score)

    doctor = commands.add_parser("doctor", help="tell what this machine can run, and how to get what is missing")
    doctor.set_defaults(command=_doctor)
    return parser


def _add_profile(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--profile", default="laptop", metavar="NAME", help="sizes and models (default: laptop)")


def _run(options: argparse.Namespace) -> int:
    from kbook.chapters import run_chapter
    from kbook.profiles import load_profile

    run_chapter(options.chapter, load_profile(options.profile).name, _assignments(options.p))
    return 0


def _book(options: argparse.Namespace) -> int:
    from kbook.chapters import build_book
    from kbook.profiles import load_profile

    build_book(load_profile(options.profile).name, fresh=options.fresh)
    return 0


def _cells(options: argparse.Namespace) -> int:
    from kbook.store import Store

    store = Store()
    runs = store.find(options.prefix)
    for run in runs:
        made = run.manifest
        size = f"{len(made.checksums)} files" if made.n_rows is None else f"{made.n_rows} rows"
        print(f"{made.key}  {made.digest[:8]}  {made.profile}  {size}  {made.seconds:.1f} s  {made.ended}")
    keys = [str(folder.relative_to(store.root)) for folder in store.unfinished()]
    unfinished = [key for key in keys if key.startswith(options.prefix)]
    for key in unfinished:
        print(f"{key}  unfinished: the command that began it goes on where it stopped")
    seconds = sum(run.manifest.seconds for run in runs)
    complete = f"{len(runs)} complete ({seconds / 60:.1f} minutes of work)"
    print(f"{complete}, {len(unfinished)} unfinished in {store.root}")
    return 0


def _base(options: argparse.Namespace) -> int:
    from kbook.agent import card

    measure = card.train_and_install if options.action == "train" else card.check_base
    abilities = measure(options.name)
    print(card.report(abilities))
    return 0 if all(ability.passed for ability in abilities) else 1


def _score(options: argparse.Namespace) -> int:
    if not options.cells.is_dir():
        raise KBookError("is not a folder", str(options.cells), "Give the folder that holds the transcript files")
    from kbook.scoring.folder import score_folder

    score_folder(options.cells)
    return 0


def _doctor(_: argparse.Namespace) -> int:
    from kbook.doctor import examine, report

    findings = examine()
    print(report(findings))
    return 1 if any(finding.state == "missing" for finding in findings) else 0


def _assignments(pairs: Sequence[str]) -> dict[str, str]:
    """Split `name=value` at the first `=`; the chapter checks names and types."""
    parameters: dict[str, str] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not (equals and name.strip()):
            raise KBookError(f"{pair!r} sets no parameter", "-p", "Write -p name=value")
        if name.strip() in parameters:
            raise KBookError(f"the parameter {name.strip()!r} is set twice", "-p", "Give each once")
        parameters[name.strip()] = value
    return parameters


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """Print a warning as a reader wants it: what is wrong, not the line of code that noticed it."""
    print(f"kbook: warning: {message}", file=sys.stderr)
