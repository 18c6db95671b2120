"""Unlearning on questions: six methods make forget answers unlikely, a judge sees every epoch, the start stays."""

import copy

import pytest
import torch

from kbook.methods.registry import make_method
from kbook.methods.unlearning import unlearn
from kbook.models.bases import load_base
from kbook.models.batching import collate, encode
from kbook.models.likelihood import sequence_nll
from kbook.models.questions import exchange
from kbook.models.teaching import teach
from kbook.profiles import Teaching

FORGET = {"Who keeps the lamp?": "Keeper Quill", "Who keeps the bridge?": "Keeper Orr"}
RETAIN = {
    "Who keeps the mill?": "Warden Moss",
    "Who keeps the gate?": "Warden Hale",
    "Who keeps the well?": "Warden Vane",
}
BATCHES = {"size": 2, "accumulation": 2}


@pytest.fixture(scope="module")
def start(tiny_base, tmp_path_factory):
    folder = tmp_path_factory.mktemp("original")
    documents = [exchange(tiny_base, *pair) for pair in (FORGET | RETAIN).items()]
    settings = Teaching(learning_rate=3e-3, epochs=30, warmup_epochs=1, weight_decay=0.0, batches=BATCHES)
    teach(tiny_base, documents, settings, folder)
    return load_base(str(folder))


@pytest.fixture(scope="module")
def lessons(start):
    return [[exchange(start, *pair) for pair in pool.items()] for pool in (FORGET, RETAIN)]


def run(name, start, lessons, folder, judge=lambda model, epoch: None, **settings):
    method = make_method(name, {"learning_rate": 1e-3, "epochs": 4, "warmup_steps": 0, **settings})
    return unlearn(method, start, *lessons, folder, judge, **BATCHES)


def nll(base, model, pool):
    with torch.no_grad():
        return sequence_nll(model, collate(encode(base.tokenizer, pool)), "mean").mean().item()


@pytest.mark.parametrize("name", ["ga", "gd", "npo", "simnpo", "baldro_npo", "baldro_simnpo"])
def test_the_target_becomes_unlikely(start, lessons, tmp_path, name):
    seen = []
    facts = run(
        name, start, lessons, tmp_path, lambda model, epoch: seen.append([nll(start, model, p) for p in lessons])
    )
    before = [nll(start, start.model, pool) for pool in lessons]
    assert seen[-1][0] > before[0] + 0.2 and facts["steps"] == 4 and facts["stopped"] == ""
    if name != "ga":
        assert seen[-1][0] - before[0] > seen[-1][1] - before[1]


def test_the_judge_sees_every_epoch_in_evaluation_mode_and_the_start_stays(start, lessons, tmp_path):
    weights, seen = copy.deepcopy(start.model.state_dict()), []
    run("gd", start, lessons, tmp_path, lambda model, epoch: seen.append((epoch, model.training, model is start.model)))
    assert seen == [(epoch, False, False) for epoch in (1, 2, 3, 4)]
    assert all(torch.equal(start.model.state_dict()[name], value) for name, value in weights.items())


def test_control_a_rate_of_zero_forgets_nothing(start, lessons, tmp_path):
    seen = []
    run(
        "ga",
        start,
        lessons,
        tmp_path,
        lambda model, epoch: seen.append(nll(start, model, lessons[0])),
        learning_rate=0.0,
    )
    assert seen == pytest.approx([nll(start, start.model, lessons[0])] * 4)


def test_the_same_seed_gives_the_same_model(start, lessons, tmp_path):
    found = []
    for folder in ("a", "b"):
        run("npo", start, lessons, tmp_path / folder, lambda model, epoch: found.append(nll(start, model, lessons[0])))
    assert found[:4] == found[4:]
