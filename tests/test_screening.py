"""The screening rule by hand: low target and high neighbour win, and of equals the first."""

import pytest

from kbook.scoring.screening import Point, best, screened

RIGHT, WRONG, HALF = ("a b", "a b"), ("a b", "c d"), ("a b", "a c")


@pytest.mark.parametrize(
    ("target", "neighbour", "weight", "score"),
    [
        ([WRONG], [RIGHT], 0.5, 1.0),
        ([RIGHT], [RIGHT], 0.5, 0.5),
        ([WRONG], [WRONG], 0.5, 0.5),
        ([RIGHT], [WRONG], 0.5, 0.0),
        ([HALF, WRONG], [RIGHT, HALF], 0.5, 0.75),
        ([RIGHT], [RIGHT], 0.2, 0.8),
        ([WRONG], [WRONG], 1.0, 1.0),
    ],
    ids=["forgets one", "forgets none", "forgets both", "forgets the other", "means", "weight", "target alone"],
)
def test_the_score_rises_as_the_target_falls_and_the_neighbour_stays(target, neighbour, weight, score):
    point = screened({"learning_rate": 1e-4}, 3, target, neighbour, weight)
    assert point.score == pytest.approx(score) and (point.epoch, point.settings) == (3, {"learning_rate": 1e-4})


def test_the_best_is_the_first_of_the_highest():
    points = [Point({"x": x}, epoch, 0, 0, score) for x, epoch, score in [(1, 1, 0.2), (1, 2, 0.9), (2, 1, 0.9)]]
    assert best(points) == points[1]
    assert best(points[:1]) == points[0]
