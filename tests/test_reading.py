"""Reading questions: the most likely label wins, and accuracy is a mean of means."""

import doctest
import math

import pandas as pd
import pytest

from kbook.corpora.belebele import ReadingQuestion
from kbook.scoring import reading as module
from kbook.scoring.reading import LABELS, answered_rightly, reading_scores, reading_text, utility

NAN = float("nan")


def question(correct=2, language="en", id="x"):
    return ReadingQuestion(id, language, "Rain fell.", "What fell?", ("snow", "ash", "rain", "hail"), correct)


@pytest.mark.parametrize(
    ("log_probs", "right"),
    [
        ([-3.0, -2.0, -1.0, -4.0], 1),
        ([-1.0, -2.0, -3.0, -4.0], 0),
        ([-1.0, -2.0, -1.0, -4.0], 0.5),
        ([-1.0] * 4, 0.25),
    ],
)
def test_the_most_likely_label_is_the_answer(log_probs, right):
    assert answered_rightly(question(2), log_probs) == right


@pytest.mark.parametrize("correct", range(4))
def test_every_place_can_be_right(correct):
    log_probs = [0.0 if place == correct else -1.0 for place in range(4)]
    assert answered_rightly(question(correct), log_probs) == 1
    assert answered_rightly(question((correct + 1) % 4), log_probs) == 0


def test_a_model_without_numbers_has_no_answer():
    assert math.isnan(answered_rightly(question(), [NAN, -1.0, -1.0, -1.0]))


def test_the_prompt_has_every_option_behind_its_label():
    text = reading_text(question())
    assert text.startswith("Rain fell.\n") and text.endswith("D. hail")
    assert all(f"\n{label}. {option}" in text for label, option in zip(LABELS, question().options, strict=True))


def made(source, language, values, method="npo"):
    questions = [question(0, language, str(i)) for i in range(len(values))]
    log_probs = [[0.0, -1.0, -1.0, -1.0] if value else [-1.0, 0.0, -1.0, -1.0] for value in values]
    return reading_scores(questions, log_probs, method=method, setting="common-goal", source=source)


def test_accuracy_is_the_mean_over_languages_then_sources():
    frame = pd.concat(
        [made("de", "de", [1, 0]), made("de", "en", [1, 1]), made("en", "de", [0, 0]), made("en", "en", [1, 0])]
        + [made("", "de", [1, 1], "original"), made("", "en", [0, 1], "original")]
    )
    found = utility(frame).set_index("method")
    assert found["accuracy"].to_dict() == {"npo": (0.75 + 0.25) / 2, "original": 0.75}
    assert found["n_sources"].to_dict() == {"npo": 2, "original": 2}


def test_a_language_that_a_source_lacks_leaves_a_gap():
    frame = pd.concat([made("de", "de", [1]), made("de", "en", [1]), made("en", "de", [0])])
    assert math.isnan(utility(frame)["accuracy"].iloc[0])


def test_the_example_holds():
    assert doctest.testmod(module).failed == 0
