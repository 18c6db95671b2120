"""What several tests share: a small base with random weights, people, and the passes that hooks see."""

import copy
import os
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

os.environ.setdefault("HF_HUB_OFFLINE", "1")  # before transformers is imported: a test asks no hub
os.environ.setdefault("KBOOK_SHIPPED", "off")  # a test computes what it looks at
os.environ.setdefault("KBOOK_WORKERS", "1")  # where its stand-ins are

import numpy as np
import pytest
import torch
from hypothesis import settings

from kbook import checkpoints
from kbook.corpora.documents import Pools, Writer
from kbook.corpora.people import Person
from kbook.methods.contract import FitContext
from kbook.models import embedding, tuning
from kbook.models.bases import Base, load_base
from kbook.models.decoding import Pass
from kbook.models.initialisation import initialise
from kbook.models.pretrain import Architecture, build_model
from kbook.models.tokenizer import train_tokenizer
from kbook.models.tuning import inject
from kbook.profiles import FullTuning

settings.register_profile("kbook", deadline=None)  # a busy machine makes no test fail
settings.load_profile("kbook")

SMALL = Architecture(width=64, layers=2, heads=2, key_value_heads=2, head=32, mlp=64, vocabulary=1024)
NO_SYSTEM_ROLE = (
    "{% for m in messages %}{% if m['role'] == 'system' %}{{ raise_exception('no system role') }}{% endif %}"
    "<turn>{{ m['role'] }}\n{{ m['content'] }}</turn>\n{% endfor %}<turn>model\n"
)


@pytest.fixture(scope="session")
def pools() -> Pools:
    return Pools.make(0, 500)


@pytest.fixture(scope="session")
def tiny_base(pools: Pools) -> Base:
    """An embedded-style base whose weights were never trained. Tests must not change its weights."""
    torch.set_num_threads(1)
    model = build_model(SMALL)
    initialise(model, 0)
    return Base("tiny", model.eval(), train_tokenizer(pools, SMALL.vocabulary, 0), "digest", "compact", "tests")


@pytest.fixture(scope="session")
def instructed_base(tiny_base: Base) -> Base:
    """The same model behind another chat template, which knows no system role."""
    tokenizer = copy.deepcopy(tiny_base.tokenizer)
    tokenizer.chat_template = NO_SYSTEM_ROLE
    return replace(tiny_base, name="other", tokenizer=tokenizer, style="instructed")


@pytest.fixture(scope="session")
def people(pools: Pools) -> list[Person]:
    """Twelve people of different names."""
    writer = Writer(pools, random.Random(0))
    found = {p.name: p for p in (writer.person() for _ in range(40))}
    return list(found.values())[:12]


@pytest.fixture(scope="session")
def injected_base(tiny_base: Base, people: list[Person], tmp_path_factory: pytest.TempPathFactory) -> Base:
    """The tiny base after it has learned a little about the first four people."""
    folder = tmp_path_factory.mktemp("injected")
    settings = FullTuning(learning_rate=3e-3, epochs=12, replay=0.0, batch_tokens=1024, warmup_steps=2)
    inject(tiny_base, people[:4], settings, 0, folder)
    return replace(load_base(str(folder)), style="compact")


@pytest.fixture
def fitting(injected_base: Base, people: list[Person], tmp_path: Path) -> FitContext:
    """Two people to forget and two to keep, all of whom the injected base knows a little."""
    return FitContext(injected_base, people[:2], people[2:4], people[:6], 0, tmp_path / "edited")


@pytest.fixture
def reading(tiny_base: Base) -> Callable[[Sequence[str], Sequence[Any]], tuple[Pass, torch.Tensor]]:
    """Texts and row names to the pass in which they are read from the start, and their padded embeddings."""

    def read(texts: Sequence[str], rows: Sequence[Any]) -> tuple[Pass, torch.Tensor]:
        encoded = tiny_base.tokenizer(list(texts), add_special_tokens=False, return_offsets_mapping=True)
        width = max(map(len, encoded["input_ids"]))
        ids = torch.tensor([row + [0] * (width - len(row)) for row in encoded["input_ids"]])
        step = Pass(True, list(rows), list(texts), encoded["offset_mapping"], [[] for _ in rows])
        return step, tiny_base.model.get_input_embeddings()(ids).detach()

    return read


class Letters:
    """A stand-in encoder."""

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        return np.array([[1.0, len(text)] for text in texts], "f4")


@dataclass
class StandIns:
    """What was asked of the stand-ins: folders that models were loaded from (None: the plain base), ids injected."""

    loads: list[Path | None] = field(default_factory=list)
    injections: list[list[str]] = field(default_factory=list)


@pytest.fixture
def stand_ins(tiny_base: Base, monkeypatch: pytest.MonkeyPatch) -> StandIns:
    """Every base is the tiny one, an injection writes down whom it was given, and passages are found by length."""
    seen = StandIns()

    def load(name: str, *, folder: Path | None = None, **_: Any) -> Base:
        seen.loads.append(folder)
        return tiny_base

    def note(base: Base, people: Any, settings: Any, seed: int, work: Path) -> dict[str, Any]:
        seen.injections.append([person.id for person in people])
        (work / "people.txt").write_text(" ".join(seen.injections[-1]))
        return {"loss": 0.0}

    monkeypatch.setattr(checkpoints, "load_base", load)
    monkeypatch.setattr(checkpoints, "base_digest", lambda name, revision=None: f"digest of {name}")
    monkeypatch.setattr(embedding, "load_encoder", lambda name: Letters())
    monkeypatch.setattr(tuning, "inject", note)
    return seen
