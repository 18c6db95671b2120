import numpy as np
import pytest
from transcript_factory import VALUE, golden_cells, golden_values, key, rows

from kbook.keys import CHANNELS, OFFICIAL_CHANNELS
from kbook.scoring.cells import (
    cer_all,
    cer_available,
    channel_severity,
    graded_rate,
    or_all,
    pool,
    score_rows,
)
from kbook.scoring.inference import Bootstrap, channel_shares
from kbook.scoring.summary import summarise

HOW = Bootstrap(resamples=200)


def test_point_values_are_the_plain_rates():
    cell = next(cell for cell in golden_cells() if np.isnan(cell.cer).any())
    found = summarise(cell, HOW)
    assert found.or_all.value == pytest.approx(or_all(cell.cer))
    assert found.graded.value == pytest.approx(graded_rate(cell.severity))
    assert found.degeneration.value == pytest.approx(cell.degenerate.mean())
    np.testing.assert_allclose(found.cer_available.value, cer_available(cell.cer))
    np.testing.assert_allclose(found.cer_all.value, cer_all(cell.cer))
    np.testing.assert_allclose(found.severity.value, channel_severity(cell.severity))
    np.testing.assert_allclose(found.share.value, channel_shares(cer_available(cell.cer)))
    np.testing.assert_array_equal(found.n_observed, np.sum(~np.isnan(cell.cer), axis=0))


def test_interval_holds_its_rate_and_has_the_width_of_a_proportion():
    found = summarise(score_rows(rows(200, 60), key()), Bootstrap(resamples=2000)).or_all
    half = 1.96 * np.sqrt(0.3 * 0.7 / 200)
    assert (found.lo, found.hi) == (
        pytest.approx(0.3 - half, abs=0.012),
        pytest.approx(0.3 + half, abs=0.012),
    )


def test_rows_that_are_all_alike_have_no_spread():
    found = summarise(score_rows(rows(20, 20, "summary"), key()), HOW)
    assert found.or_all == (1, 1, 1) and found.dominant == "summary"
    assert found.degeneration == (0, 0, 0)


def test_cell_without_rows_has_no_rates():
    found = summarise(score_rows([], key()), HOW)
    assert found.n == 0 and np.isnan(found.or_all).all() and np.isnan(found.cer_available.lo).all()
    assert found.dominant is None


def test_two_channels_alike_have_no_dominant_one():
    both = rows(20, 20, "summary", raw_Z_CoT=[VALUE])
    assert summarise(score_rows(both, key()), HOW).dominant is None


@pytest.mark.parametrize("cell", golden_cells(), ids=lambda cell: str(cell.key))
def test_conformance_cell_agrees(cell):
    wanted = golden_values()["cells"][
        "|".join(map(str, (cell.key.lane, cell.key.method, cell.key.split, cell.key.seed)))
    ]
    found = summarise(cell, HOW)
    halted, counts = np.unique(cell.halted, return_counts=True)
    assert found.n == wanted["n"] and dict(zip(halted, counts, strict=True)) == wanted["halted"]
    assert found.or_all.value == pytest.approx(wanted["or_all"], abs=1e-12)
    for i, channel in enumerate(CHANNELS):
        assert found.cer_available.value[i] == pytest.approx(wanted["cer"][OFFICIAL_CHANNELS[channel]], abs=1e-12)
        assert found.share.value[i] == pytest.approx(wanted["share"][OFFICIAL_CHANNELS[channel]], abs=1e-12)


def test_pool_of_seeds_is_measured_like_a_cell():
    cells = [score_rows(rows(10, leaking), key(seed=leaking)) for leaking in (2, 6)]
    assert summarise(pool(cells), HOW).or_all.value == pytest.approx(0.4)
