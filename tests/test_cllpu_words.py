"""Names of protocol B in words and in one order; a published part keeps its mark."""

import pandas as pd
import pytest

from kbook.methods.registry import method_class
from kbook.report.cllpu_words import UNLEARNED, listed, published_part, title, unlearned, worded


def test_rows_are_named_and_stand_in_the_order_of_the_paper():
    frame = pd.DataFrame(
        {
            "setting": ["conditioned", "common-goal", "common-goal", "common-goal"],
            "method": ["ga", "mine", "npo", "original"],
            "role": ["retain", "forget", "retain", "forget"],
            "value": [4, 3, 2, 1],
        }
    )
    named = worded(frame)
    assert named["method"].tolist() == ["Original", "NPO", "mine", "GA"]
    assert named["role"].tolist() == ["target", "neighbour", "target", "neighbour"]
    assert named["setting"].tolist()[-1] == "language-conditioned" and named["value"].tolist() == [1, 2, 3, 4]


def test_words_are_left_as_they_are():
    frame = worded(pd.DataFrame({"method": ["simnpo", "ga"], "language": ["zh", "ar"]}))
    assert worded(frame).equals(frame)


def test_rows_of_one_label_stay_one_and_numbers_named_as_a_language_sort_nothing():
    frame = pd.DataFrame({"method": ["ga", "ga"], "source": [0.9, 0.1]}, index=[0, 0])
    assert worded(frame)["source"].tolist() == [0.9, 0.1]


def test_models_that_no_unlearning_made_are_left_out_in_code_and_in_words():
    frame = pd.DataFrame({"method": ["original", "Retrain", "GA", "gd"]})
    assert unlearned(frame)["method"].tolist() == ["GA", "gd"]


@pytest.mark.parametrize("name", UNLEARNED)
def test_a_method_is_called_as_its_own_module_calls_it(name):
    assert title(name) == method_class(name).title


def test_a_method_of_ones_own_keeps_its_name():
    assert title("mine") == "mine"


def test_a_published_part_is_marked_and_lacks_rows_without_numbers():
    part = published_part("cllpu_table3_mia_belebele", {"conditioned_belebele": "reading"})
    assert list(part.frame.columns) == ["method", "reading (published)"]
    assert "Retrain" not in part.frame["method"].tolist() and part.number("reading", method="GA") == 0.7868


def test_names_in_a_sentence():
    assert listed(["GA", "NPO", "GA"]) == "GA, NPO" and listed([]) == "none"
