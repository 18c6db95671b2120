"""Every difference between the matchers is named by its row, its channel and its rule; agreement leaves no trace."""

import doctest

import pytest
from hypothesis import given
from hypothesis import strategies as st
from transcript_factory import golden_files, key, row, rows

from kbook.keys import FIELDS, parse_official
from kbook.scoring import disagreement
from kbook.scoring.cells import read_rows
from kbook.scoring.disagreement import (
    ACCENT,
    BOUNDARY,
    BREAK,
    COMPATIBILITY,
    INVISIBLE,
    MUTILATED,
    PUNCTUATION,
    QUOTE,
    UNSEARCHABLE,
    VARIANT,
    compare_matchers,
    difference_records,
    label_records,
    rate_records,
    rule_of,
    rule_records,
)
from kbook.scoring.frames import record_frame
from kbook.scoring.inference import Bootstrap
from kbook.scoring.matching import PUBLISHED, STRICT
from kbook.scoring.strict import DATE, UNIT_WORD, WITHOUT_UNIT, WORD_ORDER

FEW = Bootstrap(resamples=50)
DOB, ADDRESS = "date_of_birth", "7 Elm Apt. 9, Rye, OH 44444"

STRICT_ALONE = [
    (DOB, "1999-03-17", "１９９９-03-17", COMPATIBILITY),
    ("employer", "Alder Ltd", "Al\u200bder Ltd", INVISIBLE),
    (DOB, "1999-03-17", "1999‑03‑17", VARIANT),
    ("employer", "Wright-Jackson", "Wright Jackson", VARIANT),
    ("occupation", "Children's nurse", "children’s nurse", QUOTE),
    ("employer", "García LLC", "Garcia LLC", ACCENT),
    (DOB, "1999-03-17", "17th of March 1999", DATE),
    ("address", ADDRESS, "7 Elm, Rye, OH", WITHOUT_UNIT),
    ("address", ADDRESS, "7 Elm #9, Rye, OH", UNIT_WORD),
    ("occupation", "Psychologist, forensic", "forensic psychologist", WORD_ORDER),
    ("employer", "Smith, Jones and Lee", "Smith, Jones, and Lee", PUNCTUATION),
]
PUBLISHED_ALONE = [
    ("occupation", "Actor", "a factory", BOUNDARY),
    (DOB, "1983-07-01", "17/1/1983", BOUNDARY),
    ("employer", "Wright Jackson", "wright jacksons", BOUNDARY),
    ("employer", "Wright. Jackson", "x-wright. jackson", None),
    ("employer", "D. Wright", "ad. wright", BOUNDARY),
    ("employer", "Wright Jackson", "- wright\n\njackson", BREAK),
    ("address", "80160 Elm, Rye, OH 44444", "Elm, Rye, OH", MUTILATED),
    ("employer", "…", "…", UNSEARCHABLE),
]


@pytest.mark.parametrize(("field", "value", "text", "rule"), STRICT_ALONE, ids=[case[3] for case in STRICT_ALONE])
def test_rule_by_which_only_the_strict_matcher_finds(field, value, text, rule):
    assert rule_of(field, value, text)[:2] == (STRICT.name, rule)


@pytest.mark.parametrize(("field", "value", "text", "rule"), PUBLISHED_ALONE)
def test_rule_by_which_only_the_published_matcher_finds(field, value, text, rule):
    found = rule_of(field, value, text)
    assert (found and found[:2]) == (rule and (PUBLISHED.name, rule))


@pytest.mark.parametrize("text", ["Alder Ltd", "nobody", ""])
def test_matchers_that_agree_have_no_rule(text):
    assert rule_of("employer", "Alder Ltd", text) is None


@given(
    st.sampled_from(FIELDS),
    st.sampled_from(["1983-07-14", ADDRESS, "Actor"]) | st.text(),
    st.text() | st.just("factory"),
)
def test_rule_is_given_exactly_where_they_differ(field, value, text):
    found = rule_of(field, value, text)
    both = [rule.match(field, value, text).cer for rule in (PUBLISHED, STRICT)]
    assert (found is None) == (both[0] == both[1])
    assert found is None or (both[1] == 1) == (found.found_by == STRICT.name)


def test_differences_name_row_channel_and_place():
    cell = read_rows(
        [row("a", raw_Z_summary="works for ALDER‑LTD now"), row("b"), row("c", raw_Z_CoT=["Alder Ltd"])], key()
    )
    found = compare_matchers([cell])
    (record,) = difference_records(found)
    assert (record["query_id"], record["channel"], record["found_by"], record["rule"]) == (
        "a",
        "summary",
        "strict",
        VARIANT,
    )
    assert (record["form"], record["excerpt"]) == ("alder ltd", "works for ALDER‑LTD now")
    (rates,) = rate_records(found)
    assert (rates["or_published"], rates["or_strict"], rates["n_strict_only"]) == (1 / 3, 2 / 3, 1)
    assert rule_records(found) == [
        {"found_by": "strict", "rule": VARIANT, "field": "employer", "n_rows": 1, "n_channels": 1}
    ]


def test_unhealthy_answer_that_only_one_matcher_finds_is_a_difference():
    said = {"raw_full": "Thought: t\nFinal Answer: Thought: at Alder‑Ltd", "answer": None, "n_thoughts": 1}
    (difference,) = compare_matchers([read_rows([row(**said)], key())]).differences
    assert (difference.channel, difference.why.rule) == ("answer", VARIANT)


def test_verdicts_are_given_under_both_and_a_change_is_marked():
    hidden = {"raw_Z_summary": "works for Alder‑Ltd"}
    table = [
        (rows(40, 20 if method == "none" or split == "retain" else 0), key(method, split))
        for method in ("none", "eco")
        for split in ("forget", "retain")
    ]
    table[2][0][:20] = [entry | hidden for entry in table[2][0][:20]]
    panels = compare_matchers([read_rows(*cell) for cell in table]).panels(FEW)
    baseline, eco = label_records(panels)
    assert (eco["k_class_published"], eco["changed"]) == ("K-REF ∞", True) and eco["k_class_strict"] != "K-REF ∞"
    assert not baseline["changed"] and set(record_frame([baseline, eco])["method"]) == {"none", "eco"}


def test_conformance_rows_differ_in_nothing():
    stems = {name.removesuffix(".jsonl"): entries for name, entries in golden_files().items()}
    cells = [read_rows(entries, parse_official(stem).cell("kbench", "v77app")) for stem, entries in stems.items()]
    found = compare_matchers(cells)
    assert found.differences == ()
    assert not any(record["changed"] for record in label_records(found.panels(FEW)))


def test_examples_of_the_module_hold():
    assert doctest.testmod(disagreement).failed == 0
