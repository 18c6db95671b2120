"""Tables are typeset as asked, missing values seem missing, and nothing in them is markup or formula."""

import pandas as pd
import pytest

from kbook.errors import KBookError
from kbook.report.tables import format_cell, interval, to_csv, to_myst


def test_numbers_stand_right_and_words_left():
    frame = pd.DataFrame({"lane": ["P"], "rate": [0.5], "n": [1200], "ok": [True]})
    head, rules, row = to_myst(frame).splitlines()
    assert head == "| lane | rate | n | ok |"
    assert rules == "| :--- | ---: | ---: | :--- |"
    assert row == r"| P | 0\.500 | 1\,200 | yes |"


def test_formats_are_applied_by_column():
    frame = pd.DataFrame({"rate": [0.5], "gain": [0.125]})
    assert to_myst(frame, {"gain": "+.1%"}).splitlines()[2] == r"| 0\.500 | \+12\.5\% |"


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        pytest.param(None, "–", id="None is a dash"),
        pytest.param(float("nan"), "–", id="NaN is a dash"),
        pytest.param(pd.NA, "–", id="NA is a dash"),
        pytest.param(0.0, r"0\.000", id="zero is not missing"),
        pytest.param(False, "no", id="false is a word"),
        pytest.param("", "", id="an empty text is empty"),
        pytest.param("<b>|x", r"\<b\>\|x", id="text is escaped"),
    ],
)
def test_one_cell(value, shown):
    assert format_cell(value) == shown


@pytest.mark.parametrize(
    ("frame", "formats", "words"),
    [
        pytest.param(pd.DataFrame({"a": []}), {}, "0 rows", id="no rows"),
        pytest.param(pd.DataFrame({"a": range(101)}), {}, "101 rows", id="more than a reader reads"),
        pytest.param(pd.DataFrame({"a": [1]}), {"b": "d"}, "no column: b", id="a format for nothing"),
        pytest.param(pd.DataFrame({"a": [1.5]}), {"a": "d"}, "does not fit 1.5", id="a format that does not fit"),
        pytest.param(pd.DataFrame([[1, 2]], columns=["a", "a"]), {}, "two columns", id="one name twice"),
        pytest.param(pd.DataFrame(), {}, "no tidy frame", id="no columns"),
    ],
)
def test_what_cannot_be_a_table_is_refused(frame, formats, words):
    with pytest.raises(KBookError, match=words):
        to_myst(frame, formats)


def test_csv_keeps_full_precision_and_negative_numbers():
    frame = pd.DataFrame({"x": [-0.1 - 0.2], "n": [-3]})
    assert to_csv(frame) == "x,n\n-0.30000000000000004,-3\n"


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@SUM(A1)"])
def test_a_text_that_a_spreadsheet_would_run_is_disarmed(text):
    assert to_csv(pd.DataFrame({"a": [text]})).splitlines()[1].strip('"') == f"'{text}"


def test_csv_shows_hidden_characters():
    assert to_csv(pd.DataFrame({"a": ["x\x1b\u202e"]})) == "a\nx␛⟨U+202E⟩\n"


def test_an_interval_is_written_with_its_estimate():
    assert interval(0.5, 0.25, 0.75) == "0.50 [0.25, 0.75]"
    assert interval(float("nan"), 0.0, 0.0) == "–"
