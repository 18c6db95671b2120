"""The page of sliders computes the K-Score as the package does, and is a table for readers without script."""

import json
import random
import re
import shutil
import subprocess

import pytest
from bs4 import BeautifulSoup

from kbook.paths import project_root
from kbook.scoring.verdicts import KScore, k_score

PAGE = project_root() / "book" / "_static" / "kscore.html"
NODE, CHROMIUM = shutil.which("node"), shutil.which("chromium")
FACTORS = ("suppression", "selectivity", "health", "value")
EXTREMES = [(a, b, c, d, e) for a in (0, 1) for b in (0, 1) for c in (0, 1) for d in (0, 1) for e in (0, 1)]
DRAWN = [tuple(random.Random(n).random() for _ in range(5)) for n in range(300)]


def ours(leak, retain_none, retain, degeneration_none, degeneration) -> KScore:
    return k_score(leak, (retain_none, retain), (degeneration_none, degeneration))


def browse(page) -> BeautifulSoup:
    """What a browser makes of a page, its scripts run."""
    command = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=2000", "--dump-dom"]
    done = subprocess.run([*command, page.as_uri()], capture_output=True, text=True, timeout=120, check=True)
    return BeautifulSoup(done.stdout, "html.parser")


def evaluated(script: str, tmp_path) -> list[dict]:
    """Run a script that leaves its result in `result`."""
    if NODE:
        show = f"{script}\nconsole.log(JSON.stringify(result))"
        done = subprocess.run([NODE, "-e", show], capture_output=True, text=True, timeout=60, check=True)
        return json.loads(done.stdout)
    page = tmp_path / "page.html"
    page.write_text(
        f"<pre></pre><script>{script}\ndocument.querySelector('pre').textContent=JSON.stringify(result)</script>"
    )
    return json.loads(browse(page).pre.text)


@pytest.fixture(scope="module")
def soup() -> BeautifulSoup:
    return BeautifulSoup(PAGE.read_text(encoding="utf-8"), "html.parser")


@pytest.mark.skipif(not (NODE or CHROMIUM), reason="neither node nor chromium is installed")
def test_the_formula_of_the_page_is_that_of_the_package(soup, tmp_path):
    inputs = [*EXTREMES, *DRAWN]
    script = f"{soup.find(id='formula').text}\nconst result = {json.dumps(inputs)}.map((row) => kScore(...row));"
    for given, found in zip(inputs, evaluated(script, tmp_path), strict=True):
        assert [found[name] for name in FACTORS] == pytest.approx([getattr(ours(*given), name) for name in FACTORS])


def test_every_row_of_its_table_is_what_the_package_computes(soup):
    rows = [[cell.text for cell in row.find_all(["th", "td"])] for row in soup.find(id="examples").tbody.find_all("tr")]
    assert len(rows) == 7
    for agent, *numbers in rows:
        score = ours(*map(float, numbers[:5]))
        assert numbers[5:] == [f"{getattr(score, name):.2f}" for name in FACTORS], agent


def test_without_script_there_is_a_table_and_nothing_that_does_not_work(soup):
    assert soup.find(id="interactive").has_attr("hidden") and not soup.find("button")
    assert soup.find(id="examples").caption and all(head["scope"] in ("col", "row") for head in soup.find_all("th"))


@pytest.mark.skipif(not CHROMIUM, reason="chromium is not installed")
def test_with_script_the_sliders_show_their_score():
    page = browse(PAGE)
    assert not page.find(id="interactive").has_attr("hidden")
    assert len(page.find(id="examples").tbody.find_all("button")) == 7
    start = {slider["id"]: float(slider["value"]) for slider in page.find_all("input")}
    score = ours(*(start[name] for name in ("leak", "retain-none", "retain", "degeneration-none", "degeneration")))
    assert [page.find("output", id=name).text for name in FACTORS] == [f"{getattr(score, n):.2f}" for n in FACTORS]
    assert page.find(id="words").text


def test_it_asks_nobody_for_anything_and_every_control_has_a_name(soup):
    source = PAGE.read_text(encoding="utf-8")
    assert not re.search(r"https?:|//[a-z]|\bsrc=|\bhref=|@import|url\(|fetch\(|XMLHttp|import\(", source)
    assert "default-src 'none'" in soup.find("meta", attrs={"http-equiv": True})["content"]
    labels = {label["for"] for label in soup.find_all("label")}
    assert {slider["id"] for slider in soup.find_all("input")} == labels
    assert soup.html["lang"] == "en" and soup.title.text and soup.h1
