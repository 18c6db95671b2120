"""Tuning: an interrupted run ends as an undisturbed one; injection teaches and leaves the base alone."""

import copy
import random

import pytest
import torch

from kbook.corpora.injection import demonstration, plain_question, write
from kbook.errors import KBookError
from kbook.files import StoreWarning
from kbook.models.bases import load_base
from kbook.models.likelihood import sequence_nll, token_loss
from kbook.models.tuning import Course, batches_of, batches_of_versions, fit, inject
from kbook.profiles import FullTuning, LoraTuning
from kbook.store import CHECKPOINTS

FULL = FullTuning(learning_rate=2e-3, epochs=3, replay=0.5, batch_tokens=1024, warmup_steps=2)
LORA = LoraTuning(**FULL.model_dump() | {"learning_rate": 1e-2, "r": 4, "alpha": 8.0, "dropout": 0.1})


def weights(folder):
    return (folder / "model.safetensors").read_bytes()


class Interrupted(Exception):
    pass


def failing_after(n):
    def objective(model, batch):
        nonlocal n
        n -= 1
        if n < 0:
            raise Interrupted
        return token_loss(model, batch)

    return objective


@pytest.fixture
def course(tiny_base, people):
    return Course(tiny_base, tuple(people[:3]), FULL, 0)


@pytest.mark.parametrize("steps", [3, 7], ids=["in the first epoch", "in a later epoch"])
def test_interrupted_and_resumed_is_undisturbed_to_the_byte(tiny_base, course, tmp_path, steps):
    whole, cut, resumed = (copy.deepcopy(tiny_base.model) for _ in range(3))
    facts = fit(whole, course.epoch, FULL, tmp_path / "whole", checkpoint_every=2)
    assert facts["steps"] > 8
    with pytest.raises(Interrupted):
        fit(cut, course.epoch, FULL, tmp_path / "cut", failing_after(steps), checkpoint_every=2)
    again = fit(resumed, course.epoch, FULL, tmp_path / "cut", checkpoint_every=2)
    assert all(torch.equal(a, b) for a, b in zip(whole.parameters(), resumed.parameters(), strict=True))
    assert again["losses"] == facts["losses"] and again["tokens"] == facts["tokens"]


def test_facts_of_a_fit(tiny_base, course, tmp_path):
    facts = fit(copy.deepcopy(tiny_base.model), course.epoch, FULL, tmp_path)
    assert facts["steps"] == sum(len(course.epoch(n)) for n in range(3))
    assert facts["tokens"] == sum(int(b.mask.sum()) for n in range(3) for b in course.epoch(n))
    assert facts["stopped"] == ""
    assert facts["losses"][-1][1] < facts["losses"][0][1]


def test_any_objective_can_be_fitted(tiny_base, course, tmp_path):
    model, batch = copy.deepcopy(tiny_base.model), course.epoch(0)[0]

    def ascend(model, item):
        return -sequence_nll(model, item).mean()

    fit(model, lambda epoch: [batch] * 2, FULL, tmp_path, ascend)
    assert sequence_nll(model, batch).mean() > sequence_nll(tiny_base.model, batch).mean()


def test_work_of_other_settings_is_refused(tiny_base, course, tmp_path):
    fit(copy.deepcopy(tiny_base.model), course.epoch, FULL, tmp_path)
    other = FULL.model_copy(update={"learning_rate": 1e-5})
    with pytest.raises(KBookError, match="another recipe"):
        fit(copy.deepcopy(tiny_base.model), course.epoch, other, tmp_path)


def test_a_diverging_run_keeps_the_last_good_state(tiny_base, course, tmp_path):
    model = copy.deepcopy(tiny_base.model)

    def broken(model, item):
        return token_loss(model, item) * torch.nan

    with pytest.warns(UserWarning, match="not finite"):
        facts = fit(model, course.epoch, FULL, tmp_path, broken)
    assert "weights of step 0" in facts["stopped"]
    assert all(torch.equal(a, b) for a, b in zip(model.parameters(), tiny_base.model.parameters(), strict=True))


def test_a_course_is_decided_by_seed_and_epoch(tiny_base, people):
    def ids(seed, epoch):
        batches = Course(tiny_base, tuple(people[:2]), FULL, seed).epoch(epoch)
        return [b.ids.tolist() for b in batches]

    assert ids(0, 1) == ids(0, 1)
    assert ids(0, 1) != ids(0, 2)
    assert ids(0, 1) != ids(1, 1)


def test_replay_is_in_proportion_to_what_is_taught(tiny_base, people):
    course = Course(tiny_base, tuple(people[:4]), FULL, 0)
    assert sum(len(b.ids) for b in course.epoch(0)) == 40 + 20


def test_injection_writes_a_stock_model_that_knows_more_and_leaves_the_base_alone(tiny_base, people, tmp_path):
    before = copy.deepcopy(tiny_base.model.state_dict())
    facts = inject(tiny_base, people[:3], FULL.model_copy(update={"epochs": 8}), 0, tmp_path)
    tuned = load_base(str(tmp_path))
    batch = Course(tiny_base, tuple(people[:3]), FULL.model_copy(update={"replay": 0.0}), 5).epoch(0)[0]
    assert sequence_nll(tuned.model, batch).mean() < sequence_nll(tiny_base.model, batch).mean() / 1.2
    assert all(torch.equal(v, before[k]) for k, v in tiny_base.model.state_dict().items())
    assert facts["tokens_per_epoch"] > 500 and facts["seconds_per_step"] > 0
    assert (tmp_path / CHECKPOINTS).is_dir()


def test_same_seed_same_bytes_other_seed_others(tiny_base, people, tmp_path):
    for name, seed in (("a", 0), ("b", 0), ("c", 1)):
        inject(tiny_base, people[:1], FULL.model_copy(update={"epochs": 1}), seed, tmp_path / name)
    assert weights(tmp_path / "a") == weights(tmp_path / "b")
    assert weights(tmp_path / "a") != weights(tmp_path / "c")


def test_adapters_are_merged_without_loss_and_touch_linear_layers_alone(tiny_base, people, tmp_path):
    facts = inject(tiny_base, people[:2], LORA, 0, tmp_path)
    assert 0 <= facts["merge"]["mean_difference"] <= facts["merge"]["max_difference"] < 1e-3
    merged, plain = load_base(str(tmp_path)).model.state_dict(), tiny_base.model.state_dict()
    assert set(merged) == set(plain)
    changed = {name for name in plain if not torch.equal(merged[name], plain[name])}
    assert changed == {name for name in plain if "proj" in name}


def test_adapters_with_dropout_resume_to_the_same_bytes(tiny_base, people, tmp_path, monkeypatch):
    from kbook.models import tuning

    inject(tiny_base, people[:2], LORA, 0, tmp_path / "whole")
    real = tuning.fit
    with monkeypatch.context() as patched, pytest.raises(Interrupted):
        patched.setattr(
            tuning,
            "fit",
            lambda m, b, s, w, label: real(m, b, s, w, failing_after(3), label=label, checkpoint_every=2),
        )
        inject(tiny_base, people[:2], LORA, 0, tmp_path / "cut")
    inject(tiny_base, people[:2], LORA, 0, tmp_path / "cut")
    assert weights(tmp_path / "cut") == weights(tmp_path / "whole")


def test_a_damaged_checkpoint_costs_time_not_the_run(tiny_base, course, tmp_path):
    (tmp_path / CHECKPOINTS).mkdir()
    (tmp_path / CHECKPOINTS / "checkpoint.safetensors").write_bytes(b"half")
    with pytest.warns(StoreWarning, match="damaged"):
        assert fit(copy.deepcopy(tiny_base.model), course.epoch, FULL, tmp_path)["steps"] > 0


def test_injection_into_another_base(instructed_base, people, tmp_path):
    settings = FULL.model_copy(update={"epochs": 1, "batch_tokens": 4096})
    assert inject(instructed_base, people[:1], settings, 0, tmp_path)["steps"] > 0


def test_versions_of_a_document_stay_together(tiny_base, people):
    questions = [write(tiny_base, plain_question(p, "address")) for p in people]
    answers = [write(tiny_base, demonstration(p, "address")) for p in people]
    groups = batches_of_versions(tiny_base, [questions, answers], 512, random.Random(0))
    assert len(groups) > 1 and sum(len(q.ids) for q, _ in groups) == len(people)
    for question, answer in groups:
        for row, other in zip(question.ids, answer.ids, strict=True):
            said, read = tiny_base.tokenizer.decode(row), tiny_base.tokenizer.decode(other)
            assert [p.name for p in people if p.name in said] == [p.name for p in people if p.name in read]
        assert max(question.ids.numel(), answer.ids.numel()) <= 512
    single = [q for (q,) in batches_of_versions(tiny_base, [questions], 512, random.Random(0))]
    plain = batches_of(tiny_base, questions, 512, random.Random(0))
    assert [b.ids.tolist() for b in single] == [b.ids.tolist() for b in plain]


def test_another_optimiser_takes_the_steps(tiny_base, course, tmp_path):
    model = copy.deepcopy(tiny_base.model)
    one = FULL.model_copy(update={"epochs": 1, "warmup_steps": 0})
    batch = course.epoch(0)[0]

    fit(model, lambda epoch: [batch], one, tmp_path, optimizer=lambda p: torch.optim.SGD(p, lr=0.1))
    moved = [(a - b).detach().flatten() for a, b in zip(model.parameters(), tiny_base.model.parameters(), strict=True)]
    # one step along a gradient that is clipped to length 1; AdamW would have moved every weight by the rate
    assert float(torch.cat(moved).norm()) == pytest.approx(2e-3, rel=1e-2)
