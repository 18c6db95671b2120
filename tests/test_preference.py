"""Preference objectives: closed forms, limits, and what each adds up."""

import copy
import math

import pytest
import torch

from kbook.corpora.refusals import REFUSALS
from kbook.errors import KBookError
from kbook.methods.preference import dpo_losses, npo_losses, simnpo_losses, soft_maximum
from kbook.methods.registry import make_method
from kbook.methods.weights import Contrast, frozen, told_exchanges, written
from kbook.models.batching import collate, encode
from kbook.models.likelihood import sequence_nll, token_loss


def npo(nll, reference, beta):
    return npo_losses(torch.tensor(nll), torch.tensor(reference), beta).mean().item()


@pytest.mark.parametrize("beta, expected", [(0.1, 13.8629), (0.5, 2.7726)])
def test_where_nothing_has_moved_the_loss_is_two_ln_two_over_beta(beta, expected):
    assert npo([31.0, 7.0], [31.0, 7.0], beta) == pytest.approx(expected, abs=1e-4)
    assert npo([31.0], [31.0], beta) == pytest.approx(2 * math.log(2) / beta, abs=1e-4)


def test_two_nats_away():
    assert npo([12.0], [10.0], 0.1) == pytest.approx(11.9628, abs=1e-4)


def test_for_small_beta_it_is_gradient_ascent():
    beta = 1e-3
    assert npo([12.0], [10.0], beta) - 2 * math.log(2) / beta == pytest.approx(-2.0, abs=2e-2)


def test_it_is_bounded_where_ascent_is_not():
    assert 0 <= npo([1e6], [0.0], 0.1) < 1e-4
    assert math.isfinite(npo([0.0], [1e6], 0.1))


@pytest.mark.parametrize("beta, expected", [(3.5, 0.396084), (4.5, 0.308065)])
def test_simnpo_at_its_margin(beta, expected):
    assert simnpo_losses(torch.tensor([0.7]), beta, 0.7).item() == pytest.approx(expected, abs=1e-5)


def test_simnpo_one_nat_beyond_its_margin():
    assert simnpo_losses(torch.tensor([2.0]), 4.5, 1.0).item() == pytest.approx(0.00491, abs=1e-5)


def test_dpo_by_hand():
    refusal_up, answer_down = torch.tensor([1.0]), torch.tensor([-2.0])
    assert dpo_losses(refusal_up, answer_down, 0.1).item() == pytest.approx(11.0871, abs=1e-4)
    assert dpo_losses(answer_down, refusal_up, 0.1).item() > dpo_losses(refusal_up, answer_down, 0.1).item()


# ---- soft maximum ------------------------------------------------------------------------------------------


def test_the_soft_maximum_of_equal_losses_is_their_value():
    assert soft_maximum(torch.full((5,), 3.25), 2.0).item() == pytest.approx(3.25, abs=1e-6)
    assert soft_maximum(torch.tensor([3.25]), 2.0).item() == pytest.approx(3.25, abs=1e-6)


def test_the_soft_maximum_by_hand_is_no_mean_and_no_soft_minimum():
    found = soft_maximum(torch.tensor([0.0, math.log(4)]), 1.0).item()
    assert found == pytest.approx(0.916291, abs=1e-6)
    assert abs(found - 0.693147) > 0.1 and abs(found - 0.470004) > 0.1


@pytest.mark.parametrize("temperature, expected", [(1e4, 2.0), (1e-3, 5.0)], ids=["large is the mean", "small the max"])
def test_limits_of_the_soft_maximum(temperature, expected):
    assert soft_maximum(torch.tensor([0.0, 1.0, 5.0]), temperature).item() == pytest.approx(expected, abs=2e-3)


def test_its_gradient_weighs_documents_by_softmax_and_it_never_falls_below_the_mean():
    losses = torch.tensor([0.3, 2.0, 1.1], requires_grad=True)
    found = soft_maximum(losses, 0.7)
    found.backward()
    assert torch.allclose(losses.grad, torch.softmax(losses.detach() / 0.7, 0))
    assert found >= losses.mean()


# ---- on a model --------------------------------------------------------------------------------------------


@pytest.fixture
def batch(tiny_base, people):
    return collate(encode(tiny_base.tokenizer, written(tiny_base, told_exchanges(people[0]))[:5]))


@pytest.fixture
def retain(tiny_base, people):
    return collate(encode(tiny_base.tokenizer, written(tiny_base, told_exchanges(people[5]))[:2]))


def gradient(model, loss):
    model.zero_grad()
    loss.backward()
    return torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None])


def test_at_the_start_its_gradient_is_that_of_ascent(tiny_base, batch):
    model = copy.deepcopy(tiny_base.model)
    reference = sequence_nll(model, batch).detach()
    found = gradient(model, npo_losses(sequence_nll(model, batch), reference, 0.1).mean())
    ascent = gradient(model, -sequence_nll(model, batch).mean())
    assert torch.allclose(found, ascent, atol=1e-4 * float(ascent.abs().max()))


def test_its_weight_fades_with_distance():
    def weight(distance, beta=0.1):
        nll = torch.tensor([distance], requires_grad=True)
        npo_losses(nll, torch.tensor([0.0]), beta).mean().backward()
        return -nll.grad.item()

    assert weight(0.0) == pytest.approx(1.0, abs=1e-5)
    assert weight(10.0) == pytest.approx(2 / (1 + math.exp(1.0)), abs=1e-5)
    assert weight(-200.0) == pytest.approx(2.0, abs=1e-4)


@pytest.mark.parametrize("name", ["npo", "baldro_npo"])
@pytest.mark.parametrize("gamma, alpha", [(1.0, 0.0), (1.0, 2.5), (0.5, 1.0)])
def test_forget_and_retain_terms_add_up_by_their_weights(tiny_base, batch, retain, name, gamma, alpha):
    method = make_method(name, {"gamma": gamma, "alpha": alpha})
    with frozen(tiny_base.model):
        item = Contrast(batch, retain, reference=method.remember(tiny_base.model, (batch,)))
        found = method.loss(tiny_base.model, item).item()
    expected = gamma * 2 * math.log(2) / 0.1 + alpha * token_loss(tiny_base.model, retain).item()
    assert found == pytest.approx(expected, abs=1e-4)


def test_kl_to_the_start_is_zero_at_the_start_and_padding_changes_nothing(tiny_base, batch, retain):
    method, other = make_method("npo_kl"), copy.deepcopy(tiny_base.model)
    with torch.no_grad():
        other.lm_head.weight.mul_(1.3)
    longer = type(retain)(*(torch.nn.functional.pad(t, (0, 7)) for t in (retain.ids, retain.labels)),
                          *(torch.nn.functional.pad(t, (0, 7)) for t in (retain.weights, retain.mask)))  # fmt: skip
    with frozen(tiny_base.model):
        found = {}
        for name, documents in {"plain": retain, "padded": longer}.items():
            item = Contrast(batch, documents, kept=method.keep(tiny_base.model, documents))
            assert method.retain_loss(tiny_base.model, item).item() == pytest.approx(0, abs=1e-6)
            found[name] = method.retain_loss(other, item).item()
    assert found["padded"] == pytest.approx(found["plain"], rel=1e-5) and found["plain"] > 0.01


def test_dpo_prefers_the_refusal_of_the_same_document(fitting):
    method = make_method("dpo")
    group = method.material(fitting).forget[0]
    with frozen(fitting.base.model):
        reference = method.remember(fitting.base.model, group)
        at_start = Contrast(group[0], group[0], group[1:], reference)
        assert method.forget_loss(fitting.base.model, at_start).item() == pytest.approx(20 * math.log(2), abs=1e-3)
        answer, refusal = reference
        closer = Contrast(group[0], group[0], group[1:], [answer, refusal + 3.0])
        assert method.forget_loss(fitting.base.model, closer) < method.forget_loss(fitting.base.model, at_start)
    said = fitting.base.tokenizer.batch_decode(group[1].ids)
    assert all(any(refusal in text for refusal in REFUSALS) for text in said)


def test_with_one_document_balanced_is_plain(tiny_base, batch, retain):
    one = type(batch)(batch.ids[:1], batch.labels[:1], batch.weights[:1], batch.mask[:1])
    for plain, balanced, margin in (("npo", "baldro_npo", {}), ("simnpo", "baldro_simnpo", {"margin": 1.0})):
        first, second = make_method(plain, margin), make_method(balanced)
        with frozen(tiny_base.model):
            item = Contrast(one, retain, reference=first.remember(tiny_base.model, (one,)))
            losses = [m.loss(tiny_base.model, item).item() for m in (first, second)]
        assert losses[0] == pytest.approx(losses[1], abs=1e-5)


@pytest.mark.parametrize("settings", [{"beta": 0}, {"alpha": -1}, {"gamma": -1}, {"temperature": 0}])
def test_bad_settings_are_refused(settings):
    with pytest.raises(KBookError, match="method baldro_npo"):
        make_method("baldro_npo", settings)
