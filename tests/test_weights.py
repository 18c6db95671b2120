"""Methods that edit weights: what they learn from, what they remember, and what each does to forget and retain."""

import copy
from dataclasses import replace

import pytest
import torch

from kbook.errors import KBookError
from kbook.keys import LANES
from kbook.methods.contract import FitContext
from kbook.methods.registry import METHODS, make_method, method_class, why_not
from kbook.methods.weights import (
    LowRankMethod,
    TrainedMethod,
    WeightMethod,
    frozen,
    told_exchanges,
    written,
)
from kbook.models.bases import load_base

WEIGHTS = [n for n in METHODS if issubclass(method_class(n), WeightMethod) and method_class(n).family == "weights"]
TRAINED = [n for n in WEIGHTS if issubclass(method_class(n), TrainedMethod)]
QUICK = {"learning_rate": 5e-4, "epochs": 6, "warmup_steps": 1}

# name: settings, least rise of the forget NLL, largest rise of the retain NLL (nats per token)
CLAIMS = {
    "gd": ({**QUICK, "learning_rate": 1e-3, "epochs": 4}, 0.5, 0.2),
    "npo": (QUICK, 0.5, 0.2),
    "npo_kl": (QUICK, 0.5, 0.5),
    "dpo": ({**QUICK, "learning_rate": 1e-3, "epochs": 4}, 0.5, 0.2),
    "simnpo": ({**QUICK, "learning_rate": 1e-3}, 0.2, 0.0),
    "baldro_npo": (QUICK, 0.5, 0.2),
    "baldro_simnpo": ({**QUICK, "learning_rate": 1e-3}, 0.2, 0.0),
    "wga": ({**QUICK, "learning_rate": 1e-3}, 0.2, 0.0),
    "satimp": ({**QUICK, "learning_rate": 1e-3}, 0.1, 0.0),
    "idk": ({**QUICK, "learning_rate": 2e-3}, 0.5, 0.0),
    "llmu": ({**QUICK, "learning_rate": 1e-3, "epochs": 4}, 0.5, 0.3),
    "cha": ({**QUICK, "learning_rate": 2e-3}, 0.3, 0.0),
    "loku": ({**QUICK, "learning_rate": 2e-3}, 0.3, 0.0),
    "undial": ({**QUICK, "learning_rate": 3e-3, "alpha": 1.0}, 0.1, 0.0),
    "elm": ({**QUICK, "learning_rate": 3e-3, "epochs": 3, "new_tokens": 4}, 0.2, 0.4),
    "memflex": ({**QUICK, "learning_rate": 3e-3}, 0.3, 0.2),
    "soul": (QUICK, 0.3, 0.0),
    "rmu": ({**QUICK, "learning_rate": 5e-3}, 0.3, 0.3),
    "falcon": ({**QUICK, "learning_rate": 5e-2, "alpha": 100.0}, 0.2, 0.3),
}


@pytest.mark.parametrize("name", CLAIMS)
def test_forget_answers_become_unlikely_and_retain_answers_less_so(fitting, name):
    settings, rise, most = CLAIMS[name]
    facts = make_method(name, settings).edit(fitting)
    before, after = facts["nll"]["before"], facts["nll"]["after"]
    forget, retain = (after[pool] - before[pool] for pool in ("forget", "retain"))
    assert forget > rise and retain < most and forget > retain + 0.1
    assert facts["stopped"] == "" and facts["tokens"] > 0


@pytest.mark.parametrize("name", ["ga", "flat", "undial", "sku"])
def test_control_without_a_retain_term_both_become_unlikely(fitting, name):
    settings = {**QUICK, "learning_rate": 3e-3 if issubclass(method_class(name), LowRankMethod) else 1e-3}
    facts = make_method(name, settings).edit(fitting)
    assert all(facts["nll"]["after"][pool] > facts["nll"]["before"][pool] + 0.1 for pool in ("forget", "retain"))


@pytest.mark.parametrize("name", TRAINED)
def test_at_a_rate_of_zero_the_edited_model_is_the_start(fitting, name):
    start = copy.deepcopy(fitting.base.model.state_dict())
    short = {"new_tokens": 2} if name == "elm" else {}
    small = replace(fitting, fit_forget=fitting.fit_forget[:1], fit_retain=fitting.fit_retain[:1])
    facts = make_method(name, {"learning_rate": 0.0, "epochs": 1, "batch_tokens": 4096, **short}).edit(small)
    edited = load_base(str(small.work)).model.state_dict()
    exact = not issubclass(method_class(name), LowRankMethod)
    assert set(edited) == set(start)
    for key, value in edited.items():
        assert torch.equal(value, start[key]) if exact else torch.allclose(value, start[key], atol=1e-5), key
    assert facts["nll"]["before"]["forget"] == pytest.approx(facts["nll"]["after"]["forget"], abs=1e-3)
    assert all(torch.equal(v, start[k]) for k, v in fitting.base.model.state_dict().items())


@pytest.mark.parametrize("pool", ["forget", "retain"])
@pytest.mark.parametrize("name", WEIGHTS)
def test_an_empty_fitting_pool_is_refused_before_anything_runs(fitting, name, pool):
    empty = replace(fitting, **{f"fit_{pool}": ()})
    with pytest.raises(
        KBookError,
        match=rf"method {name}: too few people in the {pool} fitting pool: 0, where 1 are needed.*n_fit_{pool}",
    ):
        make_method(name).edit(empty)
    assert not fitting.work.exists()


@pytest.mark.parametrize("name", WEIGHTS)
def test_it_reaches_weights_alone_and_says_why(name):
    cls = method_class(name)
    assert why_not(cls, "P") is None
    assert all("weights" in why_not(cls, lane) for lane in set(LANES) - {"P"})


def test_an_edit_is_reproducible_and_reads_the_fitting_pools_alone(fitting, people, tmp_path):
    one = {**QUICK, "epochs": 1}
    others = {
        "again": fitting,
        "more on the list": replace(fitting, forget_list=people[:9]),
        "another seed": replace(fitting, seed=1),
        "another person": replace(fitting, fit_forget=[people[0], people[4]]),
    }
    make_method("npo", one).edit(fitting)
    digests = {"first": load_base(str(fitting.work)).digest}
    for name, context in others.items():
        make_method("npo", one).edit(replace(context, work=tmp_path / name))
        digests[name] = load_base(str(tmp_path / name)).digest
    assert digests["first"] == digests["again"] == digests["more on the list"] != fitting.base.digest
    assert len(set(digests.values())) == 3


def test_what_is_unlearned_is_what_injection_taught_without_the_biography(tiny_base, people):
    documents = written(tiny_base, told_exchanges(people[0]))
    texts = ["".join(s.text for s in d) for d in documents]
    assert len(texts) == 14
    assert not any(people[0].biography in t for t in texts)


def test_versions_of_a_document_stand_in_the_same_row(fitting):
    method = make_method("dpo", {"batch_tokens": 512})
    material = method.material(fitting)
    assert len(material.forget) > 1
    for answer, refusal in material.forget:
        for told, refused in zip(answer.ids, refusal.ids, strict=True):
            prompts = [fitting.base.tokenizer.decode(row)[:40] for row in (told, refused)]
            assert prompts[0] == prompts[1]


def test_every_forget_group_is_seen_once_an_epoch_with_a_retain_batch(fitting):
    method = make_method("gd", {"batch_tokens": 256})
    material = method.material(fitting)
    course = method.course(material, fitting.seed)
    for number in (0, 1):
        items = course.epoch(number)
        assert sorted(id(i.forget) for i in items) == sorted(id(group[0]) for group in material.forget)
        assert {id(i.retain) for i in items} <= {id(batch) for batch in material.retain}
    assert [id(i.forget) for i in course.epoch(0)] == [id(i.forget) for i in course.epoch(0)]
    assert [id(i.forget) for i in course.epoch(0)] != [id(i.forget) for i in course.epoch(1)]


def test_the_start_is_remembered_in_evaluation_mode_and_without_gradients(fitting, monkeypatch):
    seen = []
    cls = method_class("npo")

    def remember(self, start, group):
        seen.append((start.training, torch.is_grad_enabled()))

    monkeypatch.setattr(cls, "remember", remember)
    method = make_method("npo")
    fitting.base.model.train()
    try:
        method.course(method.material(fitting), fitting.seed)
        assert fitting.base.model.training
    finally:
        fitting.base.model.eval()
    assert seen and set(seen) == {(False, False)}


def test_frozen_restores_the_mode(tiny_base):
    model = copy.deepcopy(tiny_base.model).train()
    with frozen(model):
        assert not model.training and not torch.is_grad_enabled()
    assert model.training and torch.is_grad_enabled()


def test_a_run_that_goes_wrong_keeps_the_last_good_weights_and_says_so(fitting, monkeypatch):
    cls = method_class("ga")
    monkeypatch.setattr(cls, "loss", lambda self, model, item: torch.nan * model.lm_head.weight.sum())
    with pytest.warns(UserWarning, match="not finite"):
        facts = make_method("ga").edit(fitting)
    assert "weights of step 0" in facts["stopped"]
    assert facts["nll"]["after"] == facts["nll"]["before"]


@pytest.mark.parametrize("name", TRAINED)
def test_settings_out_of_range_are_refused(name):
    for wrong in ({"learning_rate": -1}, {"epochs": 0}, {"batch_tokens": 1}, {"no_such_setting": 1}):
        with pytest.raises(KBookError, match=f"method {name}"):
            make_method(name, wrong)


def test_any_base_can_be_edited(instructed_base, people, tmp_path):
    for name in ("npo", "dpo", "elm"):
        context = FitContext(instructed_base, people[:1], people[1:2], people[:1], 0, tmp_path / name)
        short = {"new_tokens": 2} if name == "elm" else {}
        facts = make_method(name, {"epochs": 1, "batch_tokens": 4096, **short}).edit(context)
        assert facts["steps"] > 0
