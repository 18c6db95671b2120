"""What references answer by language and wording, and which settings a sweep chose."""

import pandas as pd
import pytest
from cllpu_scores import CORE, SURFACE, free, rows, scores

from kbook.report.cllpu_injection import ability_frame, chosen_frame, chosen_points, taught_frame
from kbook.scoring.accessibility import EM

NAN = float("nan")


def test_abilities_are_by_part_and_language_with_the_gap_in_points():
    frame = ability_frame(
        scores(
            rows("original", {("", "de"): 0.75, ("", "th"): 0.5}, measure=EM, layers={CORE: 0.25, SURFACE: -0.25}),
            rows("retrain", free(0.0), measure=EM),
            rows("npo", free(1.0), measure=EM),
        )
    )
    assert frame["part"].drop_duplicates().tolist() == ["Original: target", "Retrain: target"]
    german = frame.iloc[0]
    assert german["language"] == "de Deutsch"
    assert (german["core"], german["surface"], german["gap"]) == (1, 0.5, pytest.approx(-50))


def checkpoint(source, rate, epoch, target, neighbour, chosen, stopped=""):
    facts = {"method": "npo", "setting": "common-goal", "source": source, "learning_rate": rate, "beta": 0.1}
    facts |= dict.fromkeys(("gamma", "alpha", "margin", "temperature"), NAN)
    marks = {"score": neighbour - target, "chosen": chosen, "stopped": stopped}
    return {**facts, "epoch": epoch, "target": target, "neighbour": neighbour, **marks}


@pytest.fixture
def sweep():
    return pd.DataFrame(
        [
            checkpoint("de", 1e-4, 1, 0.5, 0.9, False),
            checkpoint("de", 1e-4, 2, 0.2, 0.8, True),
            checkpoint("th", 1e-4, 2, 0.4, 0.6, True),
            checkpoint("th", 3e-4, 1, 0.0, 0.0, False, "the loss was not finite"),
            checkpoint("en", 3e-4, 1, 0.3, 0.4, True),
        ]
    )


def test_choices_are_counted_over_sources(sweep):
    (row,) = chosen_frame(sweep).to_dict("records")
    assert (row["checkpoints"], row["broken"]) == (5, 1)
    assert row["settings"] == "rate 0.0001, β 0.1 (×2); rate 0.0003, β 0.1 (×1)" and row["epochs"] == "2 (×2); 1 (×1)"
    assert (row["target"], row["neighbour"]) == (pytest.approx(0.3), pytest.approx(0.6))


def test_only_the_chosen_are_points(sweep):
    points = chosen_points(sweep)
    assert points["source"].tolist() == ["de", "en", "th"] and points["target"].tolist() == [0.2, 0.3, 0.4]


def test_a_training_that_reached_its_end_says_so():
    row = {"method": "original", "documents": 8, "epochs": 2, "steps": 4, "tokens": 90, "learning_rate": 5e-4}
    frame = taught_frame(pd.DataFrame([{**row, "seconds": 1.0, "stopped": ""}]))
    assert frame["stopped"].tolist() == ["at its end"] and frame["model"].tolist() == ["Original"]
