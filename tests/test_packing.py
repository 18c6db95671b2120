import hashlib
import json
from pathlib import Path

import pytest
from test_runs import fill, spec
from transcript_factory import golden_files, rows, write_cell

from kbook.errors import KBookError
from kbook.scoring.folder import find_cells, score_folder
from kbook.scoring.packing import write_bundle
from kbook.store import Store


@pytest.fixture
def cells(tmp_path):
    folder = tmp_path / "cells"
    folder.mkdir()
    for method in ("none", "eco"):
        for split in ("forget", "retain"):
            config = {"substrate": "P", "query_subset": split, "seed": 0, "n_sample": 4, "api_model": None}
            stem = f"demo_P_{method}_{split}_seed0"
            write_cell(folder, stem, rows(4, 2), config | {"model": f"m-{method}", "base_model": "m"})
    return folder


def manifest(bundle):
    return json.loads((bundle / "bundle.json").read_text())


def everything(folder):
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_bundle_holds_the_rows_to_the_byte_and_scores_as_its_source(cells, tmp_path):
    made = write_bundle(cells, tmp_path / "b")
    assert made.n_cells == 4 and made.notices == ()
    name = "demo_P_eco_forget_seed0.jsonl"
    assert (tmp_path / "b" / "cells" / name).read_bytes() == (cells / name).read_bytes()
    first, second = score_folder(cells), score_folder(tmp_path / "b")
    assert second.found.layout == "bundle" and second.warnings("demo") == first.warnings("demo") == ()
    assert [v.reasons for v in first.panels["demo"].verdicts] == [v.reasons for v in second.panels["demo"].verdicts]


def test_manifest_answers_for_every_file(cells, tmp_path):
    write_bundle(cells, tmp_path / "b")
    files = {str(path): content for path, content in everything(tmp_path / "b").items() if path.name != "bundle.json"}
    assert len(files) == 8
    assert {name: entry["sha256"] for name, entry in manifest(tmp_path / "b")["files"].items()} == {
        name: hashlib.sha256(content).hexdigest() for name, content in files.items()
    }


def test_pairings_name_retain_and_both_references(cells, tmp_path):
    write_bundle(cells, tmp_path / "b")
    (pairing,) = manifest(tmp_path / "b")["pairings"]
    assert (pairing["model"], pairing["base_model"]) == ("m-eco", "m")
    assert {role: pairing[role] for role in ("forget", "retain", "reference_forget", "reference_retain")} == {
        "forget": "cells/demo_P_eco_forget_seed0.jsonl",
        "retain": "cells/demo_P_eco_retain_seed0.jsonl",
        "reference_forget": "cells/demo_P_none_forget_seed0.jsonl",
        "reference_retain": "cells/demo_P_none_retain_seed0.jsonl",
    }


@pytest.mark.parametrize(
    ("gone", "lack"),
    [
        ("eco_retain", "retain cell"),
        ("none_forget", "reference forget cell"),
        ("none_retain", "reference retain cell"),
    ],
)
def test_missing_partner_is_named_when_packed_and_when_opened(cells, tmp_path, gone, lack):
    (cells / f"demo_P_{gone}_seed0.jsonl").unlink()
    made = write_bundle(cells, tmp_path / "b")
    for notices in (made.notices, find_cells(tmp_path / "b").notices):
        assert [n.code for n in notices] == ["pairing_missing"] and f"lacks its {lack}" in str(notices[0])


def test_cell_without_a_sidecar_is_packed_and_named(cells, tmp_path):
    (cells / "demo_P_eco_forget_seed0.config.json").unlink()
    made = write_bundle(cells, tmp_path / "b")
    assert [n.code for n in made.notices] == ["sidecar_missing"]
    entry = next(e for e in manifest(tmp_path / "b")["cells"] if e["sidecar"] is None)
    assert entry["file"] == "cells/demo_P_eco_forget_seed0.jsonl" and entry["base_model"] is None
    assert "sidecar_missing" in {w.code for w in score_folder(tmp_path / "b").warnings("demo")}


def test_forget_and_retain_of_different_bases_make_no_bundle(cells, tmp_path):
    path = cells / "demo_P_eco_retain_seed0.config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"base_model": "other"}))
    with pytest.raises(KBookError, match="comes from another base"):
        write_bundle(cells, tmp_path / "b")
    assert not (tmp_path / "b").exists()


def test_old_spelling_of_a_lane_is_written_in_the_new_one(tmp_path):
    write_cell(tmp_path, "demo_Rtext_none_forget_seed0", rows(2))
    write_bundle(tmp_path, tmp_path / "b")
    assert (tmp_path / "b" / "cells" / "demo_R-text_none_forget_seed0.jsonl").is_file()


def test_what_does_not_apply_travels_with_the_bundle(cells, tmp_path):
    stated = [{"lane": "C", "method": "eco", "reason": "why"}]
    (cells / "not_applicable.json").write_text(json.dumps(stated))
    write_bundle(cells, tmp_path / "b")
    assert manifest(tmp_path / "b")["not_applicable"] == {"demo": stated}
    assert find_cells(tmp_path / "b").not_applicable == {"demo": {("C", "eco"): "why"}}


def test_run_store_becomes_a_bundle_with_its_provenance(tmp_path):
    store = Store(tmp_path / "_runs", profile="smoke")
    fill(store, "none", 3)
    fill(store, "eco", made=spec(sigma=2))
    write_bundle(store.root, tmp_path / "b")
    found = find_cells(tmp_path / "b")
    assert found.prefixes == ("llama-tiny.smoke",) and str(found.sources[0].key).startswith("kbench/llama-tiny/R-text")
    config = next(source.config for source in found.sources if source.key.method == "eco")
    assert config["parameters"] == {"sigma": 2} and config["base_digest"] == "weights"
    assert score_folder(tmp_path / "b").warnings("llama-tiny.smoke") == ()


def test_variants_keep_their_whole_key(tmp_path):
    store = Store(tmp_path / "_runs", profile="smoke")
    from kbook.keys import CellKey

    for variant in ("", "hot"):
        key = CellKey("kbench", "llama-tiny", "C", "none", "forget", 0, variant)
        store.rows(key, spec(), [0], lambda _: rows(2))
    write_bundle(store.root, tmp_path / "b")
    assert [source.key.variant for source in find_cells(tmp_path / "b").sources] == ["", "hot"]
    assert (tmp_path / "b" / "cells" / "llama-tiny.smoke.hot_C_none_forget_seed0.jsonl").is_file()


def test_bundle_of_a_bundle_is_the_same_bundle(cells, tmp_path):
    write_bundle(cells, tmp_path / "a")
    write_bundle(tmp_path / "a", tmp_path / "b")
    first, second = (manifest(tmp_path / name) for name in "ab")
    assert first["files"] == second["files"] and first["cells"] == second["cells"]


def test_bundle_takes_the_place_of_a_bundle(cells, tmp_path):
    write_bundle(cells, tmp_path / "b")
    (cells / "demo_P_eco_retain_seed0.jsonl").unlink()
    assert write_bundle(cells, tmp_path / "b").n_cells == 3
    assert len(list((tmp_path / "b" / "cells").glob("*.jsonl"))) == 3
    assert sorted(path.name for path in tmp_path.iterdir()) == ["b", "cells"]


def test_folder_of_other_things_is_left_alone(cells, tmp_path):
    before = everything(cells)
    with pytest.raises(KBookError, match="is not empty, and holds something else than a bundle"):
        write_bundle(cells, cells)
    assert everything(cells) == before


def test_bundle_with_a_file_of_somebody_else_is_left_alone(cells, tmp_path):
    write_bundle(cells, tmp_path / "b")
    (tmp_path / "b" / "notes.txt").write_text("mine")
    before = everything(tmp_path / "b")
    with pytest.raises(KBookError, match="something else than a bundle"):
        write_bundle(cells, tmp_path / "b")
    assert everything(tmp_path / "b") == before


@pytest.mark.parametrize("kind", ["file", "link"])
def test_file_or_link_is_no_place_for_a_bundle(cells, tmp_path, kind):
    out = tmp_path / "b"
    if kind == "file":
        out.write_text("x")
    else:
        (tmp_path / "elsewhere").mkdir()
        out.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(KBookError, match="exists and is no folder"):
        write_bundle(cells, out)


def test_empty_folder_is_a_place_for_a_bundle(cells, tmp_path):
    (tmp_path / "b").mkdir()
    assert write_bundle(cells, tmp_path / "b").n_cells == 4


def test_failure_half_way_leaves_what_was_there_and_no_rubbish(cells, tmp_path):
    write_bundle(cells, tmp_path / "b")
    before = everything(tmp_path / "b")
    (cells / "demo_P_none_retain_seed0.jsonl").write_bytes(b"{")
    with pytest.raises(KBookError, match="line 1"):
        write_bundle(cells, tmp_path / "b")
    assert everything(tmp_path / "b") == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["b", "cells"]


def test_conformance_cells_make_a_bundle_that_scores_alike(tmp_path):
    folder = tmp_path / "cells"
    folder.mkdir()
    for name, entries in golden_files().items():
        write_cell(folder, Path(name).stem, entries)
    write_bundle(folder, tmp_path / "b")
    first, second = (score_folder(place).panels["v77app"] for place in (folder, tmp_path / "b"))
    assert [test.p_adj for test in first.tests] == [test.p_adj for test in second.tests]
