"""Divergences by hand, and what each is zero for."""

import math

import pytest
import torch

from kbook.methods.divergences import (
    VARIATIONAL,
    forward_kl,
    kl_from_uniform,
    soft_cross_entropy,
    variational_loss,
)


def test_forward_kl_by_hand_and_its_direction():
    start, model = torch.tensor([[0.5, 0.5]]).log(), torch.tensor([[0.25, 0.75]]).log()
    assert forward_kl(start, model).item() == pytest.approx(0.143841, abs=1e-6)
    assert forward_kl(model, start).item() == pytest.approx(0.130812, abs=1e-6)
    assert forward_kl(start, start + 4).item() == pytest.approx(0, abs=1e-6)


def test_soft_cross_entropy_is_kl_plus_the_targets_entropy():
    logits, target = torch.randn(6, 9, generator=torch.manual_seed(0)), torch.randn(6, 9).softmax(-1)
    entropy = -(target * target.log()).sum(-1).mean()
    assert torch.allclose(soft_cross_entropy(target, logits), forward_kl(target.log(), logits) + entropy, atol=1e-5)


def test_kl_from_uniform():
    assert kl_from_uniform(torch.zeros(3, 7)).item() == pytest.approx(0, abs=1e-6)
    logits = torch.tensor([[math.log(3), 0.0]])
    assert kl_from_uniform(logits).item() == pytest.approx(-math.log(2) - 0.5 * math.log(0.75 * 0.25), abs=1e-6)


@pytest.mark.parametrize("divergence, expected", [("tv", 0.282184), ("kl", 0.718731), ("pearson", 0.86)])
def test_the_coded_divergences_by_hand(divergence, expected):
    found = variational_loss(torch.tensor(0.1), torch.tensor(0.8), divergence)
    assert found.item() == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("divergence", VARIATIONAL)
def test_every_divergence_rewards_refusals_and_punishes_answers(divergence):
    refusal, answer = torch.tensor(0.3, requires_grad=True), torch.tensor(0.6, requires_grad=True)
    variational_loss(refusal, answer, divergence).backward()
    sign = -1 if divergence == "neyman" else 1  # its activation falls, so that the roles are exchanged
    assert sign * refusal.grad < 0 < sign * answer.grad
