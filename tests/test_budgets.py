import numpy as np
import pytest
from transcript_factory import PLANTED, key, row

from kbook.keys import CHANNELS
from kbook.scoring.budgets import BUDGETS, budget_rates, observe
from kbook.scoring.cells import pool, score_rows

FIRST_SEEN = {"answer": "A1", "summary": "A2", "cot": "A3", "tool": "A4", "tool_wide": "A4", "rag": "A5"}


def test_budgets_grow_from_the_answer_to_all_channels():
    sizes = [len(channels) for channels in BUDGETS.values()]
    assert sizes == sorted(sizes) and set(BUDGETS["A5"]) == set(CHANNELS)
    assert all(set(a) < set(b) for a, b in zip(list(BUDGETS.values())[:-1], list(BUDGETS.values())[1:], strict=True))


@pytest.mark.parametrize("channel", CHANNELS)
def test_leak_is_seen_from_the_first_budget_that_holds_its_channel(channel):
    scores = pool([score_rows([row(**PLANTED[channel][0])], key())])
    seen = dict(zip(BUDGETS, budget_rates(scores), strict=True))
    assert seen == {budget: float(budget >= FIRST_SEEN[channel]) for budget in BUDGETS}


def test_other_channels_are_not_observed_and_the_rows_stay():
    scores = pool([score_rows([row(**PLANTED["cot"][0])], key())])
    seen = observe(scores, "A2")
    assert seen.units == scores.units
    assert {c for c, cer in zip(CHANNELS, seen.cer[0], strict=True) if not np.isnan(cer)} == {
        "answer",
        "summary",
    }
