"""Check a built book as a careful reader would: nothing missing, nothing from elsewhere, nothing unexplained.

An exit status of zero says little: what counts is what stands in the HTML.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from urllib.parse import unquote, urlsplit

from bs4 import BeautifulSoup, Tag
from docutils.nodes import make_id

from kbook.report.artifacts import Artifact

# Attributes whose address a browser fetches by itself; a plain link is only followed when clicked.
_FETCHED = {
    "script": ("src",),
    "img": ("src", "srcset"),
    "source": ("src", "srcset"),
    "link": ("href",),
    "iframe": ("src",),
    "embed": ("src",),
    "object": ("data",),
    "video": ("src", "poster"),
    "audio": ("src",),
    "form": ("action",),
    "image": ("href", "xlink:href"),
    "use": ("href", "xlink:href"),
}
_REMOTE = re.compile(r"(?:https?:)?//[^\s\"')]+", re.IGNORECASE)
_CSS_FETCH = re.compile(r"(?:url\(\s*|@import\s+)[\"']?((?:https?:)?//[^\"')\s]+)", re.IGNORECASE)
_FILE_NAME = re.compile(r"[/\\]|\.(?:svg|png|jpe?g|gif)$", re.IGNORECASE)


def check_book(html: Path, pages: Sequence[str], artifacts: Mapping[str, Sequence[Artifact]], root: Path) -> list[str]:
    """List everything that is wrong with a built book; an empty list is a sound book.

    Args:
        html: the folder of the HTML.
        pages: the pages of the table of contents, without suffix, as `book/intro`.
        artifacts: page → what was published on it.
        root: folder of the checkout, which no page may name.
    """
    site = {path: _Html(path) for path in sorted(html.rglob("*.html")) if "_static" not in path.parts}
    problems = [f"{page}: is in the table of contents, but was not built" for page in _missing(html, pages)]
    problems += [f"{path.name}: fetches {url}" for path in html.rglob("*.css") for url in _css_urls(path)]
    for path, page in site.items():
        name = path.relative_to(html).with_suffix("").as_posix()
        found = [*_page_problems(page, root), *_dead_links(page, site)]
        found += [fault for artifact in artifacts.get(name, ()) for fault in _faults(page.soup, artifact)]
        problems += [f"{name}: {problem}" for problem in found]
    return problems


class _Html:
    """One page: where it lies, its elements, and the anchors that links can lead to."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.soup = BeautifulSoup(path.read_text(encoding="utf-8"), "html.parser")

    @cached_property
    def anchors(self) -> frozenset[str]:
        return frozenset(str(tag[key]) for key in ("id", "name") for tag in self.soup.select(f"[{key}]"))


def _missing(html: Path, pages: Sequence[str]) -> list[str]:
    return [page for page in pages if not (html / f"{page}.html").is_file()]


def _page_problems(page: _Html, root: Path) -> Iterator[str]:
    """Check what every page must keep, whatever is on it."""
    soup = page.soup
    yield from (f"fetches {url}" for url in _remote(soup))
    for image in soup.find_all("img"):
        alt = str(image.get("alt", "")).strip()
        if not alt or _FILE_NAME.search(alt):
            yield f"the picture {image.get('src')} has no alt text (found {alt!r})"
    if soup.html and not soup.html.get("lang") and soup.find("article"):
        yield "does not say its language"
    if root != Path("/") and f"{root}/" in str(soup):
        yield f"names the folder {root} of this machine"


def _faults(soup: BeautifulSoup, artifact: Artifact) -> Iterator[str]:
    """Check that a published thing stands on its page with number, data link and provenance."""
    thing = soup.find(id=make_id(artifact.key))
    below = soup.find(id=make_id(f"{artifact.key}-provenance"))
    if not isinstance(thing, Tag) or not thing.find(class_="caption-number"):
        yield f"{artifact.key} is not shown, or has no number"
    if not isinstance(below, Tag):
        yield f"{artifact.key} does not say where it comes from"
        return
    if f"kbook-{artifact.provenance.kind}" not in (below.get("class") or ()):
        yield f"{artifact.key} is not marked as {artifact.provenance.kind}"
    files = [unquote(str(link["href"])).rsplit("/", 1)[-1] for link in below.find_all("a", href=True)]
    if f"{artifact.key}.csv" not in files:
        yield f"{artifact.key} has no link to its data"


def _remote(soup: BeautifulSoup) -> Iterator[str]:
    """Every address of another host that opening the page would, or could, fetch."""
    for tag, attributes in _FETCHED.items():
        for found in soup.find_all(tag):
            values = (str(found.get(attribute, "")) for attribute in attributes)
            yield from (url for value in values for url in _REMOTE.findall(value) if not _data_uri(value))
    for script in soup.find_all("script", src=False):
        yield from _REMOTE.findall(_without_comments(script.get_text()))
    for style in soup.find_all("style"):
        yield from _CSS_FETCH.findall(style.get_text())
    for styled in soup.find_all(style=True):
        yield from _CSS_FETCH.findall(str(styled["style"]))


def _css_urls(path: Path) -> list[str]:
    return _CSS_FETCH.findall(path.read_text(encoding="utf-8", errors="replace"))


def _dead_links(page: _Html, site: Mapping[Path, _Html]) -> Iterator[str]:
    """Every relative link whose file or anchor does not exist."""
    for link in page.soup.find_all(["a", "link", "img", "script"]):
        target = str(link.get("href") or link.get("src") or "")
        parts = urlsplit(target)
        if parts.scheme or parts.netloc or target in ("", "#"):
            continue
        file = (page.path.parent / unquote(parts.path)).resolve() if parts.path else page.path
        known = site.get(file)
        if not file.exists() or (parts.fragment and known and unquote(parts.fragment) not in known.anchors):
            yield f"the link {target} leads nowhere"


def _without_comments(script: str) -> str:
    return re.sub(r"^\s*//.*$|/\*.*?\*/", "", script, flags=re.MULTILINE | re.DOTALL)


def _data_uri(value: str) -> bool:
    return value.startswith("data:")
