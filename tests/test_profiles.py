"""Profiles: whatever a file or a change gets wrong is refused, by name and with the remedy."""

import pytest
from pydantic import ValidationError

from kbook import profiles
from kbook.errors import KBookError
from kbook.keys import FIELDS
from kbook.methods.registry import METHODS
from kbook.profiles import load_profile, profile_names


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A data folder with one good profile, `own`, whose text a test may spoil."""
    (tmp_path / "profiles").mkdir()
    text = (profiles.data_folder() / "profiles" / "smoke.toml").read_text()
    (tmp_path / "profiles" / "own.toml").write_text(text)
    monkeypatch.setattr(profiles, "data_folder", lambda: tmp_path)
    return tmp_path / "profiles"


def spoil(folder, old, new):
    path = folder / "own.toml"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


def test_there_are_the_four_profiles():
    assert profile_names() == ["laptop", "paper", "small", "smoke"]


@pytest.mark.parametrize("name", ["laptop", "paper", "small", "smoke"])
def test_every_shipped_profile_is_valid_and_consistent(name):
    profile = load_profile(name)
    assert profile.name == name
    assert profile.cells.n <= len(FIELDS) * (profile.corpus.n_forget - profile.corpus.n_fit_forget)
    assert {base for base in profile.bases if "/" in base} == set(profile.revisions)
    assert profile.panel[0] == "none" and "none" not in profile.leaderboard
    assert {*profile.panel, *profile.leaderboard, *profile.methods, *profile.sweeps} <= set(METHODS)


def test_sizes_of_the_papers_setting():
    paper = load_profile("paper")
    assert (paper.corpus.n_forget, paper.corpus.n_retain) == (1000, 4000)
    assert (paper.cells.n, paper.cells.seeds) == (200, (0, 137, 271))
    assert (paper.lanes.context_bios, paper.lanes.top_k, paper.lanes.passage_chars) == (50, 5, 200)
    assert (paper.injection.lora.r, paper.injection.lora.alpha, paper.injection.lora.epochs) == (32, 64, 5)


def test_sizes_of_the_laptop():
    laptop = load_profile("laptop")
    assert (laptop.corpus.n_forget, laptop.corpus.n_retain) == (80, 160)
    assert (laptop.cells.n, len(laptop.cells.seeds), laptop.lanes.context_bios) == (100, 3, 6)


def test_profiles_cannot_be_changed_in_place():
    profile = load_profile("smoke")
    with pytest.raises(ValidationError):
        profile.cells.n = 3
    with pytest.raises(ValidationError):
        profile.cells = profile.cells


def test_with_changes_only_what_it_names():
    smoke = load_profile("smoke")
    changed = smoke.with_(cells={"n": 4}, device="cpu", injection={"lora": {"r": 2}}, methods={"eco": {"s": 5}})
    assert (changed.cells.n, changed.device, changed.injection.lora.r) == (4, "cpu", 2)
    assert changed.methods == {**smoke.methods, "eco": {"s": 5}}
    assert changed.cells.seeds == smoke.cells.seeds
    assert changed.injection.full == smoke.injection.full
    assert smoke.with_() == smoke


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"cells": {"n": "4"}}, r"cells\.n = '4': Input should be a valid integer"),
        ({"cells": {"n": True}}, r"cells\.n = True"),
        ({"cells": {"n": 0}}, r"cells\.n = 0: Input should be greater than or equal to 1"),
        ({"cells": {"n": 33}}, "cells.n is 33, but corpus leaves 32 queries about forget people"),
        ({"cells": {"seeds": []}}, r"cells\.seeds"),
        ({"cells": {"seeds": ["0"]}}, r"cells\.seeds\.0 = '0'"),
        ({"cells": {"seed": 0}}, r"unknown field 'cells\.seed'\. Did you mean cells\.seeds"),
        ({"cells": 3}, "cells = 3"),
        ({"cel": {}}, r"unknown field 'cel'\. Did you mean cells"),
        ({"corpus": {"n_fit_forget": 12}}, "0 queries about forget people"),
        ({"lanes": {"context_bios": 41}}, "context_bios is larger than corpus.n_distractors"),
        ({"injection": {"lora": {"rank": 8}}}, r"unknown field 'injection\.lora\.rank'"),
        ({"injection": {"recipe": "qlora"}}, "'full' or 'lora'"),
        ({"injection": {"full": {"learning_rate": 0}}}, "greater than 0"),
        ({"dtype": "float8"}, "'float32', 'bfloat16' or 'float16'"),
        ({"device": "gpu"}, "device = 'gpu'"),
        ({"bases": []}, "bases"),
        ({"sweeps": {"ga": {"learning_rate": []}}}, r"sweeps\.ga\.learning_rate"),
        ({"sweeps": {"ga": {"learning_rate": 1e-4}}}, r"sweeps\.ga\.learning_rate = 0.0001"),
        ({"sweeps": {"ga": [1e-4]}}, r"sweeps\.ga"),
    ],
    ids=str,
)
def test_bad_change_is_refused_by_field(change, message):
    with pytest.raises(KBookError, match=message):
        load_profile("smoke").with_(**change)


def test_a_grid_keeps_the_order_of_its_file_and_may_hold_lists():
    laptop = load_profile("laptop")
    assert list(laptop.sweeps["repe"]) == ["depths", "alpha"]
    assert laptop.sweeps["repe"]["depths"][0] == [0.25]


def test_several_faults_are_named_together():
    with pytest.raises(KBookError, match=r"(?s)cells\.n = 'a'.*dtype = 'b'|dtype = 'b'.*cells\.n = 'a'"):
        load_profile("smoke").with_(cells={"n": "a"}, dtype="b")


def test_unknown_profile_is_refused_with_its_neighbour_and_the_list():
    with pytest.raises(KBookError, match="Did you mean laptop.*Known: laptop, paper, small, smoke"):
        load_profile("lap-top")


@pytest.mark.parametrize("name", ["../secrets", "", "smoke.toml"])
def test_profile_is_a_name_not_a_path(name):
    with pytest.raises(KBookError, match="unknown profile"):
        load_profile(name)


def test_own_profile_needs_only_a_file(folder):
    assert load_profile("own").name == "own" and profile_names() == ["own"]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("\nn = 8", "\nn = ", r"own\.toml: is not TOML \(.*line \d+"),
        ("\nn = 8", '\nn = "8"', r"own\.toml: cells\.n = '8'"),
        ("top_k = 3", "topk = 3", r"own\.toml: .*unknown field 'lanes\.topk'. Did you mean lanes\.top_k"),
        ("[agent]", "[agents]", r"own\.toml: agent Field required"),
        ("device", "name = 'x'\ndevice", r"own\.toml: sets a name"),
    ],
    ids=["not TOML", "type", "misspelt field", "missing section", "name"],
)
def test_bad_file_is_refused_by_file_and_field(folder, old, new, message):
    spoil(folder, old, new)
    with pytest.raises(KBookError, match=message):
        load_profile("own")


def test_file_that_is_no_text_is_refused(folder):
    (folder / "own.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(KBookError, match=r"own\.toml: is not TOML"):
        load_profile("own")
