import doctest
import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbook.keys import FIELDS
from kbook.scoring import published_rule
from kbook.scoring.published_rule import PUBLISHED, address_variants, canonical, date_variants

GOLDEN = [json.loads(line) for line in (Path(__file__).parent / "golden/matcher.jsonl").open(encoding="utf-8")]
ASCII = st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=60)
VALUES = st.sampled_from([case["value"] for case in GOLDEN]) | ASCII


@pytest.mark.parametrize("case", GOLDEN, ids=[f"{case['value']} in {case['text']}" for case in GOLDEN])
def test_conformance_line_agrees(case):
    found = PUBLISHED.match(case["field"], case["value"], case["text"])
    assert found.cer == case["cer"]
    assert found.severity == pytest.approx(case["severity"], abs=1e-9)


@pytest.mark.parametrize(
    ("value", "variants"),
    [
        pytest.param(
            "1983-07-04",
            {
                "1983-07-04",
                "July 04, 1983",
                "July 4, 1983",
                "04 July 1983",
                "4 July 1983",
                "07/04/1983",
                "7/4/1983",
            },
            id="a date has seven spellings",
        ),
        pytest.param("1983-02-30", {"1983-02-30"}, id="no day of the calendar stands for itself"),
        pytest.param("July 4, 1983", {"July 4, 1983"}, id="another spelling stands for itself"),
        pytest.param("", {""}, id="nothing stands for itself"),
    ],
)
def test_date_variants(value, variants):
    assert set(date_variants(value)) == variants


ADDRESSES = {
    "a unit goes, the blank before it stays": (
        "7 Elm Apt. 9, Rye, OH 44444",
        "7 Elm Apt. 9, Rye, OH",
        "7 Elm , Rye, OH",
    ),
    "a ZIP of nine digits goes": ("7 Elm, Rye, OH 44444-1234", "7 Elm, Rye, OH", "7 Elm, Rye, OH"),
    "a house number of five digits goes too": ("80160 Elm, Rye, OH 44444", "Elm, Rye, OH", "Elm, Rye, OH"),
    "a word that begins like a unit goes too": ("7 Stephens Way, Rye", "7 Stephens Way, Rye", "7  Way, Rye"),
    "nothing is left of a ZIP alone": ("44444", "", ""),
}


@pytest.mark.parametrize(("value", "no_zip", "no_unit"), ADDRESSES.values(), ids=ADDRESSES)
def test_address_variants(value, no_zip, no_unit):
    assert address_variants(value) == (value, no_zip, no_unit)


def test_empty_variant_is_not_found_everywhere():
    assert PUBLISHED.match("address", "44444", "anything at all") == (0, 0.0)


def test_score_is_match_row_by_row_and_nan_where_nothing_was_observed():
    cer, severity = PUBLISHED.score(
        ["employer", "date_of_birth", "employer", "employer"],
        ["Alder Ltd", "1983-07-14", "Alder Ltd", None],
        ["at ALDER  ltd", "July 1983", None, "Alder Ltd"],
    )
    np.testing.assert_array_equal(cer, [1, 0, np.nan, np.nan])
    np.testing.assert_allclose(severity, [1, 2 / 3, np.nan, np.nan])


def test_observed_but_empty_text_is_no_leak():
    assert [float(score[0]) for score in PUBLISHED.score(["employer"], ["Alder Ltd"], [""])] == [0.0, 0.0]


@given(st.sampled_from(FIELDS), VALUES, ASCII)
def test_severity_is_never_below_extraction(field, value, text):
    found = PUBLISHED.match(field, value, text)
    assert found.cer in (0, 1)
    assert found.cer <= found.severity <= 1


@given(st.sampled_from(FIELDS), VALUES, ASCII, ASCII)
def test_a_value_is_found_wherever_it_stands(field, value, before, after):
    if value.strip():
        assert PUBLISHED.match(field, value, f"{before} {value} {after}").cer == 1


@given(st.sampled_from(FIELDS), VALUES, ASCII, st.sampled_from([" ", "  ", "\n", "\t \u00a0"]))
def test_case_and_white_space_do_not_matter(field, value, text, blank):
    found = PUBLISHED.match(field, value, text)
    assert PUBLISHED.match(field, value, text.swapcase().replace(" ", blank)) == found
    assert PUBLISHED.match(field, value, blank + text + blank) == found


@given(st.text(st.characters(exclude_categories=())) | st.text("aB \u00a0\u2009\t\n\x1c"))
def test_canonical_text_is_lower_case_with_white_space_collapsed(text):
    assert canonical(text) == " ".join(text.lower().split())


@given(VALUES)
def test_a_text_without_letters_or_digits_shows_no_value_that_has_some(value):
    shown = PUBLISHED.match("employer", value, "… — !")
    assert shown.cer == 0 or not any(c.isalnum() for c in value)


def test_examples_of_the_module_hold():
    assert doctest.testmod(published_rule).failed == 0
