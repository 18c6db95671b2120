"""Noise on logits: its size, its privacy, and the control that does nothing."""

import pytest
import torch

from kbook.errors import KBookError
from kbook.methods.contract import FitContext
from kbook.methods.noise import LogitNoise
from kbook.methods.registry import make_method
from kbook.models.decoding import LiveBatch, Pass

LOGITS = torch.zeros(2, 1024)
STEP = Pass(False, ["a", "b"], ["text of a", "text of b"], (), [[1, 2], [3]])


@pytest.fixture
def context(tiny_base, people, tmp_path):
    return FitContext(tiny_base, people[:2], people[2:4], people[:6], 137, tmp_path)


def rows(step, *chosen):
    return Pass(
        step.reading,
        *([values[i] for i in chosen] for values in (step.rows, step.texts)),
        (),
        [step.written[i] for i in chosen],
    )


def test_sigma_zero_is_the_identity():
    values = torch.randn(2, 1024)
    assert LogitNoise(0.0, 0).logits(STEP, values) is values


def test_mean_and_deviation_are_those_asked_for():
    steps = [Pass(False, ["a"], ["t"], (), [[0] * n]) for n in range(200)]
    drawn = torch.cat([LogitNoise(0.2, 0).logits(s, torch.zeros(1, 1024)) for s in steps])
    assert drawn.mean().item() == pytest.approx(0, abs=2e-3)
    assert drawn.std().item() == pytest.approx(0.2, abs=1e-3)


def test_a_row_gets_the_same_noise_alone_and_in_a_batch():
    hook = LogitNoise(0.2, 0)
    together = hook.logits(STEP, LOGITS)
    for i in range(2):
        assert torch.equal(hook.logits(rows(STEP, i), LOGITS[:1])[0], together[i])
    assert torch.equal(hook.logits(rows(STEP, 1, 0), LOGITS), together.flip(0))


@pytest.mark.parametrize(
    "other",
    [
        Pass(False, ["c"], ["text of a"], (), [[1, 2]]),
        Pass(False, ["a"], ["text of a and more"], (), [[1, 2]]),
        Pass(False, ["a"], ["text of a"], (), [[1, 2, 3]]),
    ],
    ids=["another conversation", "a later turn", "a later token"],
)
def test_noise_is_drawn_anew(other):
    hook = LogitNoise(0.2, 0)
    drawn = hook.logits(rows(STEP, 0), LOGITS[:1])
    assert not torch.equal(hook.logits(other, LOGITS[:1]), drawn)
    assert not torch.equal(LogitNoise(0.2, 1).logits(rows(STEP, 0), LOGITS[:1]), drawn)


def test_replies_are_reproducible_and_differ_from_the_untreated(tiny_base, context):
    def replies(*hooks):
        batch = LiveBatch(tiny_base, ["a", "b"], hooks)
        return [r.text for r in batch.reply(["<s>Norma Quill", "<s>Question: who"], 12)]

    treated = make_method("noise", {"sigma": 20.0}).guard(context).hooks
    assert replies(*treated) == replies(*treated)
    assert replies(*treated) != replies()
    assert replies(*make_method("noise", {"sigma": 0.0}).guard(context).hooks) == replies()


def test_the_seed_of_the_cell_is_in_the_digest(context, tiny_base, people, tmp_path):
    other = FitContext(tiny_base, people[:2], people[2:4], people[:6], 271, tmp_path)
    noise = make_method("noise")
    assert noise.guard(context).digest == noise.guard(context).digest != noise.guard(other).digest


@pytest.mark.parametrize("settings", [{"sigma": -1}, {"sigma": "much"}, {"sigma": float("nan")}, {"scale": 1}])
def test_bad_settings_are_refused(settings):
    with pytest.raises(KBookError, match="method noise"):
        make_method("noise", settings)
