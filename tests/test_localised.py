"""Where gradients differ (MemFlex), and the way back from a bad model (SKU)."""

import copy
import shutil

import pytest
import torch

from kbook.methods.localised import located, negated
from kbook.methods.registry import make_method
from kbook.methods.weights import Contrast, frozen
from kbook.models.bases import load_base


def test_tensors_whose_gradients_agree_are_left_alone():
    gradients = {"a": torch.randn(4, 3), "b": torch.randn(5)}
    assert located(gradients, gradients, 0.92, 0.0) == []


def test_of_tensors_that_disagree_the_large_ones_are_chosen():
    forget = {"large": torch.tensor([3.0, 0]), "small": torch.tensor([0.1, 0]), "agrees": torch.tensor([3.0, 3.0])}
    retain = {"large": torch.tensor([0.0, 1]), "small": torch.tensor([0.0, 1]), "agrees": torch.tensor([3.0, 3.1])}
    assert located(forget, retain, 0.92, 0.3) == ["large"]
    assert located(forget, retain, 0.92, 0.0) == ["large"]  # the smallest never
    assert located(forget, retain, 1.0, 0.3) == ["large", "agrees"]


def test_only_located_tensors_are_trained_and_the_facts_count_them(fitting):
    method = make_method("memflex")
    adapted, facts = method.prepared(copy.deepcopy(fitting.base.model), method.material(fitting), fitting)
    trained = [n for n, p in adapted.named_parameters() if p.requires_grad]
    assert facts == {"tensors": 28, "located": len(trained)} and 0 < len(trained) <= 14
    assert all("lora_B" in name for name in trained)  # the first factors of fresh adapters have no gradient


def test_where_nothing_is_located_nothing_is_changed_and_it_is_said(fitting):
    facts = make_method("memflex", {"similarity": -1.0, "epochs": 1}).edit(fitting)
    assert facts["located"] == 0 and facts["steps"] == 0 and "nothing was selected" in facts["stopped"]
    assert facts["nll"]["before"] == facts["nll"]["after"]
    edited = load_base(str(fitting.work)).model.state_dict()
    start = fitting.base.model.state_dict()
    assert all(torch.allclose(value, start[name], atol=1e-6) for name, value in edited.items())


# ---- SKU ---------------------------------------------------------------------------------------------------


def test_negation_mirrors_the_bad_model_at_the_start(tiny_base):
    start, bad = tiny_base.model, copy.deepcopy(tiny_base.model)
    assert all(
        torch.equal(a, b) for a, b in zip(negated(bad, start, 1.0).parameters(), start.parameters(), strict=True)
    )
    with torch.no_grad():
        for parameter in bad.parameters():
            parameter.add_(0.01 * torch.randn_like(parameter))
    mirrored = negated(copy.deepcopy(bad), start, 1.0)
    for a, b, origin in zip(mirrored.parameters(), bad.parameters(), start.parameters(), strict=True):
        assert torch.allclose(a + b, 2 * origin, atol=1e-6)
    half = negated(copy.deepcopy(bad), start, 0.0)
    assert all(torch.equal(a, b) for a, b in zip(half.parameters(), start.parameters(), strict=True))


def test_the_bad_model_learns_what_the_result_forgets(fitting):
    quick = {"learning_rate": 2e-3, "epochs": 3, "warmup_steps": 1}
    rises = {}
    for negation in (0.0, 1.0):
        facts = make_method("sku", {**quick, "negation": negation}).edit(fitting)
        rises[negation] = facts["nll"]["after"]["forget"] - facts["nll"]["before"]["forget"]
        shutil.rmtree(fitting.work)
    assert rises[0.0] == pytest.approx(0, abs=1e-3) and rises[1.0] > 0.1


def test_at_the_start_the_divergence_is_zero(fitting):
    method = make_method("sku", {"gamma": 0.0, "mismatch": 0.0})
    material, model = method.material(fitting), fitting.base.model
    with frozen(model):
        kept = method.keep(model, material.retain[0])
        loss = method.loss(model, Contrast(material.forget[0][0], material.retain[0], (), None, kept))
    assert loss.item() == pytest.approx(0, abs=1e-6)
