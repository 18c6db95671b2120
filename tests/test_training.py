"""The shared loop: resume to the same bytes, stop when it goes wrong, refuse other recipes."""

import copy
import math

import pytest
import torch

from kbook.errors import KBookError
from kbook.files import StoreWarning
from kbook.models.training import CHECKPOINT, POINT, Progress, Trainer, train, warm_then_linear


class Line(torch.nn.Module):
    """One weight and a dropout; the objective pulls the weight towards the item."""

    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(64))
        self.frozen = torch.nn.Parameter(torch.ones(2), requires_grad=False)
        self.dropout = torch.nn.Dropout(0.5)


def pull(model, target):
    return ((model.dropout(model.weight) - target) ** 2).mean()


def trainer(recipe="a", model=None):
    return Trainer({"recipe": recipe}, model or Line(), pull)


def run(one, folder, targets, every=3, fail_at=None, anew_at=None):
    def stream():
        for step, target in enumerate(targets):
            if step == fail_at:
                raise KeyboardInterrupt
            if step == anew_at:
                one.begin_anew()
            if step >= start:
                yield 1e-2, target

    one.load(folder)
    start = one.progress.step
    return train(one, stream(), folder, label="test", total=len(targets), every=every)


@pytest.mark.parametrize(
    "step, left, expected",
    [(0, 9, 0.1), (9, 9, 1.0), (50, 1.0, 1.0), (50, 0.5, 0.5), (99, 0.0, 0.03)],
    ids=["first", "warm", "before decay", "half of the decay", "floor"],
)
def test_rate(step, left, expected):
    assert warm_then_linear(1.0, step, 10, left, 0.03) == pytest.approx(expected)


def test_no_warmup_is_allowed():
    assert warm_then_linear(1.0, 0, 0, 2, 0.1) == 1.0


@pytest.mark.parametrize("fail_at", [1, 3, 5, 9])
def test_resumed_is_undisturbed_to_the_byte_dropout_included(tmp_path, fail_at):
    targets = [0.1 * i for i in range(12)]
    whole = trainer()
    run(whole, tmp_path / "whole", targets)
    with pytest.raises(KeyboardInterrupt):
        run(trainer(), tmp_path / "cut", targets, fail_at=fail_at)
    resumed = trainer()
    run(resumed, tmp_path / "cut", targets)
    assert torch.equal(resumed.model.weight, whole.model.weight)
    assert resumed.progress.losses == whole.progress.losses
    assert resumed.progress.window == whole.progress.window


@pytest.mark.parametrize("fail_at", [4, 5, 11])
def test_a_warm_restart_is_resumed_to_the_byte_too(tmp_path, fail_at):
    targets = [0.1 * i for i in range(12)]
    whole, plain = trainer(), trainer()
    run(whole, tmp_path / "whole", targets, anew_at=4)
    run(plain, tmp_path / "plain", targets)
    with pytest.raises(KeyboardInterrupt):
        run(trainer(), tmp_path / "cut", targets, fail_at=fail_at, anew_at=4)
    resumed = trainer()
    resumed.load(tmp_path / "cut")
    run(resumed, tmp_path / "cut", targets, anew_at=4 if resumed.progress.step <= 4 else None)
    assert torch.equal(resumed.model.weight, whole.model.weight)
    assert not torch.equal(plain.model.weight, whole.model.weight)


def test_dropout_differs_from_step_to_step_and_leaves_the_global_generator_alone(tmp_path):
    torch.manual_seed(5)
    expected = torch.rand(1)
    torch.manual_seed(5)
    progress = run(trainer(), tmp_path, [1.0] * POINT)
    assert torch.equal(torch.rand(1), expected)
    assert progress.step == POINT


def test_only_parameters_that_require_gradients_are_kept(tmp_path):
    from safetensors import safe_open

    run(trainer(), tmp_path, [1.0] * 3)
    with safe_open(tmp_path / CHECKPOINT, "pt") as opened:
        assert set(opened.keys()) == {"model/weight", "exp_avg/weight", "exp_avg_sq/weight"}


def test_a_loss_that_is_no_number_ends_with_the_last_checkpoint(tmp_path):
    one = trainer()
    with pytest.warns(UserWarning, match="not finite at step 8.*weights of step 6"):
        progress = run(one, tmp_path, [1.0] * 7 + [math.nan] + [1.0] * 7)
    good = trainer()
    run(good, tmp_path / "good", [1.0] * 6)
    assert progress.step == 6
    assert torch.equal(one.model.weight, good.model.weight)


def test_a_gradient_that_is_not_finite_is_not_followed(tmp_path):
    one = Trainer({}, Line(), lambda model, _: model.weight.sqrt().sum())
    with pytest.warns(UserWarning, match="gradient is not finite"):
        run(one, tmp_path, [1.0])
    assert not one.model.weight.any()


def test_a_run_that_was_stopped_stays_stopped(tmp_path):
    with pytest.warns(UserWarning, match="not finite"):
        stopped = run(trainer(), tmp_path, [math.nan, 1.0])
    again = run(trainer(), tmp_path, [1.0] * 5)
    assert again.stopped == stopped.stopped
    assert again.step == 0


def test_a_loss_that_rises_far_above_its_beginning_ends_the_run(tmp_path):
    with pytest.warns(UserWarning, match="the loss rose from"):
        progress = run(trainer(), tmp_path, [1.0] * 3 * POINT + [30.0] * POINT, every=POINT)
    assert progress.step == 3 * POINT


def test_a_loss_that_falls_below_zero_is_no_divergence(tmp_path):
    def ascend(model, target):
        return -target * (1 + model.weight.mean())

    one = Trainer({}, Line(), ascend)
    assert not run(one, tmp_path, [float(i) for i in range(1, 60)]).stopped


def test_progress_shows_the_mean_of_each_stretch():
    progress = Progress()
    for value in range(2 * POINT):
        progress.note(float(value), finite=True)
    assert progress.losses == [(10, 4.5), (20, 14.5)] or progress.stopped


def test_another_recipe_is_refused(tmp_path):
    run(trainer("a"), tmp_path, [1.0] * 4)
    with pytest.raises(KBookError, match="another recipe"):
        trainer("b").load(tmp_path)


def test_a_damaged_checkpoint_is_set_aside(tmp_path):
    run(trainer(), tmp_path, [1.0] * 4)
    (tmp_path / CHECKPOINT).write_bytes((tmp_path / CHECKPOINT).read_bytes()[:100])
    with pytest.warns(StoreWarning, match="damaged"):
        assert not trainer().load(tmp_path)
    assert list(tmp_path.glob("*.corrupt-0"))


def test_no_checkpoint_is_no_error(tmp_path):
    one = trainer()
    before = copy.deepcopy(one.model.state_dict())
    assert not one.load(tmp_path / "nothing")
    assert all(torch.equal(v, before[k]) for k, v in one.model.state_dict().items())
