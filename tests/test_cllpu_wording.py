"""Figure 4: gaps in points by hand, and their range over the unlearned models alone."""

import pytest
from cllpu_scores import CORE, SURFACE, flat, free, rows, scores

from kbook.report.cllpu_wording import WHAT, gap_ranges, wording_frame


@pytest.fixture
def frame():
    return wording_frame(
        scores(
            rows("original", free(0.8), layers={CORE: 0.1, SURFACE: -0.4}),
            rows("npo", flat(0.1, 0.3), layers={CORE: 0.0, SURFACE: 0.02}),
            rows("npo", flat(0.7, 0.4), role="retain", layers={CORE: 0.1, SURFACE: -0.1}),
            rows("ga", flat(0.1, 0.3), layers={CORE: 0.0, SURFACE: -0.05}),
        ),
        "common-goal",
    )


def test_the_gap_is_surface_minus_core_in_points(frame):
    found = frame.set_index(["what", "method"])
    assert found.loc[("target, source", "NPO"), ["core", "surface"]].tolist() == [
        pytest.approx(0.1),
        pytest.approx(0.12),
    ]
    assert found.loc[("target, cross", "NPO"), "gap"] == pytest.approx(2)
    assert found.loc[("neighbour, source", "NPO"), "gap"] == pytest.approx(-20)
    assert found.loc[("target, source", "Original"), "gap"] == pytest.approx(-50)


def test_parts_stand_in_one_order(frame):
    assert frame["what"].drop_duplicates().tolist() == list(WHAT)


def test_the_range_is_of_unlearned_models(frame):
    ranges = gap_ranges(frame)
    assert ranges["target"] == (pytest.approx(-5), pytest.approx(2))
    assert ranges["neighbour, source"] == (pytest.approx(-20), pytest.approx(-20))
