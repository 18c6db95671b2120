"""MLP-probe: the step down the logit, and a probe that sees what a linear one cannot."""

import pytest
import torch
from planted import linear_accuracy, shifted, states

from kbook.errors import KBookError
from kbook.methods.mlp_probe import MLPProbeParameters, ProbeStep, train_probe
from kbook.methods.registry import make_method
from kbook.methods.seeding import generator_for

WIDTH = 12


def some_probe(alpha=1.0, seed=0):
    draw = torch.Generator().manual_seed(seed)
    shapes = (5, WIDTH), (5,), (5,), ()
    return ProbeStep(*(torch.randn(s, generator=draw, dtype=torch.float64) for s in shapes), alpha)


def points(n=20):
    return torch.randn(n, WIDTH, generator=torch.Generator().manual_seed(9), dtype=torch.float64)


def test_where_the_probe_is_linear_the_step_is_its_weight_and_the_logit_falls_by_its_square():
    probe = some_probe(alpha=0.7)
    high = torch.full_like(probe.b1, 60.0)  # GELU is the identity far above nought
    linear = ProbeStep(probe.w1, high, probe.w2, probe.b2, 0.7)
    weight = probe.w2 @ probe.w1
    h = points()
    assert torch.allclose(linear(h), h - 0.7 * weight, atol=1e-10)
    fallen = linear.logit(h) - linear.logit(linear(h))
    assert torch.allclose(fallen, 0.7 * weight.square().sum().expand(len(h)), atol=1e-8)


def test_the_gradient_is_that_of_finite_differences_and_of_autograd():
    probe, h = some_probe(), points()
    step = 1e-5 * torch.eye(WIDTH, dtype=torch.float64)
    differences = torch.stack([(probe.logit(h + d) - probe.logit(h - d)) / 2e-5 for d in step], dim=1)
    assert torch.allclose(probe.gradient(h), differences, atol=1e-6)
    h.requires_grad_()
    (automatic,) = torch.autograd.grad(probe.logit(h).sum(), h)
    assert torch.allclose(probe.gradient(h), automatic, atol=1e-10)


def test_tokens_do_not_touch_each_other():
    probe, h = some_probe(), points(6).reshape(2, 3, WIDTH)
    h[1, 2] = float("nan")  # a pad may hold anything
    after = probe(h)
    assert torch.isnan(after[1, 2]).all()
    assert torch.allclose(after[0], probe(h[0])) and torch.allclose(after[1, :2], probe(h[1, :2]))


def test_strength_nought_is_the_identity():
    assert torch.equal(some_probe(alpha=0.0)(points()), points())


def exclusive_or(n=400, width=32):
    """Forget where two signs differ: no linear probe can tell."""
    values = 0.2 * torch.randn(n, width, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    first, second = (torch.arange(n) // k % 2 * 2.0 - 1 for k in (1, 2))
    values[:, 0] += first
    values[:, 1] += second
    return states(values, first != second)


def test_it_sees_what_a_linear_probe_cannot():
    data = exclusive_or()
    probe = train_probe(data, MLPProbeParameters(), generator_for("test"))
    seen = ((probe.logit(data.values.float()) > 0) == data.forget).double().mean()
    assert seen >= 0.95
    assert linear_accuracy(data.values, data.forget) < 0.65


def test_forget_states_are_pushed_towards_retain():
    data = shifted()
    fit = make_method("mlp_probe").fit(data, 0)
    forget = data.of(True).float()
    assert fit.facts["accuracy"] > 0.9
    assert (fit.edit.logit(fit.edit(forget)) < fit.edit.logit(forget)).double().mean() > 0.95
    # uphill, as a control
    assert (fit.edit.logit(2 * forget - fit.edit(forget)) > fit.edit.logit(forget)).double().mean() > 0.95


def test_the_order_of_the_classes_does_not_bias_the_probe(monkeypatch):
    data = shifted(by=0.3)
    order = data.forget.long().argsort(stable=True)  # all retain states, then all forget states
    ordered = states(data.values[order], data.forget[order])

    def taken_for_forget():
        settings = MLPProbeParameters(steps=70, learning_rate=0.02)
        probe = train_probe(ordered, settings, generator_for("test"))
        return float((probe.logit(ordered.values.float()) > 0).double().mean())

    assert 0.3 < taken_for_forget() < 0.7
    monkeypatch.setattr(torch, "randperm", lambda n, generator: torch.arange(n))  # the control: class by class
    assert not 0.3 < taken_for_forget() < 0.7


def test_training_is_seeded():
    method, data = make_method("mlp_probe", {"steps": 100}), shifted(100)
    digests = [method.fit(data, seed).edit.digest for seed in (0, 0, 1)]
    assert digests[0] == digests[1] != digests[2]


@pytest.mark.parametrize("settings", [{"steps": 0}, {"alpha": float("inf")}, {"batch": 0}, {"layer": 16}])
def test_bad_settings_are_refused(settings):
    with pytest.raises(KBookError, match="method mlp_probe"):
        make_method("mlp_probe", settings)
