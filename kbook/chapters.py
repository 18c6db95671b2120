"""Run chapters and build the book: parameters are checked, papermill executes, Sphinx only typesets.

A chapter is `notebooks/NAME.ipynb`; its page `book/chapters/NAME.ipynb` is made here and never edited. The
order of the book is `book/_toc.yml` and stands nowhere else.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

import nbformat
import yaml
from nbformat import NotebookNode

from kbook.errors import KBookError, unknown_name
from kbook.execution import end_all, execute
from kbook.files import locked, write_atomic
from kbook.manifests import git_commit, hardware, now, versions
from kbook.paths import project_root, store_folder
from kbook.profiles import load_profile
from kbook.report.artifacts import Artifact
from kbook.report.check import check_book
from kbook.report.method_pages import FACTS, generated_parts
from kbook.report.pages import Page, make_page
from kbook.report.parameters import Parameter, check, read_parameters
from kbook.report.status import PARAMETERS, STATUS, ChapterRecord, parameters_page, status_page
from kbook.report.text import colourless
from kbook.shipped import SWITCH
from kbook.shipping import changed_sources
from kbook.store import Store
from kbook.workers import WORKERS, workers

CHAPTERS = Path("book") / "chapters"
EXECUTED = Path("_build") / "executed"
LIMIT_S = {"smoke": 15 * 60, "laptop": 2 * 3600}
"""Seconds that a chapter may take; other profiles may take a week."""
LONGEST_S = 7 * 24 * 3600
AT_ONCE = 2
"""Chapters of a book that run side by side. More would mostly wait for the same models."""

_RECORD = "chapter.json"
_COMPLAINT = re.compile(r"WARNING|ERROR|SEVERE|[Ee]rror:")
_BUILD = "from jupyter_book.cli.main import main; main()"


@dataclass(frozen=True)
class Chapter:
    """A chapter's source: its notebook, each cell with its number as id, and the parameters it takes."""

    name: str
    notebook: NotebookNode
    parameters: tuple[Parameter, ...]

    def values(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Complete given values with the defaults.

        Raises:
            KBookError: a name is unknown, or a value ill-typed or out of range.
        """
        return {p.name: p.default for p in self.parameters} | check(given, self.parameters, self.name)


def load_chapter(name: str, root: Path | None = None) -> Chapter:
    """Read a chapter by its name.

    Raises:
        KBookError: there is no such notebook, it is not readable, or its parameters cell is not in order.
    """
    folder = (root or project_root()) / "notebooks"
    names = sorted(path.stem for path in folder.glob("*.ipynb"))
    if name not in names:
        raise unknown_name("chapter", name, names, str(folder))
    path = folder / f"{name}.ipynb"
    try:
        notebook = nbformat.read(path, as_version=4)
    except Exception as error:  # nbformat raises its own errors, JSON's and ours for damaged files
        raise KBookError(f"not a readable notebook ({error})", str(path), "Mend the file") from None
    for number, cell in enumerate(notebook.cells, 1):
        cell["id"] = f"cell-{number}"
    notebook.nbformat_minor = max(5, notebook.nbformat_minor)
    return Chapter(name, notebook, read_parameters(notebook, name))


def run_chapter(
    name: str,
    profile: str = "laptop",
    parameters: Mapping[str, Any] | None = None,
    root: Path | None = None,
    environment: Mapping[str, str] | None = None,
) -> Path:
    """Run one chapter in a fresh process and make its page.

    Args:
        name: of the notebook, without suffix.
        profile: value of the chapter's parameter `profile`.
        parameters: other parameters; text is read as typed on a command line.
        root: the checkout; by default that of this package.
        environment: variables for the process, beside those of this one.
    Returns:
        the page, `book/chapters/NAME.ipynb`; the notebook as it ran, for JupyterLab, is in `_build/executed`.
    Raises:
        KBookError: a parameter is refused (nothing was run then), or a cell failed; the message names it.
    """
    root = (root or project_root()).resolve()
    chapter = load_chapter(name, root)
    values = chapter.values({"profile": profile, **(parameters or {})})
    load_profile(values["profile"])
    print(f"{name}: running ({values['profile']})", flush=True)
    begun = time.monotonic()
    limit, kept = LIMIT_S.get(values["profile"], LONGEST_S), root / EXECUTED / f"{name}.ipynb"
    executed = execute(chapter.notebook, name, values, root, limit, kept, environment or {})
    seconds = time.monotonic() - begun
    page = make_page(executed, name, chapter.parameters, values, root)
    path = _write_page(page, _record(chapter, values, seconds, page), root / CHAPTERS)
    print(f"{name}: done in {seconds:.0f} s; with all its outputs: {kept}", flush=True)
    return path


def build_book(profile: str = "laptop", fresh: bool = False, root: Path | None = None) -> Path:
    """Run every chapter of the table of contents, build the HTML and check it.

    Args:
        profile: for all chapters.
        fresh: compute everything anew, shipped results left alone; the run store is kept aside, under another name.
        root: the checkout; by default that of this package.
    Returns:
        the first page of the HTML.
    Raises:
        KBookError: a chapter is missing or fails, Sphinx has a warning, or the HTML is not sound.
    """
    root = (root or project_root()).resolve()
    load_profile(profile)
    _require_version_1()
    pages = toc_pages(root)
    names = _chapter_names(pages, root)
    if fresh:
        os.environ[SWITCH] = "off"
        _keep_store_aside()
    _run_chapters(names, profile, root)
    _write_generated_pages(names, root)
    html = _typeset(root)
    problems = check_book(html, pages, {str(CHAPTERS / n): _artifacts(root, n) for n in names}, root)
    if problems:
        what = f"the built book has {len(problems)} faults: {'; '.join(problems[:12])}"
        raise KBookError(what, str(html), "Mend the pages it names and build again")
    print(f"the book: {html / 'index.html'}")
    return html / "index.html"


def _run_chapters(names: Sequence[str], profile: str, root: Path) -> None:
    """Run chapters in their order, two at a time where there is a core for each; runs they share are computed once.

    When one fails, or the user interrupts, the other one is ended and none begins.
    """
    cores = workers(load_profile(profile).device)
    at_once = min(AT_ONCE, cores)
    share = str(max(1, cores // at_once))
    with ThreadPoolExecutor(at_once) as pool:
        settings = {WORKERS: share, "OMP_NUM_THREADS": share} if at_once > 1 else {}
        futures = [pool.submit(run_chapter, name, profile, root=root, environment=settings) for name in names]
        try:
            for future in as_completed(futures):
                future.result()
        except BaseException:
            while not all([future.cancel() or future.done() for future in futures]):
                end_all()  # again and again: one may be about to begin
                time.sleep(0.1)
            raise


def toc_pages(root: Path) -> list[str]:
    """List the pages of `book/_toc.yml` in order, without suffix.

    Raises:
        KBookError: the file is not YAML with a root page.
    """
    path = root / "book" / "_toc.yml"
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
        pages = list(_files_in(content))
    except (OSError, yaml.YAMLError) as error:
        raise KBookError(f"not a readable table of contents ({error})", str(path), "Mend the file") from None
    if not isinstance(content, dict) or "root" not in content:
        raise KBookError("no root page", str(path), "Begin it with format: jb-book and root: book/intro")
    return pages


def _files_in(content: Any) -> Iterator[str]:
    """Walk a table of contents: every `root` and every `file`, depth first."""
    if isinstance(content, dict):
        yield from (str(content[key]) for key in ("root", "file") if key in content)
    children = content.values() if isinstance(content, dict) else content if isinstance(content, list) else ()
    for child in children:
        yield from _files_in(child)


def _chapter_names(pages: Sequence[str], root: Path) -> list[str]:
    """Tell the chapters among the pages, and refuse a page that has no source."""
    where = str(root / "book" / "_toc.yml")
    names = []
    for page in pages:
        path = Path(page)
        if path.parent == CHAPTERS and path.name not in (STATUS, PARAMETERS):
            if not (root / "notebooks" / f"{path.name}.ipynb").is_file():
                raise KBookError(f"there is no notebooks/{path.name}.ipynb", where, "Write it, or drop the entry")
            names.append(path.name)
        elif path.parent != CHAPTERS and not (root / f"{page}.md").is_file():
            raise KBookError(f"there is no {page}.md", where, "Write it, or drop the entry")
    return names


def _record(chapter: Chapter, values: Mapping[str, Any], seconds: float, page: Page) -> ChapterRecord:
    runs = tuple(f"{run.key} {run.digest[:8]}" for run in page.runs)
    made: dict[str, Any] = {"ended": now(), "commit": git_commit(), "versions": versions()}
    made |= {"hardware": hardware(), "n_artifacts": len(page.artifacts), "runs": runs}
    return ChapterRecord(chapter.name, values["profile"], values, seconds, **made)


def _write_page(page: Page, record: ChapterRecord, folder: Path) -> Path:
    """Replace a chapter's page: first the folder of its files, whole, then the notebook."""
    token = secrets.token_hex(4)
    target, new, old = (folder / name for name in (record.name, f".{record.name}.{token}", f".old.{token}"))
    new.mkdir(parents=True)
    for name, text in page.files.items():
        (new / name).write_text(text, encoding="utf-8", errors="replace", newline="")
    (new / _RECORD).write_text(json.dumps(asdict(record), indent=1, sort_keys=True) + "\n", encoding="utf-8")
    artifacts = [artifact.payload() for artifact in page.artifacts]
    (new / "artifacts.json").write_text(json.dumps(artifacts), encoding="utf-8")
    with locked(folder):
        if target.exists():
            target.rename(old)
        new.rename(target)
        path = folder / f"{record.name}.ipynb"
        write_atomic(path, nbformat.writes(page.notebook).encode("utf-8", "replace"))
    shutil.rmtree(old, ignore_errors=True)
    return path


def _write_generated_pages(names: Sequence[str], root: Path) -> None:
    """Write the status page, the reference of all parameters, and what the pages of methods include."""
    _write_method_facts(root)
    records = [_read_record(root, name) for name in names]
    runs = [run.manifest for run in Store().find()]
    outdated = {run.digest for run in runs if changed_sources(run)}
    write_atomic(root / CHAPTERS / f"{STATUS}.md", status_page(records, runs, outdated).encode())
    parameters = {name: load_chapter(name, root).parameters for name in names}
    write_atomic(root / CHAPTERS / f"{PARAMETERS}.md", parameters_page(parameters).encode())


def _write_method_facts(root: Path) -> None:
    """Write what the registry knows of each method, for the pages in `book/methods`."""
    from kbook.methods.registry import described, source_modules  # with torch, which is needed for nothing else here

    methods = described()
    modules = {method["name"]: source_modules(method["name"])[0] for method in methods}
    folder = root / CHAPTERS / FACTS
    for name, text in generated_parts(methods, modules).items():
        write_atomic(folder / f"{name}.md", text.encode())


def _read_record(root: Path, name: str) -> ChapterRecord:
    content = json.loads((root / CHAPTERS / name / _RECORD).read_text(encoding="utf-8"))
    return ChapterRecord(**{**content, "runs": tuple(content["runs"])})


def _artifacts(root: Path, name: str) -> list[Artifact]:
    content = (root / CHAPTERS / name / "artifacts.json").read_text(encoding="utf-8")
    return [Artifact.of(payload) for payload in json.loads(content)]


def _typeset(root: Path) -> Path:
    """Let Jupyter Book typeset the pages; every warning is an error.

    Raises:
        KBookError: there is a warning; the message holds the first ones and names the log.
    """
    build = root / "_build"
    for part in ("html", ".doctrees"):
        shutil.rmtree(build / part, ignore_errors=True)
    build.mkdir(exist_ok=True)
    command = [
        sys.executable,
        "-c",
        _BUILD,
        "build",
        ".",
        "--toc",
        "book/_toc.yml",
        "-n",
        "-W",
        "--keep-going",
    ]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    said, log = colourless(done.stdout + done.stderr), build / "jupyter-book.log"
    log.write_text(said, encoding="utf-8")
    if done.returncode != 0:
        lines = [line for line in said.splitlines() if _COMPLAINT.search(line)] or said.splitlines()[-3:]
        what = f"Jupyter Book is not content: {' | '.join(lines[:8])}"
        raise KBookError(what, str(log), "Mend the pages it names and build again")
    return build / "html"


def _require_version_1() -> None:
    """Refuse Jupyter Book 2: it does not read `_config.yml`, builds nothing and reports success."""
    installed = metadata.version("jupyter-book")
    if not installed.startswith("1."):
        remedy = "Install what requirements.lock pins: make clean && make book"
        raise KBookError(f"jupyter-book {installed} is installed, the book needs 1.x", "the environment", remedy)


def _keep_store_aside() -> None:
    """Rename the run store, so that everything is computed anew and nothing is lost."""
    store = store_folder()
    if store.exists():
        aside = store.with_name(f"{store.name}-{datetime.now(UTC):%Y%m%dT%H%M%S}")
        store.rename(aside)
        print(f"the former run store is kept as {aside}")
