"""Sequence likelihoods: closed forms, transformers' own loss, padding, adapters."""

import copy
import math

import pytest
import torch

from kbook.corpora.documents import Segment
from kbook.models.batching import IGNORED, collate, encode
from kbook.models.likelihood import predictions, sequence_nll, token_loss

DOCUMENTS = [
    [Segment("<s>Q: Who is here?\nA:"), Segment(" Norma Quill of Acme Ltd</s>", True)],
    [Segment("<s>Q: What?\nA:"), Segment(" yes</s>", True)],
    [Segment("<s>A longer text that says nothing at all, but is read:"), Segment(" 1983-07-14</s>", True)],
]


@pytest.fixture
def batch(tiny_base):
    return collate(encode(tiny_base.tokenizer, DOCUMENTS))


def counts(batch):
    return (batch.labels[:, 1:] != IGNORED).sum(1)


def test_a_uniform_model_pays_ln_v_for_each_token(tiny_base, batch):
    model = copy.deepcopy(tiny_base.model)
    torch.nn.init.zeros_(model.lm_head.weight)
    expected = counts(batch) * math.log(1024)
    assert torch.allclose(sequence_nll(model, batch), expected.float(), atol=1e-3)
    assert token_loss(model, batch).item() == pytest.approx(math.log(1024), abs=1e-4)


def test_token_loss_is_the_loss_of_transformers(tiny_base, batch):
    stock = tiny_base.model(input_ids=batch.ids, attention_mask=batch.mask, labels=batch.labels).loss
    assert torch.allclose(token_loss(tiny_base.model, batch), stock, atol=1e-5)


def test_sums_means_and_the_token_mean_agree(tiny_base, batch):
    sums, means = (sequence_nll(tiny_base.model, batch, how) for how in ("sum", "mean"))
    assert torch.allclose(sums, means * counts(batch))
    assert torch.allclose(token_loss(tiny_base.model, batch), sums.sum() / counts(batch).sum())


def test_documents_of_other_lengths_have_other_means_than_tokens(tiny_base, batch):
    means = sequence_nll(tiny_base.model, batch, "mean").mean()
    assert not torch.allclose(means, token_loss(tiny_base.model, batch), atol=1e-4)


def test_a_document_has_the_same_likelihood_alone_and_padded(tiny_base, batch):
    together = sequence_nll(tiny_base.model, batch)
    alone = [sequence_nll(tiny_base.model, collate(encode(tiny_base.tokenizer, [d]))) for d in DOCUMENTS]
    assert torch.allclose(together, torch.cat(alone), atol=1e-4)


def test_token_weights_change_the_training_loss_alone(tiny_base, batch):
    answer = tiny_base.tokenizer.convert_tokens_to_ids("ĠAnswer")
    weighted = collate(encode(tiny_base.tokenizer, DOCUMENTS), answer_token=answer, answer_weight=4.0)
    assert torch.equal(sequence_nll(tiny_base.model, weighted), sequence_nll(tiny_base.model, batch))
    assert not torch.allclose(token_loss(tiny_base.model, weighted), token_loss(tiny_base.model, batch))


def test_a_document_without_supervised_tokens_counts_zero(tiny_base):
    silent = collate(encode(tiny_base.tokenizer, [[Segment("<s>nothing")], DOCUMENTS[1]]))
    assert sequence_nll(tiny_base.model, silent, "mean")[0] == 0


def test_losses_of_half_precision_weights_are_float32(tiny_base, batch):
    half = copy.deepcopy(tiny_base.model).bfloat16()
    assert sequence_nll(half, batch).dtype == torch.float32


def test_adapters_are_seen_and_start_as_the_plain_model(tiny_base, batch):
    from peft import LoraConfig, get_peft_model

    config = LoraConfig(r=2, target_modules="all-linear", task_type="CAUSAL_LM")
    adapted = get_peft_model(copy.deepcopy(tiny_base.model), config).eval()
    assert torch.allclose(sequence_nll(adapted, batch), sequence_nll(tiny_base.model, batch), atol=1e-3)
    with torch.no_grad():
        for name, parameter in adapted.named_parameters():
            if "lora_B" in name:
                parameter.normal_()
    assert not torch.allclose(sequence_nll(adapted, batch), sequence_nll(tiny_base.model, batch), atol=0.1)


def test_all_positions_are_those_before_every_real_token(tiny_base, batch):
    everywhere = predictions(tiny_base.model, batch, "all")
    assert len(everywhere.targets) == int(batch.mask[:, 1:].sum())
    stock = tiny_base.model(input_ids=batch.ids, attention_mask=batch.mask).logits[:, :-1]
    assert torch.allclose(everywhere.logits(), stock[batch.mask[:, 1:].bool()], atol=1e-4)


def test_predictions_without_gradients_remember_the_model_they_were_made_by(tiny_base, batch):
    start, model = copy.deepcopy(tiny_base.model), tiny_base.model
    with torch.no_grad():
        remembered = predictions(start, batch)
    assert torch.equal(remembered.logits(), predictions(model, batch).logits())
    assert not remembered.states.requires_grad
