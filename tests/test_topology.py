import numpy as np
import pytest
from transcript_factory import golden_cells, golden_values, key, rows

from kbook.scoring.cells import score_rows
from kbook.scoring.topology import topology


def baseline(lane, channel, seed=0):
    return score_rows(rows(4, 4, channel), key(lane=lane, seed=seed))


def test_conformance_distances_agree():
    cells = [cell for cell in golden_cells() if cell.key.method == "none" and cell.key.split == "forget"]
    found, wanted = topology(cells), golden_values()
    assert found.tau == pytest.approx(wanted["tau"], abs=1e-12)
    assert found.within == pytest.approx(wanted["d_within"], abs=1e-12)
    distances = {f"{pair.first}|{pair.second}": pair.distance for pair in found.pairs}
    assert distances == pytest.approx(wanted["tv"], abs=1e-12)
    assert found.holds, "every pair exceeds tau but the exempt one"
    assert [pair.exempt for pair in found.pairs] == [False] * 5 + [True]


def test_lanes_that_leak_alike_are_no_different():
    cells = [baseline(lane, "answer", seed) for lane in ("P", "C") for seed in (0, 1)]
    found = topology(cells)
    assert found.tau == 0 and found.pairs[0].distance == 0 and found.holds is False


def test_lanes_that_leak_elsewhere_are_as_far_apart_as_can_be():
    cells = [baseline(lane, channel, seed) for lane, channel in (("P", "summary"), ("C", "cot")) for seed in (0, 1)]
    assert topology(cells).pairs[0].distance == 1 and topology(cells).holds


def test_one_seed_has_no_tau_and_lanes_without_a_common_seed_no_distance():
    found = topology([baseline("P", "answer", 0), baseline("C", "answer", 1)])
    assert np.isnan(found.tau) and found.holds is None
    assert found.pairs[0].n_seeds == 0 and np.isnan(found.pairs[0].distance)
