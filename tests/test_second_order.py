"""Sophia: steps that curvature shortens and that are cut off at the rate; SOUL's two objectives."""

import copy

import pytest
import torch

from kbook.methods.registry import make_method
from kbook.methods.second_order import Sophia
from kbook.methods.weights import Contrast
from kbook.models.likelihood import token_loss
from kbook.models.training import Trainer


def stepped(gradient, **options):
    parameter = torch.nn.Parameter(torch.zeros(len(gradient)))
    optimizer = Sophia([parameter], lr=0.1, **options)
    parameter.grad = torch.tensor(gradient)
    optimizer.step()
    return parameter.detach()


def test_where_curvature_is_nothing_a_step_is_the_rate_by_sign():
    assert torch.allclose(stepped([2.0, -3.0, 0.0], n=0), torch.tensor([-0.1, 0.1, 0.0]))


def test_where_curvature_is_large_a_step_is_momentum_over_curvature():
    # m = 0.1 g, h = 0.05 g^2, ratio = m / (rho n h) = 2 / (rho n |g|)
    found = stepped([2.0, -4.0], rho=0.04, n=100)
    assert torch.allclose(found, torch.tensor([-0.1 * 0.1 * 2 / (4 * 0.2), 0.1 * 0.1 * 4 / (4 * 0.8)]))
    assert stepped([1e-3], rho=0.04, n=100)[0] == pytest.approx(-0.1)  # 2 / (4 * 0.001) is cut off at 1


def test_a_parameter_without_a_gradient_stays():
    parameter = torch.nn.Parameter(torch.ones(2))
    Sophia([parameter], lr=0.1).step()
    assert torch.equal(parameter.detach(), torch.ones(2))


def test_its_state_survives_a_checkpoint(tiny_base, fitting, tmp_path):
    batch = make_method("gd").material(fitting).retain[0]
    models = [copy.deepcopy(tiny_base.model) for _ in range(2)]
    trainers = [Trainer({}, model, token_loss, make_optimizer=Sophia) for model in models]
    for trainer in trainers:
        trainer.set_rate(1e-3)
    trainers[0].step(batch)
    trainers[0].save(tmp_path)
    trainers[1].load(tmp_path)
    trainers[1].set_rate(1e-3)
    for trainer in trainers:
        trainer.step(batch)
    assert all(torch.equal(a, b) for a, b in zip(models[0].parameters(), models[1].parameters(), strict=True))


def test_soul_ascends_or_refuses(fitting):
    model = fitting.base.model
    for objective, name in (("gd", "gd"), ("po", "idk")):
        method, plain = make_method("soul", {"objective": objective, "alpha": 0.0}), make_method(name)
        group = plain.material(fitting).forget[0]
        with torch.no_grad():
            loss = method.loss(model, Contrast(group[0], group[0], group[1:]))
            expected = -token_loss(model, group[0]) if objective == "gd" else token_loss(model, group[1])
        assert loss.item() == pytest.approx(expected.item(), abs=1e-5)
        assert len(method.material(fitting).forget[0]) == len(group)
    assert make_method("soul").optimizer is Sophia
