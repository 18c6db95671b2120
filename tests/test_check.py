"""Each fault that a reader could meet in the built HTML is found, and a sound page has none."""

import pytest

from kbook.report.artifacts import Artifact, Provenance
from kbook.report.check import check_book

ARTIFACT = Artifact("fig-topic_a-rates", "A caption.", Provenance("published", (), ("A paper",)), "x\n", svg="<svg/>")
SOUND = """<html lang="en"><head><link rel="stylesheet" href="style.css"></head><body><article>
<script>// see https://example.com/docs
let x = 1;</script>
<a href="https://example.com">elsewhere, on a click</a> <a href="#top">up</a> <a href="other.html#there">other</a>
<figure id="fig-topic-a-rates"><img src="rates.svg" alt="Three points rise."><figcaption>
<span class="caption-number">Fig. 1</span></figcaption></figure>
<div id="fig-topic-a-rates-provenance" class="kbook-provenance kbook-published">
<a href="d/fig-topic_a-rates.csv">CSV</a></div>
<p id="top">Text.</p></article></body></html>"""
DATA_LINK = '<a href="d/fig-topic_a-rates.csv">CSV</a>'


@pytest.fixture
def problems(tmp_path):
    """Build a tiny site around one page, and return what is wrong with it."""
    html = tmp_path / "html"
    (html / "d").mkdir(parents=True)
    (html / "d" / "fig-topic_a-rates.csv").write_text("x\n")
    (html / "rates.svg").write_text("<svg/>")
    (html / "style.css").write_text("p { color: red }")
    (html / "other.html").write_text('<html lang="en"><article><p id="there">x</p></article></html>')

    def check(page, css="", pages=("page", "other")):
        (html / "page.html").write_text(page, encoding="utf-8")
        (html / "extra.css").write_text(css)
        return check_book(html, pages, {"page": [ARTIFACT]}, tmp_path)

    return check


def test_a_sound_page_has_no_problem(problems):
    assert problems(SOUND) == []


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        pytest.param("Text.", '<script src="https://cdn.example/x.js"></script>', "cdn.example", id="script"),
        pytest.param("Text.", '<script src="//cdn.example/x.js"></script>', "cdn.example", id="script, no scheme"),
        pytest.param("Text.", '<script>load("https://unpkg.example/t")</script>', "unpkg.example", id="inline script"),
        pytest.param("Text.", '<link rel="icon" href="https://a.example/i">', "a.example", id="icon"),
        pytest.param("Text.", '<img alt="A view." src="https://a.example/i.png">', "a.example", id="picture"),
        pytest.param("Text.", '<iframe src="https://a.example"></iframe>', "a.example", id="frame"),
        pytest.param("Text.", '<p style="background:url(https://a.example/b)">', "a.example", id="style attribute"),
        pytest.param("Text.", '<style>@import "https://a.example/c.css"</style>', "a.example", id="style element"),
        pytest.param('alt="Three points rise."', "", "no alt text", id="no alt"),
        pytest.param("Three points rise.", "_images/rates.svg", "no alt text", id="a path for alt"),
        pytest.param("Three points rise.", "rates.svg", "no alt text", id="a file name for alt"),
        pytest.param("other.html#there", "gone.html", "gone.html leads nowhere", id="dead link"),
        pytest.param("other.html#there", "other.html#gone", "other.html#gone leads nowhere", id="dead anchor"),
        pytest.param("#top", "#gone", "#gone leads nowhere", id="dead anchor within"),
        pytest.param(' lang="en"', "", "does not say its language", id="no language"),
        pytest.param("kbook-published", "kbook-measured", "not marked as published", id="published, not marked"),
        pytest.param(DATA_LINK, "", "no link to its data", id="no data"),
        pytest.param("caption-number", "caption", "has no number", id="no number"),
        pytest.param("-provenance", "-other", "does not say where it comes from", id="no provenance"),
    ],
)
def test_each_fault_is_found(problems, old, new, words):
    assert old in SOUND
    found = problems(SOUND.replace(old, new))
    assert found and words in " ".join(found)


def test_a_style_sheet_that_fetches_is_found(problems):
    assert "extra.css: fetches https://fonts.example/f" in problems(
        SOUND, css="@import url('https://fonts.example/f');"
    )
    assert problems(SOUND, css="p { background: url(data:image/png;base64,aGk=) }") == []


def test_a_page_that_was_not_built_is_found(problems):
    assert problems(SOUND, pages=["page", "missing"]) == ["missing: is in the table of contents, but was not built"]


def test_a_path_of_this_machine_is_found(problems, tmp_path):
    assert any("of this machine" in problem for problem in problems(SOUND.replace("Text.", f"{tmp_path}/x")))
