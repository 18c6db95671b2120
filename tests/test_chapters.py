"""A chapter runs with checked parameters in a process of its own, and says which cell failed when one does."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import nbformat
import psutil
import pytest

from kbook import chapters
from kbook.chapters import build_book, load_chapter, run_chapter, toc_pages
from kbook.cli import INTERRUPTED
from kbook.errors import KBookError
from kbook.workers import WORKERS

FIXTURES = Path(__file__).parent / "notebooks"
PUBLISHES = "publishes_one_figure_and_table"


@pytest.fixture
def book(tmp_path, monkeypatch):
    """A checkout with the fixture notebooks and a run store of its own."""
    shutil.copytree(FIXTURES, tmp_path / "notebooks")
    monkeypatch.setenv("KBOOK_STORE", str(tmp_path / "_runs"))
    return tmp_path


def write_toc(book, text):
    (book / "book").mkdir(exist_ok=True)
    (book / "book" / "_toc.yml").write_text(text)
    (book / "book" / "intro.md").write_text("# A book\n")


def toc_of(*names):
    files = "".join(f"- file: book/chapters/{name}\n" for name in names)
    return f"format: jb-book\nroot: book/intro\nchapters:\n{files}"


def test_a_chapter_becomes_a_page_and_runs_once(book):
    page = run_chapter(PUBLISHES, "smoke", {"n": "4"}, root=book)
    assert page == book / "book" / "chapters" / f"{PUBLISHES}.ipynb"
    first = page.read_bytes()
    record = json.loads((page.with_suffix("") / "chapter.json").read_text())
    assert record["parameters"] == {"profile": "smoke", "n": 4, "lane": "P"} and record["n_artifacts"] == 3
    assert run_chapter(PUBLISHES, "smoke", {"n": 4}, root=book).read_bytes() == first
    files = sorted(path.name for path in page.with_suffix("").iterdir())
    assert "fig-fixture-rates.svg" in files and "tab-fixture-trace.csv" in files
    assert not [path for path in page.parent.iterdir() if path.name.startswith((".old", f".{PUBLISHES}"))]


@pytest.mark.parametrize(
    ("name", "given", "words"),
    [
        pytest.param(
            "unknown_parameter", {"m": 1}, "unknown parameter 'm'. Known: profile, n, lane", id="unknown name"
        ),
        pytest.param("unknown_parameter", {"n": "many"}, "n = 'many' is refused", id="ill-typed value"),
        pytest.param("unknown_parameter", {"lane": "Q"}, "unknown value of 'lane' 'Q'", id="unknown lane"),
        pytest.param("unknown_parameter", {"profile": "smok"}, "Did you mean smoke", id="unknown profile"),
        pytest.param("no_parameters_cell", {}, "no cell is tagged 'parameters'", id="no parameters cell"),
        pytest.param("unknown_paramete", {}, "Did you mean unknown_parameter", id="unknown chapter"),
    ],
)
def test_what_is_wrong_is_refused_before_anything_runs(book, monkeypatch, name, given, words):
    monkeypatch.setattr(chapters, "execute", lambda *_: pytest.fail("a kernel was started"))
    with pytest.raises(KBookError, match=words):
        run_chapter(name, parameters=given, root=book)
    assert not (book / "book" / "chapters").exists()


def test_a_damaged_notebook_is_named(book):
    (book / "notebooks" / "broken.ipynb").write_text('{"cells": [')
    with pytest.raises(KBookError, match="broken.ipynb: not a readable notebook"):
        load_chapter("broken", book)


def test_a_cell_that_raises_is_named_and_what_ran_is_kept(book):
    with pytest.raises(KBookError) as caught:
        run_chapter("raises", "smoke", root=book)
    message = str(caught.value)
    assert message.startswith("raises, cell-4 (raise KBookError(") and "the corpus is empty. Add people." in message
    kept = book / "_build" / "executed" / "raises.ipynb"
    assert str(kept) in message and "KBookError" in kept.read_text()
    assert not (book / "book" / "chapters" / "raises.ipynb").exists()


def test_a_bare_picture_is_refused(book):
    with pytest.raises(KBookError, match="shows_a_bare_picture, cell-3: a picture without caption"):
        run_chapter("shows_a_bare_picture", "smoke", root=book)


def test_a_chapter_that_never_ends_is_ended_with_its_kernel(book, monkeypatch):
    monkeypatch.setitem(chapters.LIMIT_S, "smoke", 10)
    before = {child.pid for child in psutil.Process().children(recursive=True)}
    with pytest.raises(KBookError, match=r"never_ends, cell-3 \(import time\): stopped after 10 s"):
        run_chapter("never_ends", "smoke", root=book)
    left = [c for c in psutil.Process().children(recursive=True) if c.pid not in before and c.status() != "zombie"]
    assert left == []


def test_two_chapters_run_at_once_and_the_failure_of_one_ends_the_other(book, monkeypatch):
    monkeypatch.setenv(WORKERS, "2")
    write_toc(book, toc_of("never_ends", "raises"))
    before = {child.pid for child in psutil.Process().children(recursive=True)}
    with pytest.raises(KBookError, match="raises, cell-4"):
        build_book("smoke", root=book)
    left = [c for c in psutil.Process().children(recursive=True) if c.pid not in before and c.status() != "zombie"]
    assert left == []


@pytest.mark.parametrize(
    ("number", "call"),
    [
        pytest.param(signal.SIGINT, "['run', 'never_ends', '--profile', 'smoke']", id="Ctrl-C, one chapter"),
        pytest.param(signal.SIGTERM, "['run', 'never_ends', '--profile', 'smoke']", id="kill, one chapter"),
        pytest.param(signal.SIGINT, "['book', '--profile', 'smoke']", id="Ctrl-C, two chapters"),
    ],
)
def test_an_interrupted_chapter_leaves_no_process(book, number, call):
    shutil.copy(book / "notebooks" / "never_ends.ipynb", book / "notebooks" / "nor_this.ipynb")
    write_toc(book, toc_of("never_ends", "nor_this"))
    # A parent that was started in the background passes on that SIGINT is ignored, hence the first line.
    program = "import signal, sys, pathlib; signal.signal(signal.SIGINT, signal.default_int_handler); "
    program += "from kbook import chapters, cli; chapters.project_root = lambda: pathlib.Path(sys.argv[1]); "
    program += f"sys.exit(cli.main({call}))"
    command = [sys.executable, "-c", program, str(book)]
    environment = {**os.environ, WORKERS: "2"}
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment)
    try:
        family = wait_for_kernel(child.pid)
        os.kill(child.pid, number)
        assert child.wait(timeout=60) == INTERRUPTED
    finally:
        child.kill()
    gone, alive = psutil.wait_procs(family, timeout=20)
    assert alive == [] and len(gone) == len(family) >= 2


def wait_for_kernel(pid):
    """The processes below a running chapter, once its kernel is among them."""
    for _ in range(600):
        family = psutil.Process(pid).children(recursive=True)
        if any("ipykernel_launcher" in " ".join(process.cmdline()) for process in family):
            return family
        time.sleep(0.1)
    pytest.fail("no kernel came up")


def test_the_order_of_the_book_is_read_depth_first(book):
    parts = "- chapters:\n  - file: book/b\n    sections:\n    - file: book/c\n  - file: book/d\n"
    write_toc(book, f"format: jb-book\nroot: book/a\nparts:\n{parts}")
    assert toc_pages(book) == ["book/a", "book/b", "book/c", "book/d"]


@pytest.mark.parametrize(
    ("toc", "words"),
    [
        pytest.param("- just a list", "no root page", id="no root"),
        pytest.param("root: [", "not a readable table of contents", id="no YAML"),
        pytest.param("root: book/chapters/gone", "no notebooks/gone.ipynb", id="a chapter without notebook"),
        pytest.param("root: book/gone", "no book/gone.md", id="a page without source"),
    ],
)
def test_a_table_of_contents_without_its_pages_is_refused(book, toc, words):
    write_toc(book, toc)
    with pytest.raises(KBookError, match=words):
        build_book("smoke", root=book)


def test_jupyter_book_2_is_refused(book, monkeypatch):
    monkeypatch.setattr(chapters.metadata, "version", lambda name: "2.1.7")
    with pytest.raises(KBookError, match="jupyter-book 2.1.7 is installed, the book needs 1.x"):
        build_book("smoke", root=book)


def test_fresh_keeps_the_former_store_aside(book):
    (book / "_runs").mkdir()
    (book / "_runs" / "precious").write_text("x")
    write_toc(book, "root: book/chapters/raises")
    with pytest.raises(KBookError):
        build_book("smoke", fresh=True, root=book)
    (aside,) = book.glob("_runs-*")
    assert (aside / "precious").read_text() == "x" and not (book / "_runs" / "precious").exists()


def test_source_notebooks_are_stripped_and_never_changed(book):
    source = book / "notebooks" / f"{PUBLISHES}.ipynb"
    before = source.read_bytes()
    load_chapter(PUBLISHES, book)
    assert source.read_bytes() == before
    for path in FIXTURES.glob("*.ipynb"):
        assert not any(cell.get("outputs") for cell in nbformat.read(path, as_version=4).cells)
