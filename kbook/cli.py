"""The command line: one function a command, from `kbook run` to `kbook doctor`.

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
from typing import Any, TextIO

from kbook import __version__
from kbook.errors import KBookError

BAD_INPUT, INTERRUPTED = 2, 130

_STATUS = (
    "Exit status: 0, done, with or without warnings; 2, bad input: one line says what and where, nothing is written."
)


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

    ship = commands.add_parser("ship", help="pack the runs of a profile into data/results, as they come with the book")
    _add_profile(ship)
    ship.set_defaults(command=_ship)

    sweep = commands.add_parser("sweep", help="try settings of methods on the fitting pools, and choose by one rule")
    sweep.add_argument("methods", nargs="*", metavar="METHOD", help="default: every method with a sweep in the profile")
    _add_profile(sweep)
    sweep.add_argument("--base", metavar="NAME", help="base model (default: the first of the profile)")
    sweep.set_defaults(command=_sweep)

    cells = commands.add_parser("cells", help="list what the run store holds")
    cells.add_argument("prefix", nargs="?", default="", metavar="KEY", help="only keys that begin like this")
    cells.set_defaults(command=_cells)

    base = commands.add_parser("base", help="train an embedded base model, or measure its abilities")
    base.add_argument("action", choices=("train", "check"))
    base.add_argument("name", metavar="NAME", help="as in llama-tiny")
    base.set_defaults(command=_base)

    methods = commands.add_parser("methods", help="list the unlearning methods: where each acts and what it can reach")
    methods.add_argument("--json", action="store_true", help="as JSON, with every setting")
    methods.set_defaults(command=_methods)

    _add_scoring(commands)

    doctor = commands.add_parser("doctor", help="tell what this machine can run, and how to get what is missing")
    doctor.set_defaults(command=_doctor)
    return parser


def _add_scoring(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the three commands that work on transcripts of any origin."""
    score = commands.add_parser("score", help="score a folder of transcripts, of any origin", epilog=_STATUS)
    _add_cells(score)
    _add_outputs(score)
    score.set_defaults(command=_score)

    bundle = commands.add_parser("bundle", help="pack transcripts with checksums and sidecars", epilog=_STATUS)
    _add_cells(bundle)
    bundle.add_argument(
        "--out", required=True, type=Path, metavar="B", help="the folder to write; a bundle is replaced"
    )
    bundle.set_defaults(command=_bundle)

    report = commands.add_parser("report", help="check a bundle and score it", epilog=_STATUS)
    report.add_argument("bundle", type=Path, metavar="B", help="a folder that `kbook bundle` wrote")
    _add_outputs(report)
    report.set_defaults(command=_report)


def _add_cells(parser: argparse.ArgumentParser) -> None:
    where = "folder of transcript files (JSONL), run store or a part of it, or bundle"
    parser.add_argument("--cells", required=True, type=Path, metavar="DIR", help=where)
    parser.add_argument("--prefix", metavar="P", help="only the cells of this table (default: each by itself)")


def _add_outputs(parser: argparse.ArgumentParser) -> None:
    rule = "when a text shows a value: as the paper does, or with word boundaries and more spellings"
    parser.add_argument("--matcher", default="published", metavar="published|strict", help=rule)
    parser.add_argument("--html", type=Path, metavar="DIR", help="write a page that stands alone to DIR/index.html")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write everything as one JSON object (- prints it)")


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


def _ship(options: argparse.Namespace) -> int:
    from kbook.paths import data_folder
    from kbook.profiles import load_profile
    from kbook.shipping import ship
    from kbook.store import Store

    profile = load_profile(options.profile).name
    for path, size in ship(Store(), profile, data_folder() / "results").items():
        print(f"{path}  {size / 1e6:.1f} MB")
    return 0


def _sweep(options: argparse.Namespace) -> int:
    from kbook.kbench import KBench
    from kbook.scoring.selection import report
    from kbook.sweeps import candidates, run_sweep

    bench = KBench(options.profile, base=options.base)
    methods = options.methods or list(bench.profile.sweeps)
    for method in methods:
        candidates(bench, method)
    for method in methods:
        print(report(run_sweep(bench, method)), flush=True)
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


def _methods(options: argparse.Namespace) -> int:
    import json

    from kbook.methods.registry import described

    found = described()
    if options.json:
        print(json.dumps(found, indent=2))
        return 0
    for method in found:
        print(f"{method['name']}  {method['title']}: {method['family']}; lanes {', '.join(method['lanes'])}")
        print(f"    {method['source']}" + (f"\n    not elsewhere: {method['reason']}" if method["reason"] else ""))
    return 0


def _score(options: argparse.Namespace) -> int:
    from kbook.scorecards import score

    score(options.cells, options.prefix, **_outputs(options))
    return 0


def _bundle(options: argparse.Namespace) -> int:
    from kbook.scorecards import bundle

    bundle(options.cells, options.out, options.prefix)
    return 0


def _report(options: argparse.Namespace) -> int:
    from kbook.scorecards import report

    report(options.bundle, **_outputs(options))
    return 0


def _outputs(options: argparse.Namespace) -> dict[str, Any]:
    return {"rule": options.matcher, "json": options.json, "html": options.html}


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
