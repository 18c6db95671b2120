"""States: which hidden states are read, and what holds for every method that is fitted on them."""

import copy
import json
import warnings
from dataclasses import replace

import pytest
import torch
from planted import layer_outputs

from kbook.corpora import protocol
from kbook.corpora.people import Query
from kbook.corpora.wordings import SUMMARY_PROMPTS
from kbook.errors import KBookError
from kbook.keys import FIELDS, LANES
from kbook.methods.activations import facts_of
from kbook.methods.contract import FitContext
from kbook.methods.registry import make_method, method_class
from kbook.methods.states import gather

METHODS = ("leace", "repe", "mlp_probe", "rlace", "rlace_cov")
QUICK = {"mlp_probe": {"steps": 40}, "rlace": {"steps": 20}}


@pytest.fixture
def context(tiny_base, people, tmp_path):
    return FitContext(tiny_base, people[:3], people[6:9], people[:6], 137, tmp_path)


def quick(name, **settings):
    return make_method(name, {**QUICK.get(name, {}), **settings})


# ---- which states ------------------------------------------------------------------------------------------


def prompts(base, people):
    """The questions of each person's first round, and then of the others, in the order in which they are asked."""
    words = [[protocol.question(Query(p, f).text) for f in FIELDS] for p in people]
    asked = [[*w, SUMMARY_PROMPTS[0].format(name=p.name)] for w, p in zip(words, people, strict=True)]
    return [base.render(protocol.system_prompt(style=base.style), a) for person in asked for a in person]


def test_name_tokens_are_read_in_the_template_of_inference(context, tiny_base, people):
    states = gather(context, [1], "name", 400)[1]
    expected = {True: [], False: []}
    for forget, pool in ((True, context.fit_forget), (False, context.fit_retain)):
        for text in prompts(tiny_base, pool):
            person = next(p for p in pool if p.name in text)
            encoded = tiny_base.tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)
            given = layer_outputs(tiny_base, torch.tensor([encoded["input_ids"]]))[1][0]
            start = text.index(person.name)
            end = start + len(person.name)
            inside = [i for i, (a, b) in enumerate(encoded["offset_mapping"]) if a < end and start < b]
            expected[forget].append(given[inside].double())
    for forget, pieces in expected.items():
        alone, together = torch.cat(pieces), states.of(forget)
        assert together.shape == alone.shape
        # prompts come in another order, and are padded to a batch: the same states as one by one
        for piece in pieces:
            near = torch.cdist(piece, together).amin(1)
            assert near.max() < 1e-3


@pytest.mark.parametrize("positions", ["last", "all"])
def test_other_positions(context, tiny_base, positions):
    states = gather(context, [0], positions, 400)[0]
    n = len(prompts(tiny_base, [*context.fit_forget, *context.fit_retain]))
    assert len(states.values) == n if positions == "last" else len(states.values) > 10 * n
    assert n == 30


def test_states_before_the_name_are_the_same_for_all_and_tell_nothing(context):
    def nearest(positions):
        states = gather(context, [0], positions, 6)[0]  # one prompt a person
        return torch.cdist(states.of(True), states.of(False)).amin(1)

    assert (nearest("all") < 1e-4).double().mean() > 0.5
    assert (nearest("name") < 1e-4).double().mean() < 0.5


def test_pools_are_equal_and_prompts_limited(tiny_base, people, tmp_path):
    context = FitContext(tiny_base, people[:2], people[2:9], people[:2], 0, tmp_path)
    states = gather(context, [0], "last", 400)[0]
    assert states.forget.sum() == (~states.forget).sum() == 10
    assert len(gather(context, [0], "last", 8)[0].values) == 8
    assert len(gather(context, [0], "last", 2)[0].values) == 2


def test_the_last_round_is_held_out_and_a_single_one_is_not(context):
    fitted, held_out = gather(context, [0], "last", 400)[0].split()
    assert len(fitted.values) == 24 and len(held_out.values) == 6
    (single,) = gather(context, [0], "last", 6).values()
    assert single.split() == (single, single)


def test_the_other_template_is_read_as_well(instructed_base, people, tmp_path):
    context = FitContext(instructed_base, people[:2], people[2:4], people[:2], 0, tmp_path)
    assert len(gather(context, [0], "name", 400)[0].values) > 20


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("pool", ["forget", "retain"])
def test_an_empty_pool_is_refused(context, method, pool):
    with pytest.raises(
        KBookError, match=f"too few people in the {pool} fitting pool: 0, where 1 are needed.*n_fit_{pool}"
    ):
        quick(method).guard(replace(context, **{f"fit_{pool}": ()}))


@pytest.mark.parametrize("method", METHODS)
def test_hidden_states_that_are_not_finite_are_refused(context, tiny_base, method):
    model = copy.deepcopy(tiny_base.model)
    model.get_input_embeddings().weight.data[:] = float("nan")
    with pytest.raises(KBookError, match="hidden states are not finite.*float32"):
        quick(method).guard(replace(context, base=replace(tiny_base, model=model)))


def test_a_template_that_drops_the_name_is_refused(context, tiny_base):
    tokenizer = copy.deepcopy(tiny_base.tokenizer)
    tokenizer.chat_template = "{% for m in messages %}{{ m['content'] | upper | replace('A', '4') }}{% endfor %}"
    with pytest.raises(KBookError, match='not in the prompt.*positions = "last"'):
        gather(replace(context, base=replace(tiny_base, tokenizer=tokenizer)), [0], "name", 400)


def test_many_prompts_go_through_in_several_passes(context, monkeypatch):
    whole = gather(context, [1], "name", 400)[1]
    monkeypatch.setattr("kbook.methods.states.TOKENS", 1)
    one_by_one = gather(context, [1], "name", 400)[1]
    assert torch.equal(whole.forget, one_by_one.forget) and torch.equal(whole.round, one_by_one.round)
    assert torch.allclose(whole.values, one_by_one.values, atol=1e-4)


# ---- every method ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", METHODS)
def test_all_lanes_are_in_reach(name):
    assert method_class(name).family == "activations" and method_class(name).lanes == LANES


@pytest.mark.parametrize("name", METHODS)
def test_fitted_on_nothing_it_is_the_identity_and_says_so(context, tiny_base, name):
    """The same people on both sides: there is nothing that could tell them apart."""
    with pytest.warns(UserWarning, match=f"{name} found nothing to erase and does nothing"):
        [hook] = quick(name).guard(replace(context, fit_retain=context.fit_forget)).hooks
    assert hook.facts["no_op"] is True
    with hook.installed(tiny_base):
        treated = layer_outputs(tiny_base, torch.arange(5, 45)[None])
    assert all(torch.equal(h, treated[n]) for n, h in layer_outputs(tiny_base, torch.arange(5, 45)[None]).items())


@pytest.mark.parametrize("name", METHODS)
def test_fitted_on_something_it_changes_states_and_gives_an_account(context, tiny_base, name):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        [hook] = quick(name).guard(context).hooks
    (layer,) = hook.edits
    assert hook.facts["no_op"] is False and set(hook.facts["layers"]) == {str(layer)}
    assert layer == 1
    h = gather(context, [layer], "name", 400)[layer].values.float()
    assert (hook.edits[layer](h) - h).norm() > 1e-3 * h.norm()
    json.dumps(hook.facts, allow_nan=False)


def test_facts_are_those_of_the_hooks_that_have_some(context):
    guards = [quick("repe").guard(context), make_method("star").guard(context), make_method("none").guard(context)]
    facts = [facts_of(guard) for guard in guards]
    assert facts[0] == [dict(guards[0].hooks[0].facts)] and facts[1:] == [[], []]


@pytest.mark.parametrize("name", METHODS)
def test_the_fit_is_reproducible_and_its_digest_says_what_it_depends_on(context, people, name):
    def digest(method, **changes):
        return method.guard(replace(context, **changes)).digest

    method = quick(name)
    assert digest(method) == digest(method) == digest(method, forget_list=people)  # evaluation people are not read
    assert digest(method) != digest(method, fit_forget=people[3:6])
    assert digest(method) != digest(quick(name, positions="last"))
