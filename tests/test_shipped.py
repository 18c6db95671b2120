"""Packed runs answer the same question whatever the source text, keep their manifest, and are never read damaged."""

from dataclasses import replace

import pytest
import store_worker as worker

from kbook.digests import Spec, source_digests
from kbook.errors import KBookError
from kbook.keys import ModelKey
from kbook.shipped import SWITCH, Shipped, pack, shipped_results, sources_since
from kbook.store import Store

KEY, SPEC = worker.CELL, worker.SPEC
MODEL = ModelKey("kbench", "llama-tiny", "inject-full", 0)
OTHER_CODE = replace(SPEC, sources=("kbook.errors",))  # the same question, answered by other source text


def refuse(_):
    raise AssertionError("computed, though it was shipped")


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "mine", shipped=Shipped(()))


@pytest.fixture
def shipped(store, tmp_path):
    """One run of records and one model, packed."""
    rows = store.rows(KEY, SPEC, [[1, 2], [3]], lambda batch: [{"x": x} for x in batch], extra={"note": "kept"})
    model = store.files(MODEL, SPEC, lambda work: (work / "weights.txt").write_text("heavy") and {"loss": 0.5})
    packed = [(rows.manifest, (rows.path / "rows.jsonl").read_bytes()), (model.manifest, None)]
    pack(packed, tmp_path / "results.parquet")
    return Shipped([tmp_path / "results.parquet"])


@pytest.mark.parametrize("spec", [SPEC, OTHER_CODE])
def test_a_shipped_run_is_taken_instead_of_computed_whatever_the_source_text(shipped, tmp_path, spec):
    other = Store(tmp_path / "theirs", shipped=shipped)
    run = other.rows(KEY, spec, [[1, 2], [3]], refuse)
    assert run.rows() == [{"x": 1}, {"x": 2}, {"x": 3}]
    assert run.manifest.extra == {"note": "kept"} and run.digest == SPEC.digest
    assert other.find() and other.lookup(KEY, spec).path == run.path


@pytest.mark.parametrize(
    "changed",
    [
        replace(SPEC, parameters={"other": 1}),
        replace(SPEC, base="another"),
        replace(SPEC, inputs={"corpus": "another"}),
        replace(SPEC, made_from={"model": SPEC}),
    ],
)
def test_another_question_is_computed(shipped, tmp_path, changed):
    other = Store(tmp_path / "theirs", shipped=shipped)
    assert other.lookup(KEY, changed) is None
    assert other.rows(KEY, changed, [[7]], lambda batch: [{"x": x} for x in batch]).rows() == [{"x": 7}]


def test_a_run_computed_here_with_the_present_code_goes_before_a_shipped_one(shipped, tmp_path):
    here = Store(tmp_path / "theirs", shipped=Shipped(()))
    here.rows(KEY, OTHER_CODE, [[9]], lambda batch: [{"x": x} for x in batch])
    assert Store(here.root, shipped=shipped).lookup(KEY, OTHER_CODE).rows() == [{"x": 9}]


def test_of_a_model_only_the_account_is_shipped(shipped, tmp_path):
    other = Store(tmp_path / "theirs", shipped=shipped)
    assert other.lookup(MODEL, SPEC) is None
    account = other.account(MODEL, SPEC)
    assert account.manifest.extra == {"loss": 0.5}
    with pytest.raises(KBookError, match="missing or damaged"):
        account.file("weights.txt")
    built = other.files(MODEL, SPEC, lambda work: (work / "weights.txt").write_text("built") and {})
    assert built.file("weights.txt").read_text() == "built"


def test_a_run_made_from_a_run_has_its_digest_and_needs_it_not_to_be_there():
    made = Spec({"n": 1}, (), made_from={"model": SPEC})
    assert made.parts["inputs"] == {"model": SPEC.digest}
    changed = replace(made, made_from={"model": OTHER_CODE})
    assert changed.digest != made.digest and changed.question == made.question


def test_sources_that_changed_since_are_named(shipped):
    manifest = shipped.find(str(KEY), SPEC.question).manifest
    current = source_digests(SPEC.sources)
    assert sources_since(manifest, current) == []
    module = SPEC.sources[0]
    assert sources_since(manifest, {**current, module: "edited"}) == [module]


def test_a_file_that_is_no_pack_is_refused_by_name(tmp_path):
    (tmp_path / "bad.parquet").write_bytes(b"not parquet")
    with pytest.raises(KBookError, match=r"bad\.parquet.*compute anew"):
        Shipped([tmp_path / "bad.parquet"])


def test_a_run_without_its_question_is_not_packed(store, tmp_path):
    run = store.rows(KEY, SPEC, [[1]], lambda batch: [{"x": x} for x in batch])
    with pytest.raises(KBookError, match="compute it again"):
        pack([(replace(run.manifest, question=""), b"")], tmp_path / "results.parquet")
    assert not (tmp_path / "results.parquet").exists()


def test_shipped_results_can_be_switched_off(monkeypatch):
    monkeypatch.setenv(SWITCH, "off")
    assert len(shipped_results()) == 0
