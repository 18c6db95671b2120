"""Steering of hidden states: targets, gradients that are kept apart, and the few matrices that may move."""

import math

import pytest
import torch

from kbook.methods.registry import make_method
from kbook.methods.representation import (
    captured,
    contrastive_loss,
    merged_gradient,
    random_direction,
    read_through,
    steering_vector,
    with_gradients,
)
from kbook.methods.weights import Contrast, frozen
from kbook.models.bases import load_base

QUICK = {"learning_rate": 1e-2, "epochs": 1, "warmup_steps": 0}


@pytest.mark.parametrize("name", ["rmu", "falcon"])
def test_only_the_output_matrices_up_to_the_layer_move(fitting, name):
    facts = make_method(name, {**QUICK, "matrices": 1}).edit(fitting)
    assert (facts["layer"], facts["trained layers"]) == (1, [1])
    edited, start = load_base(str(fitting.work)).model.state_dict(), fitting.base.model.state_dict()
    assert [n for n in start if not torch.equal(edited[n], start[n])] == ["model.layers.1.mlp.down_proj.weight"]


def test_states_are_the_layers_output_where_the_answer_is_written(fitting):
    method = make_method("rmu", {"depth": 0.0})
    batch = method.material(fitting).forget[0][0]
    stock = fitting.base.model.model(input_ids=batch.ids, output_hidden_states=True).hidden_states[1]
    assert torch.allclose(method.states(fitting.base.model, batch), stock[:, :-1][batch.labels[:, 1:] >= 0], atol=1e-5)


def test_rmu_is_zero_where_states_are_at_their_targets(fitting):
    method, model = make_method("rmu"), fitting.base.model
    material = method.material(fitting)
    batch, retain = material.forget[0][0], material.retain[0]
    with frozen(model):
        references, kept = method.references(model, material.forget), method.keep(model, retain)
        assert method.retain_loss(model, Contrast(batch, retain, (), None, kept)).item() == 0
        there = Contrast(batch, retain, (), method.states(model, batch), kept)
        assert method.forget_loss(model, there).item() == 0
        assert method.forget_loss(model, Contrast(batch, retain, (), references[0], kept)) > 0
    lengths = {float(r.norm()) for r in references}
    mean = torch.cat([method.states(model, g[0]) for g in material.forget]).norm(dim=-1).mean().item()
    assert len(lengths) == 1 and lengths.pop() == pytest.approx(2 * mean, rel=1e-4)


def test_the_random_direction_is_a_unit_vector_and_always_the_same():
    found = random_direction(64, "rmu")
    assert found.norm().item() == pytest.approx(1, abs=1e-6) and found.min() >= 0
    assert torch.equal(found, random_direction(64, "rmu")) and not torch.equal(found, random_direction(64, "other"))


def test_contrastive_loss_by_hand():
    e1, e2 = torch.eye(2)[0], torch.eye(2)[1]
    near = contrastive_loss(e1[None], e1, e2[None], 0.7).item()
    assert near == pytest.approx(math.log(1 + math.exp(-1 / 0.7)), abs=1e-6)
    assert contrastive_loss(e2[None], e1, e2[None], 0.7).item() == pytest.approx(
        math.log(1 + math.exp(1 / 0.7)), abs=1e-6
    )
    assert contrastive_loss(5 * e1[None], 9 * e1, e2[None], 0.7).item() == pytest.approx(near, abs=1e-6)


def test_gradients_at_odds_are_kept_out_of_each_others_way():
    forget, retain = torch.tensor([1.0, -2.0]), torch.tensor([1.0, 1.0])  # cosine below zero
    found = merged_gradient(forget, retain, (1.0, 0.0), (0.1, 1.9))
    assert (found @ retain).item() == pytest.approx(0, abs=1e-6) and found.norm() > 0
    both = merged_gradient(forget, retain, (0.8, 1.2), (0.1, 1.9))
    assert torch.allclose(both, 0.8 * found + 1.2 * retain)
    agreeing = merged_gradient(torch.tensor([1.0, 0.5]), retain, (0.8, 1.2), (0.1, 1.9))
    assert torch.allclose(agreeing, 0.1 * torch.tensor([1.0, 0.5]) + 1.9 * retain)


def test_gradients_enter_a_loss_as_they_are():
    parameters = [torch.randn(3, requires_grad=True), torch.randn(2, 2, requires_grad=True)]
    gradients = [torch.randn(3), torch.randn(2, 2)]
    carrier = with_gradients(parameters, gradients)
    carrier.backward()
    assert carrier.item() == 0
    assert all(torch.equal(p.grad, g) for p, g in zip(parameters, gradients, strict=True))


def test_a_steering_vector_is_a_unit_vector_that_depends_on_the_states():
    states = torch.randn(20, 16)
    found = steering_vector(states, "a")
    assert found.norm().item() == pytest.approx(1, abs=1e-5)
    assert torch.equal(found, steering_vector(states, "a"))
    assert not torch.allclose(found, steering_vector(torch.randn(20, 16), "a"), atol=1e-3)


def test_what_was_captured_is_input_and_output_and_nothing_is_left(tiny_base):
    module = tiny_base.model.model.layers[0].mlp.down_proj
    ids = torch.tensor([[1, 2, 3]])
    with torch.no_grad(), captured(module) as seen:
        read_through(tiny_base.model, ids)
    given, output = seen[module]
    assert torch.allclose(output, given @ module.weight.T, atol=1e-6)
    assert not module._forward_hooks
