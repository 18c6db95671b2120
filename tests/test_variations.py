"""Each rerun changes one thing and says which; nothing of the first run is read in its place."""

from typing import Any

import pytest
import torch
from transcript_factory import key

from kbook.corpora.people import make_corpus
from kbook.kbench import Grid, KBench
from kbook.profiles import load_profile
from kbook.store import Run, Store
from kbook.variations import AGAIN, dealt, fits, like, refits, relabelled, reruns, unnamed

PROFILE = load_profile("smoke").with_(cells={"n": 3, "seeds": [0, 1]})


@pytest.fixture(scope="module")
def corpus():
    return make_corpus(PROFILE.corpus)


@pytest.fixture
def bench(corpus, tmp_path):
    return KBench(PROFILE, base="llama-tiny", corpus=corpus, store=Store(tmp_path), edit_seed=4)


@pytest.fixture
def asked(monkeypatch):
    """What was asked of `KBench.grid`, with what was in force at that moment."""
    seen: list[dict[str, Any]] = []

    def grid(self: KBench, methods: Any = None, lanes: Any = (), **options: Any) -> Grid:
        cells = self.profile.cells
        force = {"budget": cells.token_budget, "threads": torch.get_num_threads(), "seed": self.edit_seed, "n": cells.n}
        seen.append({"methods": methods, "lanes": lanes, "corpus": self.corpus, **options, **force})
        return Grid((), ())

    monkeypatch.setattr(KBench, "grid", grid)
    return seen


def test_a_bench_like_another_differs_in_what_is_named(bench):
    other = like(bench, edit_seed=7)
    assert other.edit_seed == 7 and bench.edit_seed == 4
    assert (other.profile, other.base_name, other.store) == (bench.profile, bench.base_name, bench.store)
    assert other.corpus is bench.corpus


def test_reruns_change_nothing_or_batches_or_threads(bench, asked):
    before = torch.get_num_threads()
    found = reruns(bench, [64], [1, 3], methods=["eco"], lanes=["C"])
    assert list(found) == [AGAIN, "batches of 64 tokens", "1 thread", "3 threads"]
    budget = PROFILE.cells.token_budget
    assert [(a["variant"], a["budget"], a["threads"]) for a in asked] == [
        ("again", budget, before), ("budget-64", 64, before), ("threads-1", budget, 1), ("threads-3", budget, 3),
    ]  # fmt: skip
    assert all((a["methods"], a["lanes"], a["seed"]) == (["eco"], ["C"], 4) for a in asked)
    assert torch.get_num_threads() == before


def test_an_edit_is_trained_with_each_seed_and_answers_in_lane_p(bench, asked):
    assert list(refits(bench, [1, 2], ["npo"])) == ["trained with seed 1", "trained with seed 2"]
    assert [(a["seed"], a["variant"], a["lanes"]) for a in asked] == [
        (1, "edit-seed-1", ["P"]), (2, "edit-seed-2", ["P"]),
    ]  # fmt: skip


def test_fits_are_made_on_one_query_for_each_position_and_depth(bench, asked):
    assert fits(bench, "leace", ["name", "all"], [0.5, 1.0], ["C"]) == ()
    assert [(a["positions"], a["depth"], a["variant"]) for a in asked] == [
        ("name", 0.5, "name-0.5"), ("name", 1.0, "name-1"), ("all", 0.5, "all-0.5"), ("all", 1.0, "all-1"),
    ]  # fmt: skip
    assert all((a["n"], a["methods"], a["splits"]) == (1, ["leace"], ["forget"]) for a in asked)


def test_cells_without_their_variant_are_the_same_cells(tmp_path):
    runs = tuple(Run(key("none", split, variant="wording-1"), tmp_path, None) for split in ("forget", "retain"))
    plain = unnamed(Grid(runs, ())).runs
    assert [str(run.key) for run in plain] == [str(run.key).removesuffix("/variant=wording-1") for run in runs]
    assert all(run.path == tmp_path for run in plain)


def test_labels_by_lot_move_fitting_people_and_nobody_else(bench, corpus):
    lot = relabelled(bench).corpus
    assert {p.id for p in (*lot.forget_fit, *lot.retain_fit)} == {
        p.id for p in (*corpus.forget_fit, *corpus.retain_fit)
    }
    assert len(lot.forget_fit) == len(corpus.forget_fit) and lot.forget_fit != corpus.forget_fit
    assert {p.id for p in lot.forget_fit} & {p.id for p in corpus.retain_fit}
    assert (lot.forget_eval, lot.retain_eval, lot.distractors) == (
        corpus.forget_eval, corpus.retain_eval, corpus.distractors,
    )  # fmt: skip


def test_the_lot_is_seeded(corpus):
    assert dealt(corpus, 0) == dealt(corpus, 0) != dealt(corpus, 1)
