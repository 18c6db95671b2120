"""Sweeps: nobody who is evaluated takes part, everything is kept, and only what is missing is computed."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kbook import sweeps
from kbook.corpora.people import Corpus, make_corpus
from kbook.errors import KBookError
from kbook.kbench import KBench
from kbook.profiles import load_profile
from kbook.store import Store
from kbook.sweeps import Halves, candidates, halved, run_sweep

PROFILE = load_profile("smoke").with_(
    agent={"max_turns": 1, "max_new_tokens": 3, "summary_tokens": 2},
    sweeps={"noise": {"sigma": [0.1, 2.0]}},
)
EDIT = """
from pydantic import Field
from kbook.methods.contract import Intervention, Parameters

FITTED = []

class Settings(Parameters):
    strength: float = Field(1.0, description="does nothing")

class Edit(Intervention):
    name, title, family, source, lanes = "mine", "Mine", "weights", "a test", ("P",)
    reason = "it edits weights"
    Parameters = Settings

    def edit(self, context):
        people = {"forget": context.fit_forget, "retain": context.fit_retain, "list": context.forget_list}
        (context.work / "people.txt").write_text(repr({k: [p.id for p in v] for k, v in people.items()}))
        return {"steps": 3, "stopped": "", "seconds": 0.1, "losses": [[10, 2.5], [20, 1.5]]}
"""


@pytest.fixture
def injections(stand_ins: Any) -> list[list[str]]:
    """The ids of everyone who was injected, one list a time."""
    found: list[list[str]] = stand_ins.injections
    return found


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    return make_corpus(PROFILE.corpus)


@pytest.fixture
def bench(injections: list[list[str]], corpus: Corpus, tmp_path: Path) -> KBench:
    return KBench(PROFILE, corpus=corpus, store=Store(tmp_path / "store", PROFILE.name))


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str, set[str]]]:
    """Method, split and the people asked about, of every cell that a sweep takes."""
    seen: list[tuple[str, str, set[str]]] = []
    cell = Halves.cell

    def noted(self: Halves, lane: str, method: str, split: str, seed: int, **options: Any) -> Any:
        run = cell(self, lane, method, split, seed, **options)
        seen.append((method, split, {row["pii_id"] for row in run.rows()}))
        return run

    monkeypatch.setattr(Halves, "cell", noted)
    return seen


# ---- who takes part ----------------------------------------------------------------------------------------


def test_fitting_pools_are_cut_in_two_and_nobody_who_is_evaluated_is_left(corpus: Corpus) -> None:
    halves = halved(corpus)
    sizes = [len(halves.pool(split, part)) for split in ("forget", "retain") for part in ("fit", "eval")]
    assert sizes == [3, 1, 6, 2]
    assert halves.forget == corpus.forget_fit and halves.retain == corpus.retain_fit
    assert not {p.id for p in halves.members} & {p.id for p in (*corpus.forget_eval, *corpus.retain_eval)}
    assert halves.holdout == ()


def test_a_pool_of_one_cannot_be_cut(corpus: Corpus) -> None:
    with pytest.raises(KBookError, match=r"the retain fitting pool of 1 cannot be cut.*raise corpus\.n_fit_retain"):
        halved(replace(corpus, retain_fit=corpus.retain_fit[:1]))


def test_somebody_who_is_evaluated_is_refused_by_name(corpus: Corpus) -> None:
    with pytest.raises(KBookError, match=f"reported for: {corpus.retain_eval[0].id}"):
        sweeps._refuse_evaluated([*corpus.forget_fit, corpus.retain_eval[0]], corpus)


def test_the_agent_is_asked_about_those_set_aside_and_knows_everybody(
    bench: KBench, corpus: Corpus, injections: list[list[str]], asked: list[tuple[str, str, set[str]]]
) -> None:
    sweep = run_sweep(bench, "noise")
    halves = halved(corpus)
    people = {split: {p.id for p in halves.pool(split, "eval")} for split in ("forget", "retain")}
    assert asked == [(m, s, people[s]) for m in ("none", "noise", "noise") for s in ("forget", "retain")]
    assert injections == [[p.id for p in corpus.members]]  # once, and nobody is left out
    assert [c.record["forget"]["n"] for c in sweep.candidates] == [4, 4]
    assert [c.record["retain"]["n"] for c in sweep.candidates] == [8, 8]


def test_a_weight_edit_learns_from_the_larger_part_alone(
    bench: KBench, corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, texts = tmp_path / "mine.py", []
    file.write_text(EDIT)
    edited = Halves.edited

    def kept(self: Halves, method: str, *which: Any, **options: Any) -> Any:
        run = edited(self, method, *which, **options)
        texts.append(run.file("people.txt").read_text())
        return run

    monkeypatch.setattr(Halves, "edited", kept)
    sweep = run_sweep(bench, f"{file}::Edit", {"strength": [1.0]})
    halves = halved(corpus)
    pools = {"forget": halves.forget_fit, "retain": halves.retain_fit, "list": halves.forget}
    assert set(texts) == {repr({name: [p.id for p in pool] for name, pool in pools.items()})}
    assert sweep.candidates[0].record["facts"] == {"steps": 3, "stopped": "", "loss": 1.5}
    assert not [run for run in bench.store.find() if "model=mine/" in str(run.key)]  # edited weights are not kept


# ---- what is kept ------------------------------------------------------------------------------------------


def test_a_candidate_is_a_run_of_one_record(bench: KBench) -> None:
    sweep = run_sweep(bench, "noise")
    keys = [str(run.key) for run in sweep.runs]
    assert keys == [
        "kbench/llama-tiny/model=sweep-none/seed=0/variant=untreated",
        "kbench/llama-tiny/model=sweep-noise/seed=0/variant=sigma-0.1",
        "kbench/llama-tiny/model=sweep-noise/seed=0/variant=sigma-2",
    ]
    assert all(len(run.rows()) == 1 for run in sweep.runs)
    assert sweep.candidates[1].record == sweep.runs[2].rows()[0]
    assert sweep.untreated.label == "untreated" and sweep.candidates[1].label == "sigma=2"


def test_only_what_is_missing_is_computed(
    bench: KBench, asked: list[tuple[str, str, set[str]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    first = run_sweep(bench, "noise")
    n = len(asked)
    assert run_sweep(bench, "noise").candidates == first.candidates and len(asked) == n
    more = run_sweep(bench, "noise", {"sigma": [0.1, 1.0, 2.0]})
    assert len(asked) == n + 2  # two cells of the one new value
    assert [more.candidates[i] for i in (0, 2)] == list(first.candidates)


def test_an_interrupted_sweep_goes_on_with_the_candidate_that_was_lost(
    bench: KBench, asked: list[tuple[str, str, set[str]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    record = sweeps._record

    def stopped(halves: Halves, method: str, settings: dict[str, Any]) -> dict[str, Any]:
        if settings == {"sigma": 2.0}:
            raise KeyboardInterrupt
        return record(halves, method, settings)

    with monkeypatch.context() as patch:
        patch.setattr(sweeps, "_record", stopped)
        with pytest.raises(KeyboardInterrupt):
            run_sweep(bench, "noise")
    before = len(asked)
    assert len(run_sweep(bench, "noise").candidates) == 2 and len(asked) == before + 2


def test_another_base_or_other_people_make_another_run(bench: KBench, corpus: Corpus) -> None:
    digest = Halves(bench).spec("noise", {"sigma": 1.0}).digest
    same = KBench(PROFILE, corpus=corpus, store=bench.store)
    assert Halves(same).spec("noise", {"sigma": 1.0}).digest == digest
    assert Halves(bench).spec("noise", {"sigma": 2.0}).digest != digest
    assert Halves(KBench(PROFILE, base="other", corpus=corpus)).spec("noise", {"sigma": 1.0}).digest != digest
    fewer = replace(corpus, forget_eval=corpus.forget_eval[1:])  # they are injected with the others
    assert Halves(KBench(PROFILE, corpus=fewer)).spec("noise", {"sigma": 1.0}).digest != digest


# ---- grids -------------------------------------------------------------------------------------------------


def test_candidates_are_all_combinations_in_order(bench: KBench) -> None:
    grid = {"depths": [[0.25], [0.5, 0.75]], "alpha": [1, 2]}
    assert candidates(bench, "repe", grid) == [
        {"depths": [0.25], "alpha": 1.0},
        {"depths": [0.25], "alpha": 2.0},
        {"depths": [0.5, 0.75], "alpha": 1.0},
        {"depths": [0.5, 0.75], "alpha": 2.0},
    ]


@pytest.mark.parametrize(
    ("method", "grid", "message"),
    [
        ("nois", None, "unknown method 'nois'.*Did you mean noise"),
        ("eco", None, "unknown sweep 'eco'.*Known: npo, leace, noise"),
        ("noise", {"sigm": [1.0]}, "setting 'sigm' of method noise"),
        ("noise", {"sigma": [0.1, -1.0]}, "setting 'sigma' of method noise"),
        ("noise", {}, "the grid is empty"),
        ("noise", {"sigma": []}, "the grid is empty"),
    ],
    ids=["method", "no grid in the profile", "setting", "value out of range", "no settings", "no values"],
)
def test_a_bad_sweep_is_refused_before_anything_runs(
    bench: KBench, injections: list[list[str]], method: str, grid: Any, message: str
) -> None:
    with pytest.raises(KBookError, match=message):
        run_sweep(bench, method, grid)
    assert not injections and not bench.store.find()


def test_the_profile_agrees_with_what_it_runs_by_default(bench: KBench) -> None:
    sweep = run_sweep(bench, "noise", {"sigma": [bench.method("noise").settings.model_dump()["sigma"]]})
    assert sweep.agrees
    changed = KBench(PROFILE.with_(methods={"noise": {"sigma": 9.0}}), corpus=bench.corpus, store=bench.store)
    assert not run_sweep(changed, "noise", {"sigma": [0.2]}).agrees


@pytest.mark.parametrize("name", ["smoke", "laptop", "small", "paper"])
def test_every_shipped_grid_holds_settings_that_its_method_takes(name: str) -> None:
    bench = KBench(name)
    assert bench.profile.sweeps
    for method in bench.profile.sweeps:
        tried = candidates(bench, method)
        assert 2 <= len(tried) <= 6 and len({str(settings) for settings in tried}) == len(tried)


def test_long_settings_make_a_name_that_a_key_can_hold() -> None:
    names = {sweeps._variant({"depths": [i / 7 for i in range(k)]}) for k in (40, 41)}
    assert len(names) == 2 and max(map(len, names)) <= 100
