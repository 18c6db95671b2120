"""Hostile text stays text: whatever goes in, no markup comes out of the parser that typesets the book."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from myst_parser.config.main import MdParserConfig
from myst_parser.mdit_to_docutils.base import DocutilsRenderer
from myst_parser.parsers.mdit import create_md_parser

from kbook.report.text import clip, colourless, escape_block, escape_line, escape_text, visible

EXTENSIONS = {"attrs_inline", "colon_fence", "deflist", "dollarmath", "amsmath", "substitution", "linkify"}
PARSER = create_md_parser(MdParserConfig(enable_extensions=EXTENSIONS), DocutilsRenderer)
HOSTILE = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "{eval-rst}`x` {download}`x </etc/passwd>`",
    "```{raw} html\n<b>x</b>\n```",
    ":::{include} /etc/passwd\n:::",
    "$x$ $$y$$ \\(z\\) \\begin{align}a\\end{align}",
    "[a](javascript:alert(1)) <https://example.com> https://example.com www.example.com a@example.com",
    "# heading\n===\n---\n- list\n1. list\n> quote",
    "(target)=\n% comment\n+++\n[^1]: note",
    "| a | b |\n|---|---|\n| c | d |",
    "    indented code",
    "{{ substitution }} {abc}`x`",
    "&lt;b&gt; &#60; &amp;",
    "term\n: definition",
    "![alt](https://example.com/x.png){.class}",
    "a\\",
    "\u202eright to left\u2066 \u200b zero \x1b[31m \x00",
]


def parsed(source):
    """All nodes of the source, flat, as the book's own parser sees them."""
    tokens = PARSER.parse(source)
    return [child for token in tokens for child in (token, *(token.children or ()))]


def shown(source):
    """The text that a reader sees."""
    breaks = {"hardbreak": "\n", "softbreak": "\n"}
    return "".join(breaks.get(t.type, t.content if t.type == "text" else "") for t in parsed(source))


HARMLESS = {"paragraph_open", "paragraph_close", "inline", "text", "hardbreak", "softbreak"}


@pytest.mark.parametrize("text", HOSTILE)
def test_no_markup_survives_in_a_block(text):
    assert {token.type for token in parsed(escape_block(text))} <= HARMLESS


@pytest.mark.parametrize("text", HOSTILE)
def test_no_markup_survives_in_a_line(text):
    escaped = escape_text(text)
    assert "\n" not in escaped
    assert {token.type for token in parsed(escaped)} <= HARMLESS


@pytest.mark.parametrize("text", [t for t in HOSTILE if not t.startswith(("a\\", "&", "\u202e"))])
def test_the_control_without_escaping_is_markup(text):
    assert {token.type for token in parsed(text)} - HARMLESS


@settings(deadline=None)
@given(st.text(st.characters(codec="utf-8", exclude_characters="\x00")))
def test_any_text_is_inert_and_readable(text):
    source = escape_block(text)
    assert {token.type for token in parsed(source)} <= HARMLESS
    assert "".join(shown(source).split()) == "".join(visible(text).split())


def test_a_pipe_never_ends_a_table_cell():
    text = escape_text("x | y \\|")
    row = f"| a | b |\n|---|---|\n| {text} | z |"
    cells = [t.content for t in parsed(row) if t.type == "inline"]
    assert len(cells) == 4 and cells[3] == "z"


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        pytest.param("\x1b[0m\x07", "␛[0m␇", id="control characters are pictures"),
        pytest.param("a\u202eb", "a⟨U+202E⟩b", id="direction marks are named"),
        pytest.param("a\ufeffb\ue000", "a⟨U+FEFF⟩b⟨U+E000⟩", id="invisible and private characters are named"),
        pytest.param("\ud800", "⟨U+D800⟩", id="half a character is named"),
        pytest.param("a\r\nb\tc", "a\nb    c", id="line ends and tabs are unified"),
        pytest.param("क्\u200dष می\u200cرود é 漢字", "क्\u200dष می\u200cرود é 漢字", id="other scripts stay whole"),
    ],
)
def test_what_is_hidden_becomes_visible(text, seen):
    assert visible(text) == seen


def test_colours_of_terminals_are_dropped():
    assert colourless("\x1b[1;31mred\x1b[0m \x07") == "red \x07"


def test_long_text_is_clipped_and_says_so():
    assert clip("abcdef", 4) == "abcd … [2 more characters]"
    assert clip("abcd", 4) == "abcd"
    assert "more characters" in escape_text("x" * 10_000)


def test_lines_are_joined_by_a_visible_mark():
    assert escape_text("a\n b\n\nc") == "a ↵ b ↵  ↵ c"


def test_every_ascii_mark_is_escaped():
    marks = "".join(chr(c) for c in range(33, 127) if not chr(c).isalnum())
    assert re.sub(r"\\(.)", r"\1", escape_line(marks)) == marks
