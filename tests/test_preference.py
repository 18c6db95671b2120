"""NPO: closed forms of the loss, and what training does to forget and retain facts."""

import copy
import math
from dataclasses import replace

import pytest
import torch

from kbook.errors import KBookError
from kbook.keys import LANES
from kbook.methods.contract import FitContext
from kbook.methods.preference import NPO, Contrast, npo_loss, told
from kbook.methods.registry import make_method, why_not
from kbook.models.bases import load_base
from kbook.models.batching import collate, encode
from kbook.models.likelihood import sequence_nll, token_loss
from kbook.models.tuning import inject
from kbook.profiles import FullTuning

QUICK = {"learning_rate": 2e-3, "epochs": 6, "warmup_steps": 1}


def value(nll, reference, beta):
    return npo_loss(torch.tensor(nll), torch.tensor(reference), beta).item()


@pytest.mark.parametrize("beta, expected", [(0.1, 13.8629), (0.5, 2.7726)])
def test_where_nothing_has_moved_the_loss_is_two_ln_two_over_beta(beta, expected):
    assert value([31.0, 7.0], [31.0, 7.0], beta) == pytest.approx(expected, abs=1e-4)
    assert value([31.0], [31.0], beta) == pytest.approx(2 * math.log(2) / beta, abs=1e-4)


def test_two_nats_away():
    assert value([12.0], [10.0], 0.1) == pytest.approx(11.9628, abs=1e-4)


def test_for_small_beta_it_is_gradient_ascent():
    beta = 1e-3
    assert value([12.0], [10.0], beta) - 2 * math.log(2) / beta == pytest.approx(-2.0, abs=2e-2)


def test_it_is_bounded_where_ascent_is_not():
    assert 0 <= value([1e6], [0.0], 0.1) < 1e-4
    assert math.isfinite(value([0.0], [1e6], 0.1))


@pytest.fixture
def batch(tiny_base, people):
    return collate(encode(tiny_base.tokenizer, told(tiny_base, people[0])[:5]))


def gradient(model, loss):
    model.zero_grad()
    loss.backward()
    return torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None])


def test_at_the_start_its_gradient_is_that_of_ascent(tiny_base, batch):
    model = copy.deepcopy(tiny_base.model)
    reference = sequence_nll(model, batch).detach()
    npo = gradient(model, npo_loss(sequence_nll(model, batch), reference, 0.1))
    ascent = gradient(model, -sequence_nll(model, batch).mean())
    assert torch.allclose(npo, ascent, atol=1e-4 * float(ascent.abs().max()))


def test_its_weight_fades_with_distance():
    def weight(distance, beta=0.1):
        nll = torch.tensor([distance], requires_grad=True)
        npo_loss(nll, torch.tensor([0.0]), beta).backward()
        return -nll.grad.item()

    assert weight(0.0) == pytest.approx(1.0, abs=1e-5)
    assert weight(10.0) == pytest.approx(2 / (1 + math.exp(1.0)), abs=1e-5)
    assert weight(-200.0) == pytest.approx(2.0, abs=1e-4)


def test_the_loss_adds_alpha_times_the_retain_loss(tiny_base, batch, people):
    retain = collate(encode(tiny_base.tokenizer, told(tiny_base, people[5])[:2]))
    item = Contrast(batch, sequence_nll(tiny_base.model, batch).detach(), retain)
    expected = 2 * math.log(2) / 0.1
    for alpha in (0.0, 1.0, 2.5):
        loss = make_method("npo", {"alpha": alpha}).loss(tiny_base.model, item).item()
        assert loss == pytest.approx(expected + alpha * token_loss(tiny_base.model, retain).item(), abs=1e-4)


@pytest.fixture(scope="module")
def injected(tiny_base, people, tmp_path_factory):
    """A base that knows four people a little."""
    folder = tmp_path_factory.mktemp("injected")
    settings = FullTuning(learning_rate=3e-3, epochs=12, replay=0.0, batch_tokens=1024, warmup_steps=2)
    inject(tiny_base, people[:4], settings, 0, folder)
    return replace(load_base(str(folder)), style="compact")


@pytest.fixture
def context(injected, people, tmp_path):
    return FitContext(injected, people[:2], people[2:4], people[:6], 0, tmp_path)


def test_forget_documents_become_unlikely_and_retain_documents_do_not(context):
    start = copy.deepcopy(context.base.model.state_dict())
    facts = make_method("npo", QUICK).edit(context)
    before, after = facts["nll"]["before"], facts["nll"]["after"]
    assert after["forget"] > before["forget"] + 0.5
    assert after["retain"] < before["retain"] + 0.1
    assert all(torch.equal(v, start[k]) for k, v in context.base.model.state_dict().items())


def test_control_without_a_retain_term_retain_documents_suffer(context):
    facts = make_method("npo", {**QUICK, "alpha": 0.0}).edit(context)
    assert facts["nll"]["after"]["retain"] > facts["nll"]["before"]["retain"] + 0.1


def test_the_edited_model_is_a_model_folder_and_the_edit_is_reproducible(context, injected, people, tmp_path):
    quick = {**QUICK, "epochs": 1}
    facts = make_method("npo", quick).edit(context)
    again = FitContext(injected, people[:2], people[2:4], people[:6], 0, tmp_path / "again")
    make_method("npo", quick).edit(again)
    first, second = (load_base(str(c.work)) for c in (context, again))
    assert first.digest == second.digest != injected.digest
    assert facts["steps"] > 0 and facts["stopped"] == ""


def test_people_outside_the_fitting_pools_are_not_read(context, injected, people, tmp_path):
    quick = {**QUICK, "epochs": 1}
    make_method("npo", quick).edit(context)
    other = FitContext(injected, people[:2], people[2:4], people[:9], 0, tmp_path / "other")
    make_method("npo", quick).edit(other)
    assert load_base(str(context.work)).digest == load_base(str(other.work)).digest


def test_what_is_unlearned_is_what_injection_taught_without_the_biography(tiny_base, people):
    texts = ["".join(s.text for s in d) for d in told(tiny_base, people[0])]
    assert len(texts) == 14
    assert not any(people[0].biography in t for t in texts)


def test_it_reaches_weights_alone_and_says_why():
    assert why_not(NPO, "P") is None
    for lane in set(LANES) - {"P"}:
        assert "weights" in why_not(NPO, lane)


@pytest.mark.parametrize("settings", [{"beta": 0}, {"alpha": -1}, {"epochs": 0}, {"learning_rate": 0}, {"gamma": 1}])
def test_bad_settings_are_refused(settings):
    with pytest.raises(KBookError, match="method npo"):
        make_method("npo", settings)
