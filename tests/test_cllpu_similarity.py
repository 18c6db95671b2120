"""Figure 10: quartiles of cosines by language, and what S gives to wrong answers."""

import math

import pandas as pd
import pytest

from kbook.report.cllpu_similarity import paired_frame, span, wrong_frame


def paired(**cosines):
    rows = [
        {"setting": "common-goal", "source": "", "language": code, "topic": "p", "pair": f"p{i}", "s": s}
        for code, values in cosines.items()
        for i, s in enumerate(values)
    ]
    return pd.DataFrame(rows)


def test_languages_have_mean_and_quartiles():
    frame = paired_frame(paired(th=[0.1, 0.2, 0.3, 0.4, 0.5], de=[0.9, float("nan")]))
    german, thai = frame.to_dict("records")
    assert german["language"].startswith("de") and (german["mean"], german["n"]) == (0.9, 1)
    assert (thai["low"], thai["mean"], thai["high"]) == (pytest.approx(0.2), pytest.approx(0.3), pytest.approx(0.4))


def test_the_span_is_of_means_of_languages():
    assert span(paired(th=[0.0, 0.4], de=[0.6, 0.8]), "common-goal") == (pytest.approx(0.2), pytest.approx(0.7))
    assert math.isnan(span(paired(th=[float("nan")]), "common-goal")[0])


def test_wrong_answers_are_told_apart_by_exact_match_and_only_forget_questions_count():
    rows = [("npo", "forget", 0.0, 0.5), ("npo", "forget", 0.0, 0.3), ("npo", "forget", 1.0, 1.0)]
    rows += [("npo", "retain", 0.0, 0.0), ("ga", "forget", 0.0, 0.2)]
    frame = pd.DataFrame(rows, columns=["method", "role", "em", "s"]).assign(setting="common-goal")
    ga, npo = wrong_frame(frame).to_dict("records")
    assert (npo["answers"], npo["wrong"]) == (3, pytest.approx(2 / 3))
    assert (npo["S of right"], npo["S of wrong"]) == (1, pytest.approx(0.4))
    assert ga["wrong"] == 1 and math.isnan(ga["S of right"])
