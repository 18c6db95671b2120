"""Runs side by side: every call is made, each with one thread; failures are kept until all have ended."""

import json
import os
from pathlib import Path

import pytest

from kbook.errors import KBookError
from kbook.kbench import KBench
from kbook.models.threads import threads
from kbook.profiles import load_profile
from kbook.store import Store
from kbook.workers import WORKERS, side_by_side, workers


def note(folder: Path, name: str, fails: bool = False) -> None:
    import torch

    facts = {"process": os.getpid(), "threads": torch.get_num_threads(), "below": workers("cpu")}
    (folder / name).write_text(json.dumps(facts))
    if fails:
        raise KBookError(f"{name} went wrong", "a test", "none")


def noted(folder: Path) -> list[dict[str, int]]:
    return [json.loads(path.read_text()) for path in sorted(folder.iterdir())]


def test_calls_are_made_in_other_processes_with_one_thread_each(tmp_path):
    side_by_side(note, [(tmp_path, name) for name in "abcd"], 2)
    facts = noted(tmp_path)
    assert len(facts) == 4 and {each["threads"] for each in facts} == {1} and {each["below"] for each in facts} == {1}
    assert os.getpid() not in {each["process"] for each in facts}


@pytest.mark.parametrize("most, names", [(1, "abc"), (2, "a")])
def test_one_process_or_one_call_stays_here(tmp_path, most, names):
    side_by_side(note, [(tmp_path, name) for name in names], most)
    assert {each["process"] for each in noted(tmp_path)} == {os.getpid()} and len(noted(tmp_path)) == len(names)


@pytest.mark.parametrize("most", [1, 2])
def test_a_failure_keeps_no_other_call_from_being_made(tmp_path, most):
    with pytest.raises(KBookError, match="a went wrong"):
        side_by_side(note, [(tmp_path, name, name in "ac") for name in "abcd"], most)
    assert len(noted(tmp_path)) == 4


def test_how_many_is_said_or_found(monkeypatch):
    monkeypatch.setenv(WORKERS, "3")
    assert workers("cpu") == 3
    monkeypatch.delenv(WORKERS)
    assert workers("cpu") == os.cpu_count() and workers("cuda") == 1
    for wrong in ("0", "-1", "many"):
        monkeypatch.setenv(WORKERS, wrong)
        with pytest.raises(KBookError, match=WORKERS):
            workers("cpu")


def test_a_grid_is_the_same_whoever_computes_it(tmp_path, monkeypatch):
    profile = load_profile("smoke").with_(
        cells={"n": 2, "seeds": [0]}, agent={"max_turns": 1, "max_new_tokens": 4, "summary_tokens": 3}
    )
    rows = {}
    for processes in ("1", "2"):
        monkeypatch.setenv(WORKERS, processes)
        bench = KBench(profile, store=Store(tmp_path / processes, profile.name))
        with threads(1):
            grid = bench.grid(["none", "noise"], ["C"], ["forget"])
        rows[processes] = {str(run.key): run.rows() for run in grid.runs}
    assert len(rows["1"]) == 2 and rows["1"] == rows["2"]
