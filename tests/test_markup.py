import doctest

import pytest
from bs4 import BeautifulSoup

from kbook.report import markup
from kbook.report.markup import Html, join, table, tag, text

HOSTILE = ["<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "' onload='x", "&lt;b&gt;", "]]>", "<!--"]


@pytest.mark.parametrize("value", HOSTILE)
def test_text_and_attributes_come_out_as_they_went_in_and_nothing_else(value):
    made = tag("p", value, title=value, class_="a")
    (only,) = BeautifulSoup(made, "html.parser").find_all()
    assert only.name == "p" and only.text == value and only.attrs == {"title": value, "class": ["a"]}


def test_control_markup_made_here_is_markup():
    assert tag("b", tag("i", "x")) == "<b><i>x</i></b>" and text(Html("<br>")) == "<br>"


def test_what_hides_or_reorders_text_is_made_visible():
    assert text("\x1b[1m\u202e\x00\ud800") == "␛[1m⟨U+202E⟩␀⟨U+D800⟩"


def test_void_and_absent():
    assert tag("br") == "<br>" and tag("td", open=None) == "<td></td>"
    assert join(["<", Html("<br>"), 3], ", ") == "&lt;, <br>, 3"


def test_table_keeps_rows_and_cells_that_are_elements():
    made = table(["<h>"], [["<c>"], [tag("td", "x", class_="y")], tag("tr", tag("td", "z"))])
    found = BeautifulSoup(made, "html.parser")
    assert [cell.text for cell in found.find_all(["th", "td"])] == ["<h>", "<c>", "x", "z"]
    assert len(found.find_all("tr")) == 4


def test_examples_of_the_module_hold():
    assert doctest.testmod(markup).failed == 0
