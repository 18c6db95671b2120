"""Names: one string per key, read back exactly; everything else refused."""

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbook.errors import KBookError
from kbook.keys import (
    CHANNELS,
    LANES,
    OFFICIAL_CHANNELS,
    SPLITS,
    ArtifactKey,
    CellKey,
    DataKey,
    ModelKey,
    OfficialName,
    base_segment,
    check_name,
    parse_key,
    parse_official,
)

CELL = CellKey("kbench", "llama-tiny", "R-text", "eco", "forget", 137)

segments = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,20}", fullmatch=True)
seeds = st.integers(0, 10**18 - 1)
variants = st.just("") | segments
cells = st.builds(CellKey, segments, segments, segments, segments, segments, seeds, variants)
models = st.builds(ModelKey, segments, segments, segments, seeds, variants)
data = st.builds(DataKey, segments, segments, seeds, variants)


def test_string_folder_and_row_label_are_one():
    assert str(CELL) == "kbench/llama-tiny/R-text/eco/forget/seed=137"
    assert CELL.path == Path("kbench/llama-tiny/R-text/eco/forget/seed=137")
    assert str(replace(CELL, variant="paraphrase")) == f"{CELL}/variant=paraphrase"


def test_model_string():
    key = ModelKey("kbench", "llama-tiny", "inject-full", 0)
    assert str(key) == "kbench/llama-tiny/model=inject-full/seed=0"


@given(cells)
def test_cell_key_round_trip(key):
    assert CellKey.parse(str(key)) == key == parse_key(str(key))
    assert Path(str(key)) == key.path and not key.path.is_absolute() and ".." not in key.path.parts


@given(models)
def test_model_key_round_trip(key):
    assert ModelKey.parse(str(key)) == key == parse_key(str(key))


@given(data)
def test_data_key_round_trip(key):
    assert DataKey.parse(str(key)) == key == parse_key(str(key))
    assert Path(str(key)) == key.path and not key.path.is_absolute() and ".." not in key.path.parts


@given(cells, cells)
def test_different_keys_have_different_strings(a, b):
    assert (a == b) == (str(a) == str(b))


@given(st.text(max_size=60))
def test_any_other_text_is_refused_or_is_the_string_of_what_it_parses_to(text):
    try:
        key = parse_key(text)
    except KBookError:
        return
    assert str(key) == text


@pytest.mark.parametrize(
    "text",
    [
        "",
        "kbench",
        "kbench/llama-tiny/R-text/eco/forget",
        "kbench/llama-tiny/R-text/eco/forget/seed=",
        "kbench/llama-tiny/R-text/eco/forget/seed=007",
        "kbench/llama-tiny/R-text/eco/forget/seed=-1",
        "kbench/llama-tiny/R-text/eco/forget/seed=1/variant=",
        "kbench/llama-tiny/R-text/eco/forget/seed=1/variant=a/b",
        "kbench/llama-tiny/R-text/eco/forget/seed=1/",
        "kbench//R-text/eco/forget/seed=1",
        "/kbench/llama-tiny/R-text/eco/forget/seed=1",
        "kbench/../R-text/eco/forget/seed=1",
        "kbench/llama-tiny/model=/seed=0",
        "kbench/llama-tiny/model=x",
        "cllpu/data=/seed=0",
        "cllpu/data=a",
        "cllpu/candidates/seed=0",
        "cllpu/a/data=b/seed=0",
    ],
)
def test_malformed_key_is_refused(text):
    with pytest.raises(KBookError):
        parse_key(text)


@pytest.mark.parametrize("bad", ["", "a/b", "a=b", "..", ".hidden", "a b", "é", "a\n", "x" * 101, None, 3])
@pytest.mark.parametrize("field", ["protocol", "base", "lane", "method", "split"])
def test_bad_segment_is_refused_and_named(field, bad):
    with pytest.raises(KBookError, match=field):
        replace(CELL, **{field: bad})


@pytest.mark.parametrize("seed", [-1, 1.0, "0", True, 10**18])
def test_bad_seed_is_refused(seed):
    with pytest.raises(KBookError, match="seed"):
        replace(CELL, seed=seed)


def test_keys_sort_by_protocol_base_lane_method_split_then_number():
    second, tenth = replace(CELL, seed=2), replace(CELL, seed=10)
    assert sorted([tenth, second, replace(CELL, method="cha")]) == [replace(CELL, method="cha"), second, tenth]


def test_every_channel_has_its_official_name():
    assert tuple(OFFICIAL_CHANNELS) == CHANNELS


official_text = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9-]{0,10}", fullmatch=True)
official_cells = st.builds(
    CellKey,
    st.just("kbench"),
    st.just("x"),
    st.sampled_from(LANES),
    official_text,
    st.sampled_from(SPLITS),
    seeds,
)


@given(official_text, official_cells)
def test_official_name_round_trip(prefix, key):
    assert parse_official(key.official_stem(prefix)).cell("kbench", "x") == key


@pytest.mark.parametrize(
    ("stem", "name"),
    [
        ("v77app_R-text_eco_forget_seed137", ("v77app", "R-text", "eco", "forget", 137)),
        ("v77app_Rtext_eco_forget_seed137", ("v77app", "R-text", "eco", "forget", 137)),
        ("v77app_Rstruct_mlp-probe_retain_seed0", ("v77app", "R-struct", "mlp-probe", "retain", 0)),
        ("my_app_P_star_full_forget_seed271", ("my_app", "P", "star_full", "forget", 271)),
        ("v77app_C_none_forget_retain_seed1", ("v77app", "C", "none_forget", "retain", 1)),
    ],
)
def test_official_names_are_read(stem, name):
    assert parse_official(stem) == OfficialName(*name)


@pytest.mark.parametrize(
    "stem",
    ["", "v77app_X_eco_forget_seed1", "v77app_P_forget_seed1", "v77app__eco_forget_seed1", "v77app_P_eco_forget"],
)
def test_other_file_names_are_refused_with_an_example(stem):
    with pytest.raises(KBookError, match="v77app_R-text_eco_forget_seed137"):
        parse_official(stem)


@pytest.mark.parametrize(
    ("prefix", "changes"),
    [("a_P", {}), ("", {}), ("a", {"variant": "v"}), ("a", {"lane": "P+C"}), ("a", {"split": "holdout"})],
    ids=["prefix looks like a lane", "no prefix", "variant", "lane unknown there", "split unknown there"],
)
def test_official_name_that_would_not_lead_back_is_refused(prefix, changes):
    with pytest.raises(KBookError, match="lead back"):
        replace(CELL, **changes).official_stem(prefix)


@given(
    st.sampled_from(["fig", "tab"]),
    st.from_regex(r"[a-z0-9_]{1,12}", fullmatch=True),
    st.from_regex(r"[a-z0-9]{1,5}(-[a-z0-9]{1,5}){0,3}", fullmatch=True),
)
def test_artifact_key_round_trip(kind, chapter, slug):
    key = ArtifactKey(kind, chapter, slug)
    assert ArtifactKey.parse(str(key)) == key


@pytest.mark.parametrize("text", ["", "fig-a", "img-a-b", "fig-A-b", "fig-a-b--c", "fig-a b-c", "fig-a-b-"])
def test_malformed_artifact_key_is_refused(text):
    with pytest.raises(KBookError):
        ArtifactKey.parse(text)


@pytest.mark.parametrize(
    ("name", "segment"),
    [
        ("llama-tiny", "llama-tiny"),
        ("meta-llama/Llama-3.1-8B-Instruct", "Llama-3.1-8B-Instruct"),
        ("/models/mistral/", "mistral"),
    ],
)
def test_base_segment_is_the_last_component(name, segment):
    assert base_segment(name) == segment


def test_check_name_passes_a_known_name_and_refuses_another():
    assert check_name("lane", "R-text", LANES) == "R-text"
    with pytest.raises(KBookError, match="Did you mean R-text"):
        check_name("lane", "Rtext", LANES)
