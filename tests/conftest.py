"""What several tests share: a small base with random weights, people, and the passes that hooks see."""

import copy
import os
import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

os.environ.setdefault("HF_HUB_OFFLINE", "1")  # before transformers is imported: a test asks no hub

import pytest
import torch
from hypothesis import settings

from kbook.corpora.documents import Pools, Writer
from kbook.corpora.people import Person
from kbook.models.bases import Base
from kbook.models.decoding import Pass
from kbook.models.initialisation import initialise
from kbook.models.pretrain import Architecture, build_model
from kbook.models.tokenizer import train_tokenizer

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
