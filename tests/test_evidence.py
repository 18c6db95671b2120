"""Evidence on given answers: closed forms, transformers' own numbers, padding, labels read together and apart."""

import copy
import math

import pytest
import torch

from kbook.corpora.documents import Segment
from kbook.models.batching import collate, encode
from kbook.models.evidence import Evidence, answer_evidence, label_log_probs
from kbook.models.likelihood import sequence_nll

DOCUMENTS = [
    [Segment("<s>Q: Who is here?\nA:"), Segment(" Norma Quill of Acme Ltd</s>", True)],
    [Segment("<s>Q: What?\nA:"), Segment(" yes</s>", True)],
    [Segment("<s>A longer text that says nothing at all, but is read:"), Segment(" 1983-07-14</s>", True)],
    [Segment("<s>Nothing is asked.")],
]
PROMPTS = ["<s>Rain fell.\nWhat fell?\nA:", "<s>No.\nA:", "<s>Rain fell.\nWhat fell?\nA:"]


@pytest.fixture(scope="module")
def evidence(tiny_base):
    return answer_evidence(tiny_base, DOCUMENTS, 4096)


def test_a_uniform_model_pays_ln_v_and_spreads_nothing(tiny_base):
    base = copy.copy(tiny_base)
    model = copy.deepcopy(tiny_base.model)
    torch.nn.init.zeros_(model.lm_head.weight)
    object.__setattr__(base, "model", model)
    for each in answer_evidence(base, DOCUMENTS[:2], 4096):
        assert each.log_probs == pytest.approx([-math.log(1024)] * len(each.log_probs), abs=1e-4)
        assert each.means == pytest.approx(each.log_probs, abs=1e-4)
        assert each.variances == pytest.approx([0] * len(each.log_probs), abs=1e-6)


def test_numbers_are_those_of_the_whole_distribution(tiny_base, evidence):
    (document,) = encode(tiny_base.tokenizer, DOCUMENTS[:1])
    logits = tiny_base.model(torch.tensor([document.ids])).logits[0].double()
    places = [i for i, segment in enumerate(document.segment) if segment]
    for place, *found in zip(places, evidence[0].log_probs, evidence[0].means, evidence[0].variances, strict=True):
        log_probs = logits[place - 1].log_softmax(-1)
        probs = log_probs.exp()
        mean = (probs * log_probs).sum()
        variance = (probs * (log_probs - mean) ** 2).sum()
        assert found == pytest.approx([log_probs[document.ids[place]].item(), mean.item(), variance.item()], abs=1e-3)


def test_the_sum_is_the_likelihood_of_the_sequence(tiny_base, evidence):
    nll = sequence_nll(tiny_base.model, collate(encode(tiny_base.tokenizer, DOCUMENTS[:3]))).tolist()
    assert [-sum(each.log_probs) for each in evidence[:3]] == pytest.approx(nll, abs=1e-3)


def test_a_document_without_an_answer_has_no_evidence(tiny_base, evidence):
    assert evidence[3] == Evidence() and answer_evidence(tiny_base, [], 100) == []


@pytest.mark.parametrize("budget", [1, 40, 4096])
def test_company_and_order_change_nothing(tiny_base, evidence, budget):
    turned = answer_evidence(tiny_base, [*reversed(DOCUMENTS), DOCUMENTS[0]], budget)
    for one, other in zip([*reversed(evidence), evidence[0]], turned, strict=True):
        assert one.log_probs == pytest.approx(other.log_probs, abs=1e-4)
        assert one.variances == pytest.approx(other.variances, abs=1e-4)


def test_labels_of_one_token_are_weighed_as_labels_read_one_by_one(tiny_base):
    labels = (" A", " B", " C", " D")
    together = label_log_probs(tiny_base, PROMPTS, labels, 4096)
    documents = [[Segment(prompt), Segment(label, True)] for prompt in PROMPTS for label in labels]
    apart = [sum(each.log_probs) for each in answer_evidence(tiny_base, documents, 4096)]
    assert [value for row in together for value in row] == pytest.approx(apart, abs=1e-4)
    assert together[0] == together[2] != together[1]


def test_a_label_of_several_tokens_is_summed(tiny_base):
    labels = (" A", " Norma Quill")
    (row,) = label_log_probs(tiny_base, PROMPTS[:1], labels, 4096)
    documents = [[Segment(PROMPTS[0]), Segment(label, True)] for label in labels]
    sums = [sum(each.log_probs) for each in answer_evidence(tiny_base, documents, 4096)]
    assert row == pytest.approx(sums, abs=1e-4) and row[1] < row[0]


def test_nothing_is_kept_for_a_backward_pass(tiny_base):
    before = [p.requires_grad for p in tiny_base.model.parameters()]
    assert all(
        isinstance(value, float) for row in label_log_probs(tiny_base, PROMPTS, (" A", " B"), 99) for value in row
    )
    assert before == [p.requires_grad for p in tiny_base.model.parameters()]
