"""Cells computed once more: the same code agrees, another answer does not, and the draw is seeded."""

from dataclasses import replace

import pytest

from kbook.corpora.people import make_corpus
from kbook.kbench import KBench
from kbook.keys import CellKey
from kbook.profiles import load_profile
from kbook.recomputing import TOLERANCE, Recomputed, draw, recompute
from kbook.shipped import Shipped
from kbook.store import Run, Store

PROFILE = load_profile("smoke").with_(
    cells={"n": 3, "seeds": [0, 1]}, agent={"max_turns": 2, "max_new_tokens": 4, "summary_tokens": 3}
)
KEY = CellKey("kbench", "llama-tiny", "R-struct", "noise", "forget", 1)
FOUND = Recomputed(KEY, (0.5, 0.5), ("ambiguous", "ambiguous"))


@pytest.fixture
def bench(stand_ins, tmp_path) -> KBench:
    return KBench(PROFILE, corpus=make_corpus(PROFILE.corpus), store=Store(tmp_path / "shown", shipped=Shipped(())))


def test_the_same_code_finds_the_same(bench, stand_ins, tmp_path):
    bench.grid(["none", "noise"], ["R-struct"])
    stand_ins.loads.clear()
    found = recompute(bench, KEY, Store(tmp_path / "empty", shipped=Shipped(())))
    assert found.agrees and found.rates[0] == found.rates[1]
    assert len(stand_ins.loads) == 1  # the one cell, and nothing else


def test_another_answer_is_noticed(bench, tmp_path, monkeypatch):
    bench.grid(["none", "noise"], ["R-struct"])
    rows = Run.rows

    def leaking(run):
        told = rows(run)
        here = (tmp_path / "empty") in run.path.parents
        return [{**r, "answer": r["ground_truth"], "raw_full": f"Final Answer: {r['ground_truth']}",
                 "halted_reason": "final_answer", "leakage": []} for r in told] if here else told  # fmt: skip

    monkeypatch.setattr(Run, "rows", leaking)
    found = recompute(bench, KEY, Store(tmp_path / "empty", shipped=Shipped(())))
    assert found.rates[1] == 1.0 > found.rates[0]
    assert not found.agrees


@pytest.mark.parametrize(
    ("rates", "verdicts", "agrees"),
    [
        ((0.50, 0.50 + TOLERANCE - 1e-9), ("K-REF", "K-REF"), True),
        ((0.50, 0.53), ("K-REF", "K-REF"), False),
        ((0.50, 0.50), ("K-REF", "ambiguous"), False),
    ],
)
def test_a_rate_may_move_a_little_and_a_verdict_not_at_all(rates, verdicts, agrees):
    assert replace(FOUND, rates=rates, verdicts=verdicts).agrees is agrees


def test_the_draw_is_seeded_and_of_plain_cells_that_need_no_injection():
    lanes = ("P", "C", "R-text", "R-struct")
    keys = [replace(KEY, lane=lane, seed=n, variant=v) for lane in lanes for n in range(9) for v in ("", "again")]
    found = draw(keys, 5, 0)
    assert found == draw(reversed(keys), 5, 0) != draw(keys, 5, 1)
    assert len(set(found)) == 5 and all(key.lane != "P" and not key.variant for key in found)
    assert {key.lane for key in draw(keys, 99, 0, lanes)} == set(lanes)
    assert draw([], 3, 0) == []
