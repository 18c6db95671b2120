"""Other answers: refusals in the agent's own formats, and no answer token where one should be forgotten."""

import math

import pytest
import torch

from kbook.corpora.people import Person
from kbook.corpora.protocol import FINAL
from kbook.corpora.refusals import REFUSALS, impostor, refused
from kbook.keys import FIELDS
from kbook.methods.registry import make_method
from kbook.methods.weights import Contrast, frozen, told_exchanges
from kbook.models.batching import IGNORED
from kbook.models.likelihood import sequence_nll, token_loss


def test_there_are_a_hundred_refusals_and_none_names_a_field():
    assert len(set(REFUSALS)) == 100
    assert not any(field.replace("_", " ") in text for text in REFUSALS for field in FIELDS)


def test_a_refusal_keeps_the_prompt_and_the_format_and_tells_nothing(people):
    for exchange in told_exchanges(people[0]):
        other = refused(exchange, people[0], REFUSALS[3])
        assert (other.prompt, other.tools, other.kind) == (exchange.prompt, exchange.tools, exchange.kind)
        assert REFUSALS[3] in other.reply
        assert (f"\n{FINAL} " in other.reply) == (exchange.kind == "react")
        assert not any(people[0].value(field) in other.reply for field in FIELDS)


def test_an_impostor_is_asked_about_by_the_same_name_and_has_other_facts(people):
    person: Person = impostor(people[0], people[1])
    assert person.name == people[0].name
    assert [e.prompt for e in told_exchanges(person)] == [e.prompt for e in told_exchanges(people[0])]
    assert all(people[1].value("address") in e.reply for e in told_exchanges(person)[2:4])


@pytest.fixture
def group(fitting):
    return make_method("idk").material(fitting).forget[0]


def test_no_token_of_the_answer_is_a_label(fitting, group, people):
    labels = group[1].labels
    for row, ids in zip(labels, group[1].ids, strict=True):
        said = fitting.base.tokenizer.decode(ids[row != IGNORED])
        assert any(refusal in said for refusal in REFUSALS)
        assert not any(person.value(field) in said for person in people[:2] for field in FIELDS)
    prompt = fitting.base.tokenizer.decode(group[1].ids[0][labels[0] == IGNORED])
    assert any(person.name in prompt for person in people[:2])


def test_the_loss_is_one_mean_over_all_tokens_of_both(fitting, group):
    model, method = fitting.base.model, make_method("idk")
    retain = method.material(fitting).retain[0]
    with frozen(model):
        found = method.loss(model, Contrast(group[0], retain, group[1:])).item()
        sums = sum(sequence_nll(model, b).sum().item() for b in (group[1], retain))
        same = method.loss(model, Contrast(group[0], group[1], group[1:])).item()
        assert same == pytest.approx(token_loss(model, group[1]).item(), abs=1e-5)
    counts = sum(int((b.labels[:, 1:] != IGNORED).sum()) for b in (group[1], retain))
    assert found == pytest.approx(sums / counts, abs=1e-4)


def test_flat_does_not_depend_on_the_prompt_or_on_padding(fitting, group):
    model, method = fitting.base.model, make_method("flat", {"divergence": "kl"})
    padded = tuple(
        type(b)(*(torch.nn.functional.pad(t, (0, 9), value=v) for t, v in zip(
            (b.ids, b.labels, b.weights, b.mask), (0, IGNORED, 1.0, 0), strict=True)))
        for b in group
    )  # fmt: skip
    with frozen(model):
        plain = method.loss(model, Contrast(group[0], group[0], group[1:])).item()
        longer = method.loss(model, Contrast(padded[0], padded[0], padded[1:])).item()
    assert longer == pytest.approx(plain, abs=1e-5)


def test_at_the_start_the_retain_term_of_llmu_is_the_starts_entropy_and_pulls_nowhere(fitting):
    method = make_method("llmu", {"gamma": 0.0, "mismatch": 0.0})
    material = method.material(fitting)
    group, retain, model = material.forget[0], material.retain[0], fitting.base.model
    with frozen(model):
        kept = method.keep(model, retain)
        p = kept.logits().log_softmax(-1)
        entropy = -(p.exp() * p).sum(-1).mean().item()
    model.zero_grad()
    loss = method.loss(model, Contrast(group[0], retain, group[1:], None, kept))
    loss.backward()
    pull = max(float(p.grad.abs().max()) for p in model.parameters() if p.grad is not None)
    model.zero_grad()
    assert loss.item() == pytest.approx(entropy, abs=1e-4) and pull < 1e-4
    assert 0 < entropy < math.log(1024)


def test_llmu_takes_as_many_other_answers_as_asked(fitting, people):
    groups = make_method("llmu", {"answers": 3}).material(fitting).forget
    assert all(len(group) == 4 for group in groups)
    kept = [p.value("employer") for p in people[2:4]]
    said = "".join(text for group in groups for text in fitting.base.tokenizer.batch_decode(group[1].ids))
    assert any(value in said for value in kept)
