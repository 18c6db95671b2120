"""The card of an embedded base says what made it and what it can do, and its digest guards the files."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kbook.agent import card
from kbook.models import bases
from kbook.models.ability import Ability
from kbook.models.bases import Base, load_base, read_card

ABILITIES = [
    Ability("record lookup", 8, 1.0, 1.0, 1.0, {"answer": 0.98}),
    Ability("no tools", 8, 1.0, None, 0.5, {"answer": 0.95}),
]
PROGRESS = {"step": 9, "tokens": 700, "supervised": 300, "seconds": 90.0, "losses": [[n, 1.0] for n in range(200)]}


@pytest.fixture
def trained(tmp_path: Path, tiny_base: Base, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A finished training folder, and an empty data folder to install it into."""
    monkeypatch.setattr(bases, "data_folder", lambda: tmp_path / "data")
    monkeypatch.setattr(card, "measure", lambda base: ABILITIES)
    folder = tmp_path / "work" / "model"
    tiny_base.model.save_pretrained(folder)
    tiny_base.tokenizer.save_pretrained(folder)
    (folder / "training.json").write_text(json.dumps({"progress": PROGRESS}))
    return folder


def test_an_installed_base_loads_and_its_card_tells_all(trained: Path, tiny_base: Base) -> None:
    assert card.install("llama-tiny", trained) == ABILITIES
    told = read_card("llama-tiny")
    assert load_base("llama-tiny").digest == told["digest"]
    assert told["style"] == load_base("llama-tiny").style == "compact"
    assert told["parameters"] == sum(p.numel() for p in tiny_base.model.parameters())
    training = told["training"]
    assert (training["steps"], training["tokens"], training["supervised_tokens"]) == (9, 700, 300)
    assert training["minutes"] == 1.5 and len(training["losses"]) <= 70
    assert [(a["task"], a["passed"]) for a in told["abilities"]] == [("record lookup", True), ("no tools", False)]
    assert told["recipe"]["architecture"]["family"] == "llama"


def test_only_model_files_are_installed(trained: Path) -> None:
    card.install("llama-tiny", trained)
    names = {f.name for f in bases.base_folder("llama-tiny").iterdir()}
    assert "training.json" not in names
    assert {"card.json", "config.json", "model.safetensors", "tokenizer.json"} <= names


def test_training_goes_on_in_the_store_and_ends_in_the_data_folder(trained: Path, monkeypatch: Any) -> None:
    asked: list[tuple[str, Path]] = []
    monkeypatch.setattr(card, "train_base", lambda name, work: asked.append((name, work)) or trained)
    monkeypatch.setattr(card, "store_folder", lambda: Path("/runs"))
    assert card.train_and_install("llama-tiny") == ABILITIES
    assert asked == [("llama-tiny", Path("/runs/training/llama-tiny"))]
    assert bases.embedded_bases() == ["llama-tiny"]


def test_a_base_is_checked_anew(trained: Path) -> None:
    card.install("llama-tiny", trained)
    assert card.check_base("llama-tiny") == ABILITIES


def test_a_base_is_measured_by_what_it_is_for(tiny_base: Base, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(card.abilities, "measure", lambda base: ["agent"])
    monkeypatch.setattr(card.recall, "measure", lambda base, library: ["recall", library.world.name])
    assert card.measure(tiny_base) == card.measure(replace(tiny_base, name="qwen-tiny")) == ["agent"]
    assert card.measure(replace(tiny_base, name="multi-tiny")) == ["recall", "almanac-3"]


def test_the_report_marks_what_was_missed() -> None:
    head, good, bad = card.report(ABILITIES).splitlines()
    assert head.split() == ["task", "n", "format", "calls", "answer"]
    assert good.split()[-3:] == ["1.000", "1.000", "1.000"] and "below" not in good
    assert bad.endswith("0.500  below what is required")
    (_, recall) = card.report([Ability("read: sw", 40, None, None, 0.25, {})]).splitlines()
    assert recall.split() == ["read:", "sw", "40", "0.250"]
