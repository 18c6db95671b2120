"""A small book is built offline with every warning an error, and holds what readers were promised."""

import shutil
from pathlib import Path

import pytest
import yaml
from bs4 import BeautifulSoup

from kbook.chapters import build_book, load_chapter, toc_pages
from kbook.errors import KBookError
from kbook.paths import project_root

ROOT = project_root()
PUBLISHES = "publishes_one_figure_and_table"
REFERENCE = (
    "book/glossary",
    "book/methods/noise",
    "book/chapters/parameters",
    "book/chapters/status",
    "book/troubleshooting",
    "book/bibliography",
)


def make_checkout(folder):
    """Copy what the book is made of, with one fixture chapter in place of the real ones."""
    (folder / "notebooks").mkdir()
    shutil.copy(ROOT / "_config.yml", folder)
    shutil.copytree(ROOT / "book", folder / "book", ignore=shutil.ignore_patterns("chapters"))
    shutil.copytree(ROOT / "kbook" / "methods", folder / "kbook" / "methods")  # pages of methods link their source
    shutil.copy(Path(__file__).parent / "notebooks" / f"{PUBLISHES}.ipynb", folder / "notebooks")
    chapters = [{"file": f"book/chapters/{PUBLISHES}"}, *({"file": page} for page in REFERENCE)]
    toc = {"format": "jb-book", "root": "book/intro", "parts": [{"caption": "All", "chapters": chapters}]}
    (folder / "book" / "_toc.yml").write_text(yaml.safe_dump(toc))


@pytest.fixture(scope="module")
def html(tmp_path_factory):
    folder = tmp_path_factory.mktemp("book")
    make_checkout(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KBOOK_STORE", str(folder / "_runs"))
        index = build_book("smoke", root=folder)
    return index.parent


@pytest.fixture(scope="module")
def chapter(html):
    return BeautifulSoup((html / "book" / "chapters" / f"{PUBLISHES}.html").read_text(encoding="utf-8"), "html.parser")


def test_every_page_of_the_table_of_contents_is_there(html):
    assert all((html / f"{page}.html").is_file() for page in ("book/intro", f"book/chapters/{PUBLISHES}", *REFERENCE))


def test_the_figure_has_number_caption_alt_and_data(html, chapter):
    figure = chapter.find(id="fig-fixture-rates")
    assert figure.find(class_="caption-number").text.strip() == "Fig. 1"
    assert figure.img["alt"] == 'Three points at "0.0", 0.1 and 0.2: each with an interval of # 0.05.'
    (link,) = figure.find_all("a", class_="download")
    data = (html / "book" / "chapters" / link["href"]).resolve().read_text()
    assert data.splitlines()[0] == "query,method,rate,low,high" and len(data.splitlines()) == 4


def test_the_table_is_numbered_and_its_published_column_is_named(chapter):
    table = chapter.find(id="tab-fixture-rates")
    assert table.find(class_="caption-number").text.strip() == "Table 1"
    assert "cer (published)" in [head.text for head in table.find_all("th")]
    assert "what is marked published: K-Bench" in chapter.find(id="tab-fixture-rates-provenance").text


def test_numbers_in_prose_are_filled_in_and_published_ones_marked(chapter):
    text = " ".join(chapter.find("article").text.split())
    assert "has 3 rows with a mean of 0.10; the paper says 0.682 published." in text
    assert chapter.find("span", class_="kbook-published-number").text == "0.682 published"


def test_the_trace_is_text_and_only_its_secret_is_marked(chapter):
    trace = chapter.find(id="tab-fixture-trace")
    assert [mark.text for mark in trace.find_all(class_="kbook-secret")] == [
        "298 Pine Road Apt. 32, Riverton, TX 51540"
    ]
    assert trace.find(["script", "b", "code", "a", "ul"]) is None or not trace.tbody.find(["script", "b", "a", "ul"])
    assert "<script>alert(1)</script>" in trace.text and "$x$ {eval-rst}`y`" in trace.text


def test_nothing_is_fetched_from_elsewhere_and_mathematics_is_ours(html, chapter):
    sources = [script["src"] for script in chapter.find_all("script", src=True)]
    assert any("mathjax/tex-svg.js" in source for source in sources)
    assert not [source for source in sources if "//" in source]
    assert (html / "_static" / "mathjax" / "LICENSE").is_file()


def test_the_box_says_how_to_rerun_and_the_end_says_what_ran(chapter):
    box = chapter.find(class_="kbook-rerun")
    assert f".venv/bin/kbook run {PUBLISHES} --profile smoke" in box.text
    assert "fixture/no-model/P/none/forget/seed=0" in chapter.find(id="provenance").text


def test_status_and_parameters_are_made_from_what_ran(html):
    status = (html / "book" / "chapters" / "status.html").read_text(encoding="utf-8")
    parameters = (html / "book" / "chapters" / "parameters.html").read_text(encoding="utf-8")
    assert PUBLISHES in status and "fixture/no-model/P/none/forget" in status
    assert "rows of the run" in parameters and "1 to 9" in parameters


def test_the_page_of_a_method_is_prose_with_what_the_registry_knows(html):
    page = html / "book" / "methods" / "noise.html"
    article = BeautifulSoup(page.read_text(encoding="utf-8"), "html.parser").find("article")
    sections = [heading.text.rstrip("#") for heading in article.find_all(["h1", "h2"])]
    assert sections == ["Noise", "Idea", "Formula", "What to know", "Settings"]
    assert [cell.text for cell in article.find("tbody").find_all("td")][:2] == ["sigma", "0.2"]
    (source,) = article.find_all("a", class_="download")
    assert "class Noise(" in (page.parent / source["href"]).resolve().read_text(encoding="utf-8")


def test_a_warning_fails_the_build(tmp_path, monkeypatch):
    make_checkout(tmp_path)
    monkeypatch.setenv("KBOOK_STORE", str(tmp_path / "_runs"))
    (tmp_path / "book" / "_toc.yml").write_text("format: jb-book\nroot: book/intro\n")
    (tmp_path / "book" / "intro.md").write_text("# A page\n\nSee {ref}`no-such-label`.\n")
    with pytest.raises(KBookError, match="no-such-label"):
        build_book("smoke", root=tmp_path)


def test_every_chapter_of_the_real_book_can_be_loaded():
    names = [Path(page).name for page in toc_pages(ROOT) if (ROOT / "notebooks" / f"{Path(page).name}.ipynb").exists()]
    for name in names:
        assert load_chapter(name, ROOT).parameters


@pytest.mark.parametrize("path", sorted((ROOT / "notebooks").glob("*.ipynb")), ids=lambda path: path.stem)
def test_a_chapter_is_stripped_short_celled_and_without_functions(path):
    for cell in load_chapter(path.stem, ROOT).notebook.cells:
        if cell.cell_type == "code":
            assert not cell.outputs and cell.execution_count is None
            assert len(cell.source.splitlines()) <= 15, f"{cell.id} is longer than 15 lines"
            assert "def " not in cell.source or "exercise" in cell.metadata.get("tags", ()), (
                f"{cell.id} defines a function"
            )
