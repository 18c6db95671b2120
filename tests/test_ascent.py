"""Ascent: exact gradients, token weights that are constants, and the difference that cancels."""

import copy
import math

import pytest
import torch

from kbook.methods.ascent import weighted_ascent
from kbook.methods.registry import make_method
from kbook.methods.weights import Contrast, told_exchanges, written
from kbook.models.batching import collate, encode
from kbook.models.likelihood import token_loss

LN2 = math.log(2)


@pytest.fixture
def batch(tiny_base, people):
    return collate(encode(tiny_base.tokenizer, written(tiny_base, told_exchanges(people[0]))[8:12]))


def gradients(model, loss):
    model.zero_grad()
    loss.backward()
    return [p.grad.clone() for p in model.parameters()]


def test_the_gradient_of_ascent_is_that_of_fine_tuning_negated(tiny_base, batch):
    model = copy.deepcopy(tiny_base.model)
    ascent = gradients(model, make_method("ga").loss(model, Contrast(batch, batch)))
    descent = gradients(model, token_loss(model, batch))
    assert all(torch.allclose(up, -down, atol=1e-7) for up, down in zip(ascent, descent, strict=True))


def test_a_uniform_model_has_loss_minus_ln_v(tiny_base, batch):
    model = copy.deepcopy(tiny_base.model)
    torch.nn.init.zeros_(model.lm_head.weight)
    assert make_method("ga").loss(model, Contrast(batch, batch)).item() == pytest.approx(-math.log(1024), abs=1e-4)


def test_one_plain_step_raises_the_forget_loss(tiny_base, batch):
    model = copy.deepcopy(tiny_base.model)
    before = token_loss(model, batch).item()
    for parameter, gradient in zip(
        model.parameters(), gradients(model, make_method("ga").loss(model, Contrast(batch, batch))), strict=True
    ):
        parameter.data -= 0.05 * gradient
    assert token_loss(model, batch).item() > before + 1e-3


def test_the_same_documents_on_both_sides_cancel(tiny_base, batch):
    model, both = copy.deepcopy(tiny_base.model), Contrast(batch, batch)
    loss = make_method("gd").loss(model, both)
    assert loss.item() == pytest.approx(0, abs=1e-6)
    assert all(g.abs().max() < 1e-6 for g in gradients(model, loss))
    uneven = make_method("gd", {"gamma": 1.0, "alpha": 3.0}).loss(model, both)
    assert uneven.item() == pytest.approx(2 * token_loss(model, batch).item(), abs=1e-4)


def test_token_weights_by_hand():
    half = torch.tensor([LN2])  # p = 1/2
    assert weighted_ascent(half, 1.0).item() == pytest.approx(-0.346574, abs=1e-6)
    assert weighted_ascent(half, 5.0, 1.0).item() == pytest.approx(-0.010830, abs=1e-6)
    losses = torch.tensor([0.1, 2.0, 5.0])
    assert weighted_ascent(losses, 0.0) == -losses.mean()


def test_token_weights_are_constants():
    losses = torch.tensor([LN2, 2.0], requires_grad=True)
    weighted_ascent(losses, 1.0).backward()
    expected = -torch.exp(-losses.detach()) / 2  # were the weight differentiated: -(1 - loss) p / 2
    assert torch.allclose(losses.grad, expected)


@pytest.mark.parametrize("name, settings", [("wga", {"beta": 0.0}), ("satimp", {"saturation": 0.0, "importance": 0.0})])
def test_without_weights_they_are_gradient_difference(tiny_base, batch, people, name, settings):
    retain = collate(encode(tiny_base.tokenizer, written(tiny_base, told_exchanges(people[3]))[:2]))
    item, plain = Contrast(batch, retain), make_method("gd", {"alpha": 0.4})
    weighted = make_method(name, {"alpha": 0.4, **settings})
    losses = [m.loss(tiny_base.model, item).item() for m in (plain, weighted)]
    assert losses[0] == pytest.approx(losses[1], abs=1e-5)
