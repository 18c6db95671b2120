"""Self-distillation: targets by hand, the corrected mask of UNDIAL, and the text that ELM's guidance writes."""

import math

import pytest
import torch

from kbook.errors import KBookError
from kbook.methods.distillation import Guidance, elm_target, ramp, undial_target
from kbook.methods.divergences import soft_cross_entropy
from kbook.methods.registry import make_method
from kbook.methods.weights import Contrast, frozen, told_exchanges, written
from kbook.models.batching import IGNORED, Batch, collate, encode
from kbook.models.decoding import LiveBatch, Pass
from kbook.models.likelihood import predictions


def test_the_true_token_is_lowered_in_the_target():
    target = undial_target(torch.zeros(1, 2), torch.tensor([0]), math.log(3))
    assert torch.allclose(target, torch.tensor([[0.25, 0.75]]))
    assert soft_cross_entropy(target, torch.zeros(1, 2)).item() == pytest.approx(math.log(2), abs=1e-6)
    logits = torch.randn(4, 9)
    assert torch.allclose(undial_target(logits, torch.arange(4), 0.0), logits.softmax(-1))


@pytest.fixture
def batch(tiny_base, people):
    return collate(encode(tiny_base.tokenizer, written(tiny_base, told_exchanges(people[0]))[8:12]))


def test_undial_looks_at_supervised_positions_alone(tiny_base, batch):
    """A prompt token's loss, or a hundredth token from the end of the vocabulary, would show in the value."""
    method, model = make_method("undial"), tiny_base.model
    pads = Batch(*(torch.nn.functional.pad(t, (0, 5), value=v) for t, v in zip(
        (batch.ids, batch.labels, batch.weights, batch.mask), (0, IGNORED, 1.0, 0), strict=True)))  # fmt: skip
    with frozen(model):
        values = [
            method.loss(model, Contrast(b, b, reference=method.remember(model, (b,)))).item() for b in (batch, pads)
        ]
        stock = model(input_ids=batch.ids, attention_mask=batch.mask).logits[:, :-1].float()
        chosen = batch.labels[:, 1:] != IGNORED
        logits, targets = stock[chosen], batch.labels[:, 1:][chosen]
        by_hand = soft_cross_entropy(undial_target(logits, targets, 10.0), logits).item()
    assert values[0] == pytest.approx(values[1], abs=1e-5) and values[0] == pytest.approx(by_hand, abs=1e-4)


# ---- ELM ---------------------------------------------------------------------------------------------------


def test_without_strength_the_target_is_the_starts_own_prediction():
    plain, other = torch.randn(3, 12), torch.randn(3, 12)
    found = elm_target(plain, other, -other, torch.zeros(3), 12, 1.2)
    assert torch.allclose(found, (plain / 1.2).softmax(-1), atol=1e-6)
    top = elm_target(plain, other, -other, torch.zeros(3), 4, 1.2)
    assert ((top > 0).sum(-1) == 4).all()
    assert torch.allclose(top, torch.where(top > 0, found, 0) / torch.where(top > 0, found, 0).sum(-1, keepdim=True))


def test_two_tokens_by_hand():
    plain = torch.tensor([[0.5, 0.5]]).log()
    novice, expert = torch.tensor([[0.5, 0.5]]).log(), torch.tensor([[0.8, 0.2]]).log()
    found = elm_target(plain, novice, expert, torch.tensor([1.0]), 2, 1.0)  # log p + log(5/8), log p + log(5/2)
    assert torch.allclose(found, torch.tensor([[0.2, 0.8]]), atol=1e-6)
    strong = elm_target(plain, novice, expert, torch.tensor([1000.0]), 2, 1.0)
    assert torch.allclose(strong, torch.tensor([[0.0, 1.0]]), atol=1e-6)


def test_the_edit_grows_along_each_document(tiny_base, batch):
    found = predictions(tiny_base.model, batch)
    strength = found.by_document(ramp(found, 2.0, 2.0), "mean")
    assert torch.allclose(strength, torch.full_like(strength, 2.0))
    counts = [int(n) for n in found.chosen.sum(1)]
    rows = ramp(found, 1.0, 1000.0).split(counts)
    assert all(row[0] == 1 and row[-1] == 1000 and (row.diff() > 0).all() for row in rows)


@pytest.fixture
def threes(tiny_base):
    texts = [f"<s>Q: {q}\nA:" for q in ("Who?", "Who is not?", "Who is it?", "Why?", "Why not?", "Why so?")]
    return lambda hook: LiveBatch(tiny_base, texts, [hook]).reply(texts, 8)


def test_guided_rows_write_the_same_text_in_threes_and_the_seed_decides_it(threes):
    texts = [reply.text for reply in threes(Guidance(3.0, 0))]
    assert texts[0] == texts[1] == texts[2] and texts[3] == texts[4] == texts[5]
    assert texts == [reply.text for reply in threes(Guidance(3.0, 0))]
    assert texts != [reply.text for reply in threes(Guidance(3.0, 1))]


def test_guidance_goes_from_expert_to_novice():
    step = Pass(False, ["a", "b", "c"], (), (), [[], [], []])
    plain, novice, expert = torch.zeros(4), torch.tensor([9.0, 0, 0, 0]), torch.tensor([0, 9.0, 0, 0])
    found = Guidance(50.0, 0).logits(step, torch.stack([plain, novice, expert]))
    assert found.argmax(-1).tolist() == [0, 0, 0]


def test_elm_reads_a_biography_before_the_same_answer(fitting, people):
    method = make_method("elm", {"new_tokens": 2})
    plain, novice, expert, guided = method.material(fitting).forget[0]
    tokenizer = fitting.base.tokenizer
    said = [tokenizer.decode(row) for row in expert.ids]
    assert all(any(p.biography in text for p in people[:2]) for text in said)
    assert all(any(p.biography in text for p in people[2:4]) for text in map(tokenizer.decode, novice.ids))
    assert not any(p.biography in text for p in people for text in map(tokenizer.decode, plain.ids))
    assert torch.equal(plain.labels[plain.labels >= 0], expert.labels[expert.labels >= 0])
    assert ((guided.labels >= 0).sum(1) > 0).all()


def test_answers_that_tokenize_otherwise_behind_a_biography_are_refused(fitting):
    method = make_method("elm", {"new_tokens": 2})
    group = method.material(fitting).forget[0]
    with frozen(fitting.base.model), pytest.raises(KBookError, match="mend the chat template"):
        method.remember(fitting.base.model, (group[0], group[3], group[2]))
