"""The inverted hinge and FILA: closed forms, and a start that changes nothing."""

import copy

import pytest
import torch

from kbook.methods.hinge import importance, inverted_hinge, row_weights, weighted_factors
from kbook.methods.registry import make_method
from kbook.methods.weights import told_exchanges, written
from kbook.models.batching import collate, encode
from kbook.models.likelihood import predictions


@pytest.mark.parametrize("target, expected", [(0, 1.5), (1, 0.5)])
def test_the_hinge_by_hand(target, expected):
    logits = torch.tensor([[0.7, 0.2, 0.1]]).log()
    assert inverted_hinge(logits, torch.tensor([target])).item() == pytest.approx(expected, abs=1e-6)


def test_the_hinge_is_one_for_a_uniform_model_and_bounded():
    assert inverted_hinge(torch.zeros(2, 5), torch.tensor([0, 4])).tolist() == pytest.approx([1, 1])
    wild = inverted_hinge(1e3 * torch.randn(50, 7), torch.arange(50) % 7)
    assert wild.min() >= 0 and wild.max() <= 2


def test_without_importance_the_factors_are_a_plain_truncated_svd():
    weight, ones = torch.randn(6, 9), torch.ones(6)
    a, b = weighted_factors(weight, ones, 3, 2.0)
    u, s, vh = torch.linalg.svd(weight, full_matrices=False)
    assert torch.allclose(2.0 * b @ a, (u[:, :3] * s[:3]) @ vh[:3], atol=1e-4)
    assert a.shape == (3, 9) and b.shape == (6, 3)


def test_rows_that_matter_are_kept_more_exactly():
    weight = torch.randn(6, 9)
    rows = torch.tensor([100.0, 1, 1, 1, 1, 1])
    a, b = weighted_factors(weight, rows, 2, 1.0)
    error = (b @ a - weight).norm(dim=1)
    assert error[0] < 0.01 * error[1:].min()


def test_row_weights_are_relative_and_need_no_scale():
    forget, retain = torch.rand(4, 5), torch.rand(4, 5)
    found = row_weights(forget, retain, 0.01)
    assert found.mean().item() == pytest.approx(1, abs=1e-6)
    assert torch.allclose(found, row_weights(1e-6 * forget, 1e-6 * retain, 0.01), atol=1e-5)
    forget[2] *= 100
    assert row_weights(forget, retain, 0.01).argmax() == 2
    assert torch.equal(row_weights(torch.zeros(4, 5), retain, 0.01), torch.ones(4))


def test_importance_is_the_squared_gradient_weighted_by_tokens(tiny_base, people):
    model = copy.deepcopy(tiny_base.model)
    documents = encode(tiny_base.tokenizer, written(tiny_base, told_exchanges(people[0]))[8:12])
    batches = [collate(documents[:1]), collate(documents[1:])]
    name, module = next((n, m) for n, m in model.named_modules() if n.endswith("down_proj"))
    found = importance(model, batches, {name: module})[name]
    by_hand, total = torch.zeros_like(module.weight), 0
    for batch in batches:
        losses = predictions(model, batch).losses()
        (gradient,) = torch.autograd.grad(losses.mean(), module.weight)
        by_hand, total = by_hand + len(losses) * gradient**2, total + len(losses)
    assert torch.allclose(found, by_hand / total, atol=1e-9)
    assert all(p.grad is None or not p.grad.any() for p in model.parameters())


@pytest.mark.parametrize("name", ["cha", "loku"])
def test_the_adapted_model_starts_as_the_model_it_was(fitting, name):
    method = make_method(name)
    material, plain = method.material(fitting), fitting.base.model
    adapted, _ = method.prepared(copy.deepcopy(plain), material, fitting)
    batch = material.retain[0]
    with torch.no_grad():
        change = predictions(adapted, batch).logits() - predictions(plain, batch).logits()
        assert change.abs().max() < 1e-3
        with adapted.disable_adapter():  # what is left of the base is another model: the facts are in the adapter
            bare = predictions(adapted, batch).logits() - predictions(plain, batch).logits()
    assert bare.abs().max() > 0.1
    trained = [n for n, p in adapted.named_parameters() if p.requires_grad]
    assert trained and all("lora" in n for n in trained)


def test_without_fila_the_base_stays_whole(fitting):
    method = make_method("cha", {"fila": False})
    adapted, _ = method.prepared(copy.deepcopy(fitting.base.model), method.material(fitting), fitting)
    weights = dict(fitting.base.model.named_parameters())
    for name, module in adapted.get_base_model().named_modules():
        if hasattr(module, "lora_A"):
            assert torch.equal(module.get_base_layer().weight, weights[f"{name}.weight"])
