import json

import pytest
from transcript_factory import row, rows, write_cell

from kbook.errors import KBookError
from kbook.keys import CellKey, parse_official
from kbook.scoring.folder import score_folder
from kbook.scoring.sidecars import base_of, check_sidecar, model_of, partners, read_sidecar

LLAMA, QWEN = "meta-llama/Llama-3.1-8B-Instruct", "Qwen/Qwen3.5-9B"


def config(split="forget", seed=0, lane="P", **more):
    said = {"substrate": lane, "query_subset": split, "seed": seed, "n_sample": 4, "api_model": None}
    return said | {"model": LLAMA, "base_model": LLAMA} | more


def table(folder, **changed):
    """Four cells of one base; `changed` maps METHOD_SPLIT to what its sidecar says otherwise."""
    for method in ("none", "eco"):
        for split in ("forget", "retain"):
            told = config(split, **changed.get(f"{method}_{split}", {}))
            write_cell(folder, f"demo_P_{method}_{split}_seed0", rows(4, 2), told)
    return folder


def codes(folder):
    return {warning.code for warning in score_folder(folder).warnings("demo")}


def test_control_cells_of_one_base_are_scored_without_warning(tmp_path):
    assert codes(table(tmp_path)) == set()


@pytest.mark.parametrize("cell", ["none_forget", "none_retain", "eco_forget", "eco_retain"])
def test_cells_of_two_bases_are_never_compared(tmp_path, cell):
    table(tmp_path, **{cell: {"base_model": QWEN}})
    with pytest.raises(KBookError, match="comes from another base: .*Give the cells of each base a prefix"):
        score_folder(tmp_path)


def test_forget_and_retain_of_two_edited_models_are_refused_even_of_one_base(tmp_path):
    table(tmp_path, eco_forget={"model": "ckpt/1"}, eco_retain={"model": "ckpt/2"})
    with pytest.raises(KBookError, match="ckpt/1 and ckpt/2"):
        score_folder(tmp_path)


def test_control_an_edited_model_of_the_same_base_is_no_other_base(tmp_path):
    assert codes(table(tmp_path, eco_forget={"model": "ckpt"}, eco_retain={"model": "ckpt"})) == set()


def test_another_model_whose_base_nobody_names_is_warned_of_once(tmp_path):
    silent = {"base_model": None}
    edited = silent | {"model": "ckpt"}
    folder = table(tmp_path, none_forget=silent, none_retain=silent, eco_forget=edited, eco_retain=edited)
    found = [str(w) for w in score_folder(folder).warnings("demo") if w.code == "models_differ"]
    assert found == [
        f"demo P eco: its model is ckpt, that of the baseline {LLAMA}; no sidecar names the base of both",
    ]


def test_run_that_calls_itself_not_comparable_is_passed_on(tmp_path):
    assert codes(table(tmp_path, eco_forget={"comparable": False})) == {"not_comparable"}


@pytest.mark.parametrize("said", [{"substrate": "C"}, {"query_subset": "retain"}, {"seed": 137}])
def test_sidecar_of_another_cell_is_refused(tmp_path, said):
    path = write_cell(tmp_path, "demo_P_eco_forget_seed0", [row()], config(**{}) | said)
    with pytest.raises(KBookError, match="config.json: the sidecar says"):
        read_sidecar(path, parse_official(path.stem))


def test_both_spellings_of_a_lane_and_silence_are_no_contradiction():
    name = parse_official("demo_Rtext_eco_forget_seed0")
    for told in ({"substrate": "Rtext"}, {"substrate": "R-text"}, {}):
        check_sidecar(told, name, "here")


@pytest.mark.parametrize("content", [b"[]", b"{", b"\xff", b'{"seed": NaN}'])
def test_damaged_sidecar_is_an_error_by_name_not_a_missing_one(tmp_path, content):
    path = write_cell(tmp_path, "demo_P_eco_forget_seed0", [row()], {})
    path.with_name("demo_P_eco_forget_seed0.config.json").write_bytes(content)
    with pytest.raises(KBookError, match=r"demo_P_eco_forget_seed0\.config\.json: not a sidecar"):
        read_sidecar(path, parse_official(path.stem))


def test_model_behind_an_interface_is_its_own_base():
    told = {"api_model": "vendor/large", "model": "unused", "base_model": None}
    assert base_of(told) == model_of(told) == "vendor/large"
    assert base_of({"base_model": LLAMA, "base_digest": "0123456789"}) == f"{LLAMA} (01234567)"
    assert base_of(None) is None and base_of({"base_model": 7}) is None


def test_partners_are_retain_and_the_baseline_of_the_variant_or_the_plain_one():
    def key(method, split, variant=""):
        return CellKey("kbench", "demo", "P", method, split, 0, variant)

    cells = {key("none", "forget"): None, key("eco", "forget", "hot"): None, key("eco", "retain", "hot"): None}
    assert dict(partners(key("eco", "forget", "hot"), cells)) == {
        "retain": key("eco", "retain", "hot"),
        "baseline": key("none", "forget"),
    }
    assert list(partners(key("none", "forget"), cells)) == []


def test_sidecar_is_data_and_its_text_stays_inert(tmp_path):
    table(tmp_path, eco_forget={"base_model": "<script>\x1b[31m\u202e"})
    with pytest.raises(KBookError) as error:
        score_folder(tmp_path)
    assert "\x1b" not in str(error.value) and "\u202e" not in str(error.value)
    assert json.loads((tmp_path / "demo_P_eco_forget_seed0.config.json").read_text())["base_model"].startswith("<")
