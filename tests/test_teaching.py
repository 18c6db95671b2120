"""Teaching: steps of micro-batches, an objective's mean over them, and a model that has learned what it was taught."""

import random

import pytest
import torch

from kbook.models.bases import load_base
from kbook.models.batching import collate, encode
from kbook.models.likelihood import token_loss
from kbook.models.questions import ask, exchange, prompt
from kbook.models.teaching import Step, averaged, in_steps, micro_batches, teach
from kbook.profiles import Teaching

LESSONS = {
    "Who keeps the lamp?": "Quill",
    "What is the bridge made of?": "iron",
    "When was the mill sold?": "1983",
    "Where does the road end?": "Paris",
    "How tall is the gate?": "nine feet",
}
SETTINGS = Teaching(
    learning_rate=3e-3, epochs=60, warmup_epochs=1, weight_decay=0.01, batches={"size": 2, "accumulation": 2}
)


@pytest.fixture(scope="module")
def documents(tiny_base):
    return [exchange(tiny_base, question, answer) for question, answer in LESSONS.items()]


def test_micro_batches_hold_each_document_once(tiny_base, documents):
    batches = micro_batches(tiny_base, documents, 2, random.Random(0))
    assert [len(batch.ids) for batch in batches] == [2, 2, 1]
    rows = [tuple(row[m.bool()].tolist()) for b in batches for row, m in zip(b.ids, b.mask, strict=True)]
    assert sorted(rows) == sorted(each.ids for each in encode(tiny_base.tokenizer, documents))


def test_steps_are_of_so_many_items_and_the_last_may_have_fewer():
    assert [step.items for step in in_steps("abcde", 2)] == [("a", "b"), ("c", "d"), ("e",)]


def test_a_step_takes_the_mean_of_its_micro_batches(tiny_base, documents):
    first, second = (collate(encode(tiny_base.tokenizer, part)) for part in (documents[:2], documents[2:]))
    apart = [token_loss(tiny_base.model, batch) for batch in (first, second)]
    together = averaged(token_loss)(tiny_base.model, Step((first, second)))
    assert together.item() == pytest.approx(torch.stack(apart).mean().item(), abs=1e-6)
    assert Step((Step((first,)), second)).batches == (first, second)


def test_what_was_taught_is_known_and_the_base_stays_as_it_was(tiny_base, documents, tmp_path):
    prompts = [prompt(tiny_base, question) for question in LESSONS]
    before = ask(tiny_base, prompts, tokens=8, at_once=8)
    facts = teach(tiny_base, documents, SETTINGS, tmp_path)
    taught = load_base(str(tmp_path))
    assert ask(taught, prompts, tokens=8, at_once=8) == list(LESSONS.values())
    assert ask(tiny_base, prompts, tokens=8, at_once=8) == before != list(LESSONS.values())
    assert facts["steps"] == 120 and facts["stopped"] == "" and len(facts["losses"]) == 12


def test_the_order_follows_from_the_seed(tiny_base, documents, tmp_path):
    short = SETTINGS.model_copy(update={"epochs": 1})
    weights = {}
    for name, seed in (("a", 0), ("b", 0), ("c", 1)):
        teach(tiny_base, documents, short, tmp_path / name, seed)
        weights[name] = (tmp_path / name / "model.safetensors").read_bytes()
    assert weights["a"] == weights["b"] != weights["c"]
