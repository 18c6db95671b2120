"""Execute a notebook with papermill, in a process of its own and with a kernel of this very interpreter.

This is the only place that knows papermill. No kernel needs to be installed, none is picked by chance, and
nothing is left behind: when time is up, or the user interrupts, the process ends with all that it started.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import nbformat
import psutil
from nbformat import NotebookNode

from kbook.errors import KBookError
from kbook.files import write_atomic
from kbook.paths import PACKAGE

_KERNEL_START_S = 120
_running: set[subprocess.Popen[bytes]] = set()


def execute(
    notebook: NotebookNode,
    name: str,
    values: Mapping[str, Any],
    root: Path,
    limit_s: int,
    kept: Path,
    environment: Mapping[str, str],
) -> NotebookNode:
    """Execute a notebook whose values are already checked.

    Args:
        notebook: the source, with a cell tagged `parameters`.
        name: for messages.
        values: the parameters, JSON-able.
        root: working folder of the cells.
        limit_s: seconds that it may take.
        kept: where the executed notebook is kept with all its outputs, as far as it ran.
        environment: variables for its process, beside those of this one.
    Returns:
        the executed notebook.
    Raises:
        KBookError: a cell raised, or took too long; the message names it.
    """
    with tempfile.TemporaryDirectory(prefix="kbook-") as folder:
        work = Path(folder)
        output = work / "executed.ipynb"
        nbformat.write(notebook, work / "source.ipynb")
        (work / "parameters.json").write_text(json.dumps(values), encoding="utf-8")
        log = _papermill(work, output, root, limit_s, environment)
        executed = nbformat.read(output, as_version=4) if output.exists() else None
    if executed is not None:
        write_atomic(kept, nbformat.writes(executed).encode("utf-8", "replace"))
        if log is None:
            return executed
    raise _failure(name, executed, log or "", limit_s, kept)


def _papermill(work: Path, output: Path, root: Path, limit_s: int, environment: Mapping[str, str]) -> str | None:
    """Run papermill to its end; return None, or what it said when it failed or was stopped."""
    _write_kernel(work / "jupyter" / "kernels" / "python3")
    bar = "--progress-bar" if sys.stderr.isatty() else "--no-progress-bar"
    command = [
        sys.executable,
        "-m",
        "papermill",
        str(work / "source.ipynb"),
        str(output),
        "--kernel",
        "python3",
    ]
    command += [
        "--parameters_file",
        str(work / "parameters.json"),
        "--cwd",
        str(root),
        bar,
        "--log-level",
        "ERROR",
    ]
    command += ["--start-timeout", str(_KERNEL_START_S), "--execution-timeout", str(limit_s)]
    log = work / "papermill.log"
    with log.open("wb") as file:
        errors = None if sys.stderr.isatty() else file
        child = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=errors,
            env={**_environment(work), **environment},
            start_new_session=True,
        )
        status = _wait(child, limit_s + 2 * _KERNEL_START_S)
    return None if status == 0 else log.read_text(encoding="utf-8", errors="replace")


def _wait(child: subprocess.Popen[bytes], seconds: float) -> int:
    """Wait for a process; when time is up, or the user interrupts, end it with all that it started."""
    _running.add(child)
    try:
        return child.wait(timeout=seconds)
    except subprocess.TimeoutExpired:
        _end(child)
        return -1
    except BaseException:
        _end(child)
        raise
    finally:
        _running.discard(child)


def end_all() -> None:
    """End every notebook that is executed in this process, whatever thread waits for it."""
    for child in list(_running):
        _end(child)


def _end(child: subprocess.Popen[bytes]) -> None:
    """End a process and its kernels, by their ids; the run store survives that at any moment."""
    try:
        family = [*psutil.Process(child.pid).children(recursive=True), psutil.Process(child.pid)]
    except psutil.NoSuchProcess:
        return
    for process in family:
        with suppress(psutil.NoSuchProcess):
            process.kill()
    child.wait()


def _write_kernel(folder: Path) -> None:
    """Describe a kernel of the running interpreter, which logs nothing and keeps no history."""
    quiet = ["--IPKernelApp.log_level=40", "--HistoryManager.enabled=False"]
    argv = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}", *quiet]
    spec = {"argv": argv, "display_name": "Python 3", "language": "python"}
    folder.mkdir(parents=True)
    (folder / "kernel.json").write_text(json.dumps(spec), encoding="utf-8")


def _environment(work: Path) -> dict[str, str]:
    """The environment of a chapter: our kernel first, this very package importable, no bars and notices."""

    def first(path: Path, name: str) -> str:
        return os.pathsep.join([str(path), *filter(None, [os.environ.get(name, "")])])

    return {
        **os.environ,
        "JUPYTER_PATH": first(work / "jupyter", "JUPYTER_PATH"),
        "PYTHONPATH": first(PACKAGE.parent, "PYTHONPATH"),
        "PYDEVD_DISABLE_FILE_VALIDATION": "1",
        "PYTHONWARNINGS": "ignore:IProgress not found",
        "TQDM_DISABLE": "1",
    }


def _failure(name: str, executed: NotebookNode | None, log: str, limit_s: int, kept: Path) -> KBookError:
    """Say which cell failed, and why, in one paragraph."""
    remedy = f"The notebook as far as it ran is {kept}"
    for cell in executed.cells if executed is not None else ():
        fault = _fault(cell, limit_s)
        if fault:
            first = (cell.source.strip().splitlines() or [""])[0]
            return KBookError(fault, f"{name}, {cell.id} ({first[:60]})", remedy)
    said = [line for line in log.splitlines() if any(map(str.isalpha, line))]
    return KBookError(f"could not be run: {said[-1] if said else 'it was stopped'}", name, "See `kbook doctor`")


def _fault(cell: NotebookNode, limit_s: int) -> str:
    """What went wrong in one cell, "" where nothing did; a cell that took too long was interrupted."""
    for output in cell.get("outputs", ()):
        if output.output_type == "error":
            late = output.ename == "KeyboardInterrupt"
            return f"stopped after {limit_s} s" if late else f"{output.ename}: {output.evalue}"
    state = cell.metadata.get("papermill", {})
    unfinished = state.get("exception") or state.get("status") in ("running", "failed")
    return f"stopped after {limit_s} s, or its kernel died" if unfinished else ""
