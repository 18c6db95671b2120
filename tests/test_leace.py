"""LEACE: its closed form, what it promises, and that a fit which finds nothing is no success."""

import pytest
import torch
from planted import correlated, linear_accuracy, shifted, states

from kbook.errors import KBookError
from kbook.methods.activations import projection
from kbook.methods.leace import leace, shrunk
from kbook.methods.registry import make_method


def covariance_with_label(values, forget):
    label = forget.double() - forget.double().mean()
    return (values - values.mean(0)).T @ label / len(values)


@pytest.mark.parametrize("shrinkage", [False, True])
def test_the_label_is_uncorrelated_afterwards_and_means_agree(shrinkage):
    data = correlated()
    erase = leace(data.values, data.forget, 0.01, shrinkage).edit
    after = erase(data.values)
    assert covariance_with_label(data.values, data.forget).abs().max() > 0.1
    assert covariance_with_label(after, data.forget).abs().max() < 1e-6
    assert torch.allclose(after[data.forget].mean(0), after[~data.forget].mean(0), atol=1e-6)
    assert torch.allclose(after.mean(0), data.values.mean(0), atol=1e-6)
    assert torch.allclose(erase(after), after, atol=1e-6)


def test_for_white_states_it_is_the_projection_along_the_cross_covariance():
    data = correlated()
    centred = data.values - data.values.mean(0)
    scales, basis = torch.linalg.eigh(centred.T @ centred / (len(centred) - 1))
    white = centred @ basis / scales.sqrt() + 3
    delta = covariance_with_label(white, data.forget)
    expected = white - torch.outer((white - 3) @ delta, delta) / delta.square().sum()
    after = leace(white, data.forget, 0.01, shrinkage=False).edit(white)
    assert torch.allclose(after, expected, atol=1e-8)


def test_a_linear_probe_falls_to_chance_and_another_direction_does_not_do_that():
    data = correlated()
    erase = leace(data.values, data.forget, 0.01, shrinkage=True).edit
    assert linear_accuracy(data.values, data.forget) > 0.9
    assert linear_accuracy(erase(data.values), data.forget) < 0.56
    other = torch.linalg.qr(torch.randn(16, 1, generator=torch.Generator().manual_seed(5), dtype=torch.float64)).Q
    assert linear_accuracy(projection(other)(data.values), data.forget) > 0.9


def test_no_other_eraser_of_the_label_changes_states_less():
    data = correlated()
    change = (leace(data.values, data.forget, 0.01, shrinkage=False).edit(data.values) - data.values).square().sum()
    delta = covariance_with_label(data.values, data.forget)
    other = projection((delta / delta.norm())[:, None], data.values.mean(0))(data.values)
    assert covariance_with_label(other, data.forget).abs().max() < 1e-6
    assert change < 0.9 * (other - data.values).square().sum()


@pytest.mark.parametrize("shrinkage", [False, True])
def test_the_total_variance_does_not_grow(shrinkage):
    data = correlated()
    after = leace(data.values, data.forget, 0.01, shrinkage).edit(data.values)
    assert after.var(0).sum() <= data.values.var(0).sum() * (1 + 1e-9)


def test_the_singular_value_is_the_labels_deviation_times_the_correlation():
    data = shifted(20_000, 2, by=2.0)
    facts = leace(data.values, data.forget, 0.01, shrinkage=False).facts
    # a shift of 2 between halves of unit variance: the label explains 1 / (1 + 1) of the variance of the first axis
    assert facts["singular"] == pytest.approx(0.5 * 0.5**0.5, abs=0.01)


def test_within_the_tolerance_there_is_nothing_to_erase():
    data = shifted(40_000, 4, by=0.01)
    within = leace(data.values, data.forget, 0.01, shrinkage=True)
    assert within.edit is None
    assert within.facts["rank"] == 0 and within.facts["singular"] < 0.01
    beyond = leace(data.values, data.forget, 0.001, shrinkage=True)
    assert beyond.edit is not None and beyond.facts["rank"] == 1


def test_labels_of_tokens_that_all_prompts_share_dilute_the_signal():
    """A hundred tokens before the name are the same whoever is asked about."""
    data = shifted(200, 8, by=1.0)
    template = torch.zeros(200 * 100, 8, dtype=torch.float64) + torch.linspace(0, 5, 8)
    values = torch.cat([data.values, template])
    forget = torch.cat([data.forget, torch.arange(200 * 100) % 2 == 0])
    alone, diluted = (leace(*d, 0.01, True).facts["singular"] for d in ((data.values, data.forget), (values, forget)))
    assert diluted < 0.1 * alone


def test_fewer_states_than_dimensions():
    data = shifted(12, 32)
    erase = leace(data.values, data.forget, 0.01, shrinkage=False).edit
    assert covariance_with_label(erase(data.values), data.forget).abs().max() < 1e-6


def test_shrinkage_blends_with_the_identity():
    blended = shrunk(torch.diag(torch.tensor([2.0, 0.0], dtype=torch.float64)), 4)
    assert torch.allclose(blended, torch.diag(torch.tensor([1.5, 0.5], dtype=torch.float64)))
    identity = torch.eye(3, dtype=torch.float64)
    assert torch.allclose(shrunk(identity, 5), identity)
    rich = torch.diag(torch.tensor([2.0, 1.0], dtype=torch.float64))
    assert torch.allclose(shrunk(rich, 10**9), rich, atol=1e-6)


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_states_that_are_not_finite_are_refused(bad):
    data = shifted(10, 4)
    data.values[3, 1] = bad
    with pytest.raises(KBookError, match="not finite.*float32"):
        states(data.values, data.forget)


@pytest.mark.parametrize("forget, pool", [(True, "retain"), (False, "forget")])
def test_a_single_pool_is_refused(forget, pool):
    with pytest.raises(
        KBookError, match=f"too few people in the {pool} fitting pool: 0, where 1 are needed.*n_fit_{pool}"
    ):
        states(torch.randn(4, 3), torch.full((4,), forget))


@pytest.mark.parametrize("settings", [{"tolerance": -1}, {"depth": 1.5}, {"positions": "first"}, {"rank": 1}])
def test_bad_settings_are_refused(settings):
    with pytest.raises(KBookError, match="method leace"):
        make_method("leace", settings)
