"""What holds for the scoring layer as a whole."""

import inspect
import subprocess
import sys

import pytest

from kbook.scoring import (
    budgets,
    cells,
    gates,
    inference,
    interfaces,
    rouge,
    stitching,
    summary,
    third_party,
    topology,
    variance,
    verdicts,
    weight_side,
)

METRICS = [
    *(getattr(cells, name) for name in ("leaks", "cer_available", "cer_all", "channel_severity", "or_all")),
    *(getattr(cells, name) for name in ("graded", "graded_rate", "collapsed")),
    *(getattr(inference, name) for name in ("mcnemar", "exact_binomial", "benjamini_hochberg", "channel_shares")),
    *(getattr(inference, name) for name in ("tv_distance", "within_distance", "threshold_tau")),
    *(getattr(verdicts, name) for name in ("k_class", "k_factors", "k_score", "or_ratio", "selectivity")),
    *(getattr(variance, name) for name in ("sums_of_squares", "variance_shares", "score_grid")),
    *(gates.validity, gates.eligibility, gates.retain_preservation),
    *(budgets.budget_rates, summary.summarise, topology.topology),
    *(third_party.third_party, stitching.stitched),
    *(f for _, f in inspect.getmembers(interfaces, inspect.isfunction) if f.__module__ == interfaces.__name__),
    *(rouge.rouge_l, weight_side.findings, weight_side.utilities, weight_side.overlap, weight_side.shown_rate),
]


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.__name__)
def test_metric_says_its_shape_and_unit_what_a_gap_counts_as_and_where_it_comes_from(metric):
    text = inspect.getdoc(metric)
    assert all(f"\n{part}:" in text for part in ("Shape", "Unit", "Missing", "Source"))


def test_scoring_loads_neither_torch_nor_transformers_nor_pandas():
    heavy = "{'torch', 'transformers', 'pandas', 'scipy.stats'}"
    code = f"import sys, kbook.scoring.folder; print(sorted({heavy} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
