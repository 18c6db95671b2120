"""The plain loops of the benchmark are a second implementation of the protocol: both come to the same figures."""

import importlib.util
import json

import pytest

from kbook.paths import project_root

FOLDER = project_root() / "benchmarks"


@pytest.fixture(scope="module")
def benchmark():
    spec = importlib.util.spec_from_file_location("scoring_benchmark", FOLDER / "scoring.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_plain_loops_come_to_the_same_rates_intervals_tests_and_scores(benchmark):
    assert benchmark.compare(n_cells=48, per_cell=60, resamples=20)["figures equal"]


def test_plain_loops_would_notice_another_figure(benchmark, monkeypatch):
    monkeypatch.setattr(benchmark, "plain_leaks", lambda row: row["shown"]["answer"][0] == 1)
    with pytest.raises(AssertionError, match="or_all"):
        benchmark.compare(n_cells=24, per_cell=20, resamples=3)


def test_recorded_run_kept_its_promises():
    found = json.loads((FOLDER / "scoring.json").read_text())
    largest = [run for run in found["growth"] if run["rows"] == 100_000]
    assert found["against plain loops"]["ratio"] >= 20 and found["against plain loops"]["figures equal"]
    assert largest and all(run["CPU s"] < 60 and run["peak MB"] < 2000 for run in largest)
    assert all(run["CPU s a row, to the first"] < 1.5 for run in found["growth"])
