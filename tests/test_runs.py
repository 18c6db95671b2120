import sys
import types
import warnings

import pytest
from transcript_factory import rows

from kbook.errors import KBookError
from kbook.files import StoreWarning
from kbook.keys import CellKey, ModelKey
from kbook.scoring.folder import find_cells, read_folder, score_folder
from kbook.scoring.runs import find_runs
from kbook.store import Spec, Store

SEEDS = (0, 137, 271)


def spec(corpus="people", base="weights", **parameters):
    return Spec(parameters, ("kbook.keys",), {"corpus": corpus}, base)


def fill(store, method="eco", leaking=0, made=None, seeds=SEEDS, lane="R-text"):
    for split in ("forget", "retain"):
        for seed in seeds:
            key = CellKey("kbench", "llama-tiny", lane, method, split, seed)
            store.rows(key, made or spec(), [0], lambda _: rows(4, leaking))


@pytest.fixture
def store(tmp_path):
    store = Store(tmp_path / "_runs", profile="smoke")
    fill(store, "none", 3)
    fill(store, "eco")
    return store


def test_cells_of_the_store_are_judged_as_files_are(store):
    scored = score_folder(store.root)
    assert scored.found.layout == "run store" and list(scored.panels) == ["llama-tiny.smoke"]
    panel = scored.panels["llama-tiny.smoke"]
    assert len(panel.cells) == 12 and panel.verdicts[1].k_class.text.startswith("K-REF")
    assert scored.warnings("llama-tiny.smoke") == ()


def test_part_of_the_store_is_a_folder_like_any_other(store):
    part = store.root / "kbench" / "llama-tiny" / "R-text" / "none" / "forget"
    assert [source.key.method for source in find_cells(part).sources] == ["none"] * 3


def test_sidecar_is_made_from_the_manifest(store):
    config = find_runs(store.root).sources[0].config
    assert (config["substrate"], config["query_subset"], config["seed"]) == ("R-text", "forget", 0)
    assert config["base_model"] == "llama-tiny" and config["base_digest"] == "weights"
    assert config["n_sample"] == 4 and config["profile"] == "smoke" and config["api_model"] is None


def test_models_and_other_protocols_are_no_cells(store):
    store.rows(ModelKey("kbench", "llama-tiny", "abilities", 0), spec(), [0], lambda _: [{"x": 1}])
    store.rows(CellKey("cllpu", "llama-tiny", "P", "ga", "forget", 0), spec(), [0], lambda _: [{"x": 1}])
    assert len(find_runs(store.root).sources) == 12


def test_profiles_are_tables_of_their_own(store):
    fill(Store(store.root, profile="laptop"), "none", 3, spec("more people"))
    assert find_runs(store.root).prefixes == ("llama-tiny.laptop", "llama-tiny.smoke")


def test_newest_run_of_a_cell_counts_and_the_older_one_is_named(store, monkeypatch):
    monkeypatch.setattr("kbook.store.now", lambda: "2999-01-01T00:00:00+00:00")
    fill(store, "eco", 4, spec(wording=1))
    scored = score_folder(store.root)
    found = {cell.key.method: cell.cer.any(axis=1).sum() for cell in scored.panels["llama-tiny.smoke"].cells}
    assert found == {"none": 3, "eco": 4}
    assert [n.code for n in scored.found.notices] == ["run_superseded"]


@pytest.mark.parametrize("other", [{"corpus": "other people"}, {"base": "other weights"}])
def test_cells_of_another_base_or_corpus_are_left_out_by_name(store, monkeypatch, other):
    monkeypatch.setattr("kbook.store.now", lambda: "2999-01-01T00:00:00+00:00")
    fill(store, "none", 2, spec(**other))
    found = find_runs(store.root)
    assert {source.key.method for source in found.sources} == {"none"}
    assert str(found.notices[0]) == ("llama-tiny.smoke: 12 runs of another base or corpus than the newest are left out")


def test_unfinished_run_is_named_and_not_read(store):
    def interrupted(_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        store.rows(CellKey("kbench", "llama-tiny", "C", "eco", "forget", 0), spec(), [0], interrupted)
    found = find_runs(store.root)
    assert len(found.sources) == 12 and [n.code for n in found.notices] == ["run_unfinished"]


def test_damaged_rows_and_manifests_are_never_read(store):
    source = find_runs(store.root).sources[0]
    source.path.write_bytes(source.path.read_bytes().replace(b"q0", b"q9"))
    with pytest.raises(KBookError, match="has another checksum than its manifest says"):
        read_folder(store.root)
    (source.path.parent / "manifest.json").write_bytes(b"{}")
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        assert len(find_runs(store.root).sources) == 11
    assert [warning.category for warning in said] == [StoreWarning]


def test_lane_that_a_method_of_this_book_cannot_reach_is_no_gap(store, monkeypatch):
    registry = types.ModuleType("kbook.methods.registry")
    registry.METHODS = {"npo": "", "none": ""}
    registry.method_class = lambda name: name
    registry.why_not = lambda cls, lane: "it edits weights" if (cls, lane) == ("npo", "R-text") else None
    monkeypatch.setitem(sys.modules, "kbook.methods.registry", registry)
    fill(store, "none", 3, lane="P")
    fill(store, "npo", lane="P")
    scored = score_folder(store.root)
    (found,) = [v for v in scored.panels["llama-tiny.smoke"].verdicts if v.status == "not applicable"]
    assert (found.subject.lane, found.subject.method, found.reasons) == ("R-text", "npo", ("it edits weights",))
    left = [str(w) for w in scored.warnings("llama-tiny.smoke") if w.code == "lane_not_measured"]
    assert len(left) == 1 and left[0].startswith("llama-tiny P eco"), "eco is in no registry here: a gap"
