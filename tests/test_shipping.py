"""Shipping: the runs of one profile, made by the present source text, and a book that finds them again."""

from dataclasses import replace

import pytest
import store_worker as worker

from kbook import shipping
from kbook.cli import main
from kbook.digests import source_digests
from kbook.errors import KBookError
from kbook.keys import CellKey, ModelKey
from kbook.shipped import Shipped
from kbook.shipping import changed_sources, ship
from kbook.store import Spec, Store

KEY, SPEC = worker.CELL, worker.SPEC
OTHER = replace(KEY, base="qwen-tiny")
MODEL = ModelKey("kbench", "llama-tiny", "inject-full", 0)
CODE = "kbook.errors"


def rows(store: Store, key: CellKey = KEY, spec: Spec = SPEC, x: int = 1):
    return store.rows(key, spec, [[x]], lambda batch: [{"x": x} for x in batch])


@pytest.fixture
def store(tmp_path) -> Store:
    return Store(tmp_path / "runs", "smoke", Shipped(()))


def test_what_is_shipped_is_found_again_in_an_empty_store(store, tmp_path):
    rows(store)
    rows(store, OTHER, x=2)
    store.files(MODEL, SPEC, lambda work: (work / "w.txt").write_text("x" * 1000) and {"loss": 1.0})
    sizes = ship(store, "smoke", tmp_path / "results")
    assert [path.name for path in sizes] == ["smoke.kbench.llama-tiny.parquet", "smoke.kbench.qwen-tiny.parquet"]
    assert all(path.stat().st_size == size for path, size in sizes.items())
    empty = Store(tmp_path / "empty", "smoke", Shipped(sizes))
    assert empty.lookup(KEY, SPEC).rows() == [{"x": 1}] and empty.lookup(OTHER, SPEC).rows() == [{"x": 2}]
    assert empty.account(MODEL, SPEC).manifest.extra == {"loss": 1.0}


def test_runs_of_other_profiles_and_of_former_source_text_stay_at_home(store, tmp_path, monkeypatch):
    rows(store)
    rows(Store(store.root, "laptop", Shipped(())), OTHER)
    edited = rows(store, replace(KEY, seed=7), replace(SPEC, sources=(CODE,)))
    assert changed_sources(edited.manifest) == []
    now = source_digests([CODE])
    monkeypatch.setattr(shipping, "source_digests", lambda *_, **__: {**now, CODE: "edited", "kbook.keys": "edited"})
    assert changed_sources(edited.manifest) == [CODE]
    with pytest.raises(KBookError, match="no run of profile smoke"):
        ship(store, "smoke", tmp_path / "results")


def test_of_two_answers_to_one_question_the_newest_is_shipped(store, tmp_path, monkeypatch):
    rows(store, x=1)
    newest = rows(store, spec=replace(SPEC, sources=(CODE,)), x=2)
    changed = replace(newest.manifest, ended="2999-01-01T00:00:00+00:00")
    monkeypatch.setattr(shipping.Store, "find", lambda self: [rows(store), replace(newest, manifest=changed)])
    (path,) = ship(store, "smoke", tmp_path / "results")
    assert Store(tmp_path / "empty", shipped=Shipped([path])).lookup(KEY, SPEC).rows() == [{"x": 2}]


def test_too_much_to_ship_is_refused(store, tmp_path, monkeypatch):
    rows(store)
    monkeypatch.setattr(shipping, "LIMIT_BYTES", 10)
    with pytest.raises(KBookError, match="more than"):
        ship(store, "smoke", tmp_path / "results")


def test_the_command_with_nothing_to_ship_says_what_to_do(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("KBOOK_STORE", str(tmp_path))
    assert main(["ship", "--profile", "smoke"]) == 2
    assert "kbook book --fresh --profile smoke" in capsys.readouterr().err
