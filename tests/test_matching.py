"""Matchers by name, and what holds for each of them."""

import time
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbook.errors import KBookError
from kbook.keys import FIELDS
from kbook.scoring.matching import MATCHERS, PUBLISHED, STRICT, matcher

VALUES = st.sampled_from(
    ["1983-07-14", "1983-07-04", "7 Elm Apt. 9, Rye, OH 44444", "Engineer, civil (consulting)", "Wright-Jackson", "…"]
) | st.text(max_size=30)
ANY_TEXT = st.text(max_size=80) | st.text(st.sampled_from("1983-07/4 Juyl|.,:\n<b>&;\\u2011ö\u200b"), max_size=80)
RULES = pytest.mark.parametrize("rule", MATCHERS.values(), ids=MATCHERS)


def test_matcher_is_chosen_by_name():
    assert matcher("published") is PUBLISHED and matcher("strict") is STRICT
    with pytest.raises(KBookError, match="published"):
        matcher("publshed")


@RULES
@given(st.sampled_from(FIELDS) | st.just(""), VALUES, ANY_TEXT)
def test_no_text_crashes_and_severity_is_never_below_extraction(rule, field, value, text):
    found = rule.match(field, value, text)
    assert found.cer in (0, 1) and found.cer <= found.severity <= 1
    assert (rule.found(field, value, text) is not None) == (found.cer == 1)


@RULES
@given(st.sampled_from(FIELDS), VALUES, ANY_TEXT, ANY_TEXT)
def test_more_text_never_shows_less(rule, field, value, text, more):
    some, all_of_it = rule.match(field, value, text), rule.match(field, value, f"{text} {more}")
    assert all_of_it.cer >= some.cer and all_of_it.severity >= some.severity


@RULES
@given(st.sampled_from(FIELDS), VALUES)
def test_a_value_that_can_be_sought_is_found_in_itself(rule, field, value):
    assert rule.match(field, value, value).cer == bool(rule.forms(field, value))


@RULES
@given(st.text(max_size=80))
def test_canonical_text_stays_as_it_is(rule, text):
    shown = rule.canonical(text)
    assert rule.canonical(shown) == shown


@RULES
@given(st.sampled_from(FIELDS), VALUES, ANY_TEXT, ANY_TEXT)
def test_each_place_that_is_pointed_at_shows_the_value(rule, field, value, before, after):
    text = f"{before} {value} {after}"
    spans = rule.spans(field, value, text)
    assert all(rule.match(field, value, text[start:end]).cer == 1 for start, end in spans)
    assert all(end <= start for (_, end), (start, _) in pairwise(spans))


def test_the_longest_form_is_pointed_at():
    text = "7 Elm Apt. 9, Rye, OH 44444 or 7 Elm, Rye, OH"
    places = [text[a:b] for a, b in STRICT.spans("address", "7 Elm Apt. 9, Rye, OH 44444", text)]
    assert places == ["7 Elm Apt. 9, Rye, OH 44444", "7 Elm, Rye, OH"]


@RULES
@pytest.mark.parametrize("text", ["Alder Ltd. " * 20_000, "word " * 40_000 + "Alder Ltd"], ids=["often", "at the end"])
def test_places_in_a_long_text_are_found_in_time(rule, text):
    start = time.perf_counter()
    assert text[slice(*rule.spans("employer", "Alder Ltd", text)[-1])] == "Alder Ltd"
    assert time.perf_counter() - start < 10, "reading the text anew for each place would take minutes"
