"""Table 5: one source language, others averaged; the judge beside the rules."""

import math

import pytest
from cllpu_scores import cells, flat, free, rows

from kbook.report.cllpu_judge import beside_rules, judge_frame, published_judge
from kbook.scoring.accessibility import EM, JUDGE

ENGLISH = {("en", "de"): 0.3, ("en", "en"): 0.1, ("en", "th"): 0.5}


def judged(**methods):
    return cells(*(rows(method, matrix, measure=JUDGE) for method, matrix in methods.items()))


def test_others_are_a_mean_and_references_are_read_at_the_source():
    frame = judge_frame(judged(npo=ENGLISH, original=free(0.9)), "common-goal", "en").set_index("method")
    assert frame.loc["NPO", ["target, source", "target, others"]].tolist() == [pytest.approx(0.1), pytest.approx(0.4)]
    assert frame.loc["Original", "target, source"] == pytest.approx(0.9)
    assert math.isnan(frame.loc["NPO", "neighbour, source"])


def test_a_mean_without_one_of_the_others_is_none():
    frame = judge_frame(judged(npo={**ENGLISH, ("en", "th"): float("nan")}), "common-goal", "en")
    assert math.isnan(frame["target, others"].iloc[0]) and frame["target, source"].iloc[0] == pytest.approx(0.1)


@pytest.mark.parametrize(("setting", "value"), [("common-goal", 0.0381), ("conditioned", 0.1069)])
def test_the_papers_table_has_the_same_columns_marked(setting, value):
    paper = published_judge(setting)
    ours = judge_frame(judged(npo=ENGLISH), "common-goal", "en")
    assert [name.removesuffix(" (published)") for name in paper.frame.columns] == list(ours.columns)
    assert paper.number("target, others", method="NPO") == value


def test_the_judge_stands_beside_the_rules_on_the_same_cells():
    found = cells(rows("npo", flat(0.5, 0.25)), rows("npo", flat(0.0, 1.0), measure=EM))
    frame = beside_rules(judged(npo=ENGLISH), found, "common-goal", "en").set_index("part")
    assert frame.loc["target, others", ["judge", "EM", "ROUGE-L"]].tolist() == [pytest.approx(0.4), 1, 0.25]
