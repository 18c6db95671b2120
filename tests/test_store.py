"""The run store: killed at any moment and run again, it holds the bytes of an undisturbed run."""

import hashlib
import json
import os
import random
import subprocess
import sys
import time
import warnings
from dataclasses import replace
from pathlib import Path

import pytest
import store_worker as worker

import kbook
from kbook.errors import KBookError
from kbook.store import Store, StoreWarning, digest_of

KEY, SPEC = worker.CELL, worker.SPEC
BATCHES = [[1, 2], [3], [4, 5, 6]]


class Counted:
    """Work that remembers which batches it was asked for; may fail once at one of them."""

    def __init__(self, fails_at=None, error=KeyboardInterrupt):
        self.asked, self.fails_at, self.error = [], fails_at, error

    def __call__(self, batch):
        self.asked.append(batch)
        if batch == self.fails_at:
            raise self.error
        return [{"x": x} for x in batch]


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path, profile="smoke")


def compute(store, work=None, key=KEY, spec=SPEC, **options):
    return store.rows(key, spec, BATCHES, work or Counted(), **options)


# --- complete runs ------------------------------------------------------------------------------------


def test_run_holds_its_rows_and_its_manifest_tells_all_about_it(store):
    run = compute(store, seed=0, extra={"note": "é"})
    made = run.manifest
    assert run.rows() == [{"x": x} for x in range(1, 7)]
    assert run.path == store.root / KEY.path / SPEC.digest[:8]
    assert (made.key, made.digest, made.seed, made.profile) == (str(KEY), SPEC.digest, 0, "smoke")
    assert (made.n_rows, made.n_batches, made.extra) == (6, 3, {"note": "é"})
    assert digest_of(made.parts) == SPEC.digest
    assert set(made.parts) == {"parameters", "sources", "inputs", "base"}
    assert made.versions["python"] and made.versions["kbook"] and made.hardware["n_cpus"] >= 1
    assert made.started <= made.ended and made.seconds >= 0
    assert set(made.commit) == {"id", "dirty"}
    assert list(made.checksums) == ["rows.jsonl"]


def test_complete_run_is_read_not_computed(store):
    first, again = compute(store), Counted()
    run = compute(store, again)
    assert again.asked == [] and run == first


@pytest.mark.parametrize(
    ("key", "spec"),
    [
        (replace(KEY, seed=137), SPEC),
        (KEY, replace(SPEC, parameters={"n": 13})),
        (KEY, replace(SPEC, inputs={"corpus": "c"})),
        (KEY, replace(SPEC, base="b")),
        (KEY, replace(SPEC, sources=("kbook.profiles",))),
    ],
    ids=["key", "parameter", "input", "base", "source"],
)
def test_another_key_or_digest_is_another_run(store, key, spec):
    compute(store)
    work = Counted()
    assert store.lookup(key, spec) is None
    compute(store, work, key=key, spec=spec)
    assert work.asked == BATCHES
    assert len(store.find()) == 2


def test_lookup_finds_exactly_the_complete_run(store):
    assert store.lookup(KEY, SPEC) is None
    with pytest.raises(KeyboardInterrupt):
        compute(store, Counted(fails_at=[3]))
    assert store.lookup(KEY, SPEC) is None
    run = compute(store)
    assert store.lookup(KEY, SPEC) == run


def test_find_lists_complete_runs_by_prefix_in_order(store):
    keys = [replace(KEY, method=method, seed=seed) for method in ("eco", "none") for seed in (0, 2, 10)]
    for key in reversed(keys):
        compute(store, key=key)
    with pytest.raises(KeyboardInterrupt):
        compute(store, Counted(fails_at=[1, 2]), key=replace(KEY, method="star"))
    assert [run.key for run in store.find("kbench/llama-tiny/P/eco/")] == sorted(keys[:3], key=str)
    assert {run.key for run in store.find()} == set(keys)
    assert [folder.parts[-4] for folder in store.unfinished()] == ["star"]
    assert store.find("cllpu/") == []


def test_store_without_a_folder_is_empty(tmp_path):
    assert Store(tmp_path / "nowhere").find() == []


def test_run_without_batches_is_complete_and_empty(store):
    assert store.rows(KEY, SPEC, [], Counted()).rows() == []


def test_progress_is_silent_without_a_terminal(store, capsys):
    compute(store)
    assert capsys.readouterr() == ("", "")


# --- what is refused ----------------------------------------------------------------------------------


def test_another_number_of_batches_is_refused_in_progress_and_when_complete(store):
    with pytest.raises(KeyboardInterrupt):
        compute(store, Counted(fails_at=[3]))
    with pytest.raises(KBookError, match="among the parameters"):
        store.rows(KEY, SPEC, BATCHES[:2], Counted())
    compute(store)
    with pytest.raises(KBookError, match="among the parameters"):
        store.rows(KEY, SPEC, BATCHES[:2], Counted())


def test_seed_that_the_key_does_not_name_is_refused(store):
    with pytest.raises(KBookError, match="seed"):
        compute(store, seed=1)


def test_row_that_is_no_json_is_refused_and_finished_batches_stay(store):
    def work(batch):
        return [{"x": object()}] if batch == [3] else [{"x": x} for x in batch]

    with pytest.raises(KBookError, match="row 1 cannot be written as JSON"):
        compute(store, work)
    again = Counted()
    compute(store, again)
    assert again.asked == BATCHES[1:]


@pytest.mark.parametrize("name", ["model.bin", "state.pt", "x.pkl", "manifest.json"])
def test_pickles_and_the_name_of_the_manifest_are_refused(store, name):
    def build(folder):
        (folder / name).write_bytes(b"x")
        return {}

    with pytest.raises(KBookError, match="may not hold"):
        store.files(worker.MODEL, SPEC, build)
    assert store.lookup(worker.MODEL, SPEC) is None


def test_unknown_file_of_a_run_is_refused_with_what_it_has(store):
    run = store.files(worker.MODEL, SPEC, worker.Work().build)
    with pytest.raises(KBookError, match="Known: config.json, model.safetensors"):
        run.file("weights.bin")
    with pytest.raises(KBookError, match=r"unknown file 'rows\.jsonl'"):
        run.rows()


def test_folder_with_another_run_is_refused(store):
    run = compute(store)
    other = replace(SPEC, base="b")
    target = store.root / KEY.path / other.digest[:8]
    run.path.rename(target)
    with pytest.raises(KBookError, match="another run"):
        compute(store, spec=other)


# --- interruption -------------------------------------------------------------------------------------


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
@pytest.mark.parametrize("at", BATCHES, ids=str)
def test_interrupted_run_goes_on_at_the_unfinished_batch(store, tmp_path, at, error):
    with pytest.raises(error):
        compute(store, Counted(fails_at=at, error=error))
    work = Counted()
    run = compute(store, work)
    assert work.asked == BATCHES[BATCHES.index(at) :]
    undisturbed = compute(Store(tmp_path / "other"))
    assert worker.contents(run.path) == worker.contents(undisturbed.path)


def test_seconds_add_up_over_interruptions_and_the_start_is_the_first(store):
    def slow(batch):
        time.sleep(0.05)
        if batch == [4, 5, 6] and store.find() == [] and not gone_on:
            raise KeyboardInterrupt
        return [{"x": 1}]

    gone_on = []
    with pytest.raises(KeyboardInterrupt):
        compute(store, slow)
    time.sleep(1.1)  # time between tries does not count
    gone_on.append(True)
    made = compute(store, slow).manifest
    assert 0.15 <= made.seconds < 0.8
    assert made.started < made.ended


def test_interrupted_build_finds_its_checkpoints_and_they_go_when_it_is_complete(store):
    tries = []

    def build(folder):
        state = folder / "checkpoints" / "state.json"
        tries.append(state.exists())
        state.parent.mkdir(exist_ok=True)
        state.write_text("{}")
        if len(tries) == 1:
            raise KeyboardInterrupt
        (folder / "config.json").write_text("{}")
        return {"loss": 0.5}

    with pytest.raises(KeyboardInterrupt):
        store.files(worker.MODEL, SPEC, build)
    run = store.files(worker.MODEL, SPEC, build)
    assert tries == [False, True]
    assert not (run.path / "checkpoints").exists()
    assert list(run.manifest.checksums) == ["config.json"]
    assert run.manifest.extra == {"loss": 0.5}


def start(mode: str, kind: str, root: Path, log: Path) -> subprocess.Popen:
    command = [sys.executable, worker.__file__, mode, kind, str(root), str(log)]
    path = os.pathsep.join([str(Path(kbook.__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=os.environ | {"PYTHONPATH": path})


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """What each kind of run holds when nobody disturbs it."""
    root = tmp_path_factory.mktemp("undisturbed")
    return {kind: worker.contents(worker.Work(pause=0).run(kind, root).path) for kind in ("rows", "files")}


@pytest.mark.parametrize("kind", ["rows", "files"])
def test_run_killed_at_any_change_of_the_disk_ends_with_the_bytes_of_an_undisturbed_one(tmp_path, kind):
    process = start("every", kind, tmp_path, tmp_path / "log")
    n_killed, _ = process.communicate()
    assert process.returncode == 0
    assert int(n_killed) > 30


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kind", ["rows", "files"])
def test_run_killed_again_and_again_ends_with_the_bytes_of_an_undisturbed_one(tmp_path, undisturbed, kind, seed):
    rng = random.Random(f"{kind} {seed}")
    store, log = Store(tmp_path / "runs"), tmp_path / "log"
    log.touch()
    n_killed = 0
    for _ in range(4):
        before = log.stat().st_size
        process = start("once", kind, store.root, log)
        while process.poll() is None and log.stat().st_size == before:
            time.sleep(0.002)  # until it works: Python takes longer to start than the work takes
        time.sleep(rng.uniform(0, 0.08))
        process.kill()
        process.wait()
        n_killed += log.stat().st_size > before and not store.find()
    assert n_killed >= 1  # else the test has shown nothing
    process = start("once", kind, store.root, log)
    process.communicate()
    assert process.returncode == 0
    (run,) = store.find()
    assert worker.contents(run.path) == undisturbed[kind]
    assert not list(run.path.glob("*.corrupt-*"))  # a killed writer is not damage
    if kind == "rows":
        assert run.manifest.n_rows == worker.N_BATCHES * worker.N_ROWS


@pytest.mark.parametrize("kind", ["rows", "files"])
def test_two_processes_that_want_the_same_run_do_its_work_once(tmp_path, undisturbed, kind):
    log = tmp_path / "log"
    both = [start("once", kind, tmp_path / "runs", log) for _ in range(2)]
    said = [process.communicate()[0] for process in both]
    assert [process.returncode for process in both] == [0, 0]
    assert said[0] == said[1] != ""
    lines = log.read_text().splitlines()
    assert len(lines) == len(set(lines)) == worker.N_BATCHES == worker.N_STEPS
    (run,) = Store(tmp_path / "runs").find()
    assert worker.contents(run.path) == undisturbed[kind]


# --- damage -------------------------------------------------------------------------------------------


def flip(path: Path, at: int) -> None:
    content = bytearray(path.read_bytes())
    content[at] ^= 1
    path.write_bytes(content)


def test_damaged_rows_are_set_aside_named_and_computed_again_from_the_damage_on(store):
    run = compute(store)
    sound = run.rows()
    flip(run.path / "rows.jsonl", 20)  # within the second batch
    with pytest.raises(KBookError, match=r"rows\.jsonl: missing or damaged"):
        run.rows()
    work = Counted()
    with pytest.warns(
        StoreWarning, match=r"rows\.jsonl: damaged at or after line 3; set aside as rows\.jsonl\.corrupt-0"
    ):
        mended = compute(store, work)
    assert work.asked == BATCHES[1:]
    assert mended.rows() == sound and mended.manifest.checksums == run.manifest.checksums
    assert (run.path / "rows.jsonl.corrupt-0").exists()


def test_damaged_file_of_a_model_is_set_aside_named_and_built_again(store):
    run = store.files(worker.MODEL, SPEC, worker.Work().build)
    flip(run.file("model.safetensors"), 1000)
    with pytest.raises(KBookError, match=r"model\.safetensors: missing or damaged"):
        run.file("model.safetensors")
    assert run.file("config.json").exists()
    with pytest.warns(StoreWarning, match=r"model\.safetensors: its checksum is wrong; set aside"):
        mended = store.files(worker.MODEL, SPEC, worker.Work().build)
    assert mended.manifest.checksums == run.manifest.checksums
    assert mended.file("model.safetensors").exists()


def test_lookup_does_not_return_a_damaged_run(store):
    run = compute(store)
    (run.path / "rows.jsonl").unlink()
    with pytest.warns(StoreWarning, match=r"rows\.jsonl: missing"):
        assert store.lookup(KEY, SPEC) is None
    assert store.find() == []


def test_damaged_manifest_costs_no_work(store):
    run = compute(store)
    flip(run.path / "manifest.json", 200)
    with pytest.warns(StoreWarning, match=r"manifest\.json: .*its run is left out"):
        assert store.find() == []
    work = Counted()
    with pytest.warns(StoreWarning, match=r"manifest\.json: .*set aside as manifest\.json\.corrupt-0"):
        again = compute(store, work)
    assert work.asked == [] and again.rows() == run.rows()


def test_sound_run_gives_no_warning(store):
    compute(store)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        compute(store)
        store.lookup(KEY, SPEC)
        store.find()


def test_truncated_record_names_file_and_line_even_with_the_right_checksum(store):
    run = compute(store)
    path = run.path / "rows.jsonl"
    path.write_bytes(path.read_bytes()[:-4])
    checksum = hashlib.sha256(path.read_bytes()).hexdigest()
    forged = replace(run, manifest=replace(run.manifest, checksums={"rows.jsonl": checksum}))
    with pytest.raises(KBookError, match=r"rows\.jsonl, line 6"):
        forged.rows()


def test_manifest_on_disk_is_json_that_others_can_read(store):
    run = compute(store)
    content = json.loads((run.path / "manifest.json").read_text())
    assert content["checksums"]["rows.jsonl"] == hashlib.sha256((run.path / "rows.jsonl").read_bytes()).hexdigest()
