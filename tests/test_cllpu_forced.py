"""Figure 5: means on and off the diagonal by hand, and the switches that tell most."""

import pandas as pd
import pytest

from kbook.report.cllpu_forced import ANSWER, QUESTION, forced_matrix, forced_means, peaks

VALUES = {("de", "de"): 0.6, ("de", "th"): 0.2, ("th", "de"): 0.1, ("th", "th"): 0.4}


@pytest.fixture
def matrix():
    rows = [
        {"method": "npo", "setting": "common-goal", "source": s, "language": s, "demanded": d, "role": role,
         "topic": "p", "unit": unit, "qa": f"{unit}-{s}", "expected": "x", "said": "y", "em": 0.0,
         "rouge-l": value + (0.3 if role == "retain" else 0.0)}
        for role in ("retain", "forget") for (s, d), value in VALUES.items() for unit in ("u", "v")
    ]  # fmt: skip
    return forced_matrix(pd.DataFrame(rows), "common-goal")


def test_cells_are_by_question_and_demanded_language(matrix):
    target = matrix[matrix["role"] == "target"].set_index([QUESTION, ANSWER])
    assert target["value"].to_dict() == pytest.approx(VALUES) and set(target["n"]) == {2}
    assert matrix["role"].tolist() == ["target"] * 4 + ["neighbour"] * 4


def test_switching_is_compared_with_staying(matrix):
    target, neighbour = forced_means(matrix).to_dict("records")
    assert (target["same"], target["switched"]) == (pytest.approx(0.5), pytest.approx(0.15))
    assert target["change"] == pytest.approx(-0.35) and neighbour["same"] == pytest.approx(0.8)


def test_the_switch_that_tells_most_is_first_and_staying_is_no_switch(matrix):
    top = peaks(matrix, most=1).iloc[0]
    assert (top[QUESTION], top[ANSWER], top["value"]) == ("de", "th", pytest.approx(0.2))
