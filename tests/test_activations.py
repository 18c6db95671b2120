"""Activations: which states are read, where edits act, and that nothing of them is left behind."""

import copy
import json
import warnings
from contextlib import nullcontext
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch
from test_decoding import same_but_for_ties, with_a_recurrence, with_a_window

from kbook.corpora import protocol
from kbook.corpora.people import Query
from kbook.corpora.wordings import SUMMARY_PROMPTS
from kbook.errors import KBookError
from kbook.keys import FIELDS, LANES
from kbook.methods.activations import (
    LinearErasure,
    StateEdits,
    changed_outputs,
    decoder_layers,
    facts_of,
    gather,
    layer_at,
    one_thread,
    projection,
)
from kbook.methods.contract import FitContext
from kbook.methods.registry import make_method, method_class
from kbook.models.decoding import LiveBatch

METHODS = ("leace", "repe", "mlp_probe", "rlace", "rlace_cov")
QUICK = {"mlp_probe": {"steps": 40}, "rlace": {"steps": 20}}


@pytest.fixture
def context(tiny_base, people, tmp_path):
    return FitContext(tiny_base, people[:3], people[6:9], people[:6], 137, tmp_path)


def quick(name, **settings):
    return make_method(name, {**QUICK.get(name, {}), **settings})


def direction(width=64, seed=0):
    drawn = torch.randn(width, 1, generator=torch.Generator().manual_seed(seed))
    return projection(drawn / drawn.norm())


def hooked_modules(base):
    return [name for name, module in base.model.named_modules() if module._forward_hooks]


def outputs(base, ids, **how):
    """What each decoder layer gives."""
    found = {}

    def keep(n):
        return lambda _input, output: found.setdefault(n, output)

    with changed_outputs({layer: keep(n) for n, layer in enumerate(decoder_layers(base))}), torch.no_grad():
        base.model.base_model(input_ids=ids, use_cache=False, **how)
    return found


# ---- which layer -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("depth, layer", [(0.0, 0), (0.25, 8), (0.5, 16), (0.75, 24), (0.999, 31), (1.0, 31)])
def test_depth_is_a_fraction(depth, layer):
    model = torch.nn.Module()
    model.layers = torch.nn.ModuleList(torch.nn.Identity() for _ in range(32))
    config = SimpleNamespace(get_text_config=lambda: SimpleNamespace(num_hidden_layers=32))
    base = SimpleNamespace(name="b", model=SimpleNamespace(base_model=model, config=config))
    assert layer_at(base, depth) == layer
    assert len(decoder_layers(base)) == 32


def test_a_model_without_such_layers_is_refused(tiny_base):
    model = copy.deepcopy(tiny_base.model)
    model.config.num_hidden_layers = 7
    with pytest.raises(KBookError, match="no list of 7 layers"):
        decoder_layers(replace(tiny_base, model=model))


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
            given = outputs(tiny_base, torch.tensor([encoded["input_ids"]]))[1][0]
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
    with pytest.raises(KBookError, match=f"nobody in the {pool} fitting pool.*n_fit_{pool}"):
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


# ---- edits -------------------------------------------------------------------------------------------------


def test_an_erasure_is_its_closed_form():
    draw = torch.Generator().manual_seed(0)
    left, right, centre, h = (torch.randn(s, generator=draw) for s in ((5, 2), (2, 5), (5,), (3, 4, 5)))
    expected = h - torch.einsum("wr,rv,abv->abw", left, right, h - centre)
    assert torch.allclose(LinearErasure(left, right, centre)(h), expected, atol=1e-5)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16, torch.float64])
def test_edits_keep_the_type_and_compute_in_float32_at_least(dtype):
    h = 10 * torch.randn(6, 64, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    after, exact = direction()(h.to(dtype)), direction()(h.to(dtype).double())
    assert after.dtype == dtype
    assert torch.allclose(after.double(), exact, atol=torch.finfo(dtype).eps * 40)


def test_the_digest_is_that_of_the_tensors():
    assert direction().digest == direction().digest == direction().to("cpu").digest
    assert direction().digest != direction(seed=1).digest


def test_modules_that_return_tuples_are_changed_in_their_first_part():
    class Pair(torch.nn.Module):
        def forward(self, x):
            return x, "cache"

    module, x = Pair(), torch.ones(2, 3)
    with changed_outputs({module: lambda given, output: output + given}):
        assert torch.equal(module(x)[0], 2 * x) and module(x)[1] == "cache"
    assert torch.equal(module(x)[0], x)


def test_the_chosen_layer_is_changed_at_every_token_and_no_other(tiny_base):
    ids = torch.arange(5, 45).reshape(2, 20)
    edit = direction()
    plain = outputs(tiny_base, ids)
    with StateEdits({0: edit}, tiny_base.digest).installed(tiny_base):
        changed = outputs(tiny_base, ids)  # hooked after the edit, and so sees what it made
    assert torch.allclose(changed[0], edit(plain[0]), atol=1e-6)
    assert (changed[0] @ edit.right[0]).abs().max() < 1e-4 < (plain[0] @ edit.right[0]).abs().max()
    assert not torch.allclose(changed[1], plain[1], atol=1e-3)
    with StateEdits({1: edit}, tiny_base.digest).installed(tiny_base):
        later = outputs(tiny_base, ids)
    assert torch.equal(later[0], plain[0])


def test_hooks_are_gone_after_use_and_after_an_error(tiny_base):
    hook = StateEdits({0: direction()}, tiny_base.digest)
    with hook.installed(tiny_base):
        assert len(hooked_modules(tiny_base)) == 1
    assert hooked_modules(tiny_base) == []
    with pytest.raises(RuntimeError), hook.installed(tiny_base):
        raise RuntimeError
    assert hooked_modules(tiny_base) == []


def test_another_model_is_refused(tiny_base):
    with (
        pytest.raises(KBookError, match="fitted on another model than tiny.*fit the method"),
        StateEdits({0: direction()}, "0123456789abcdef").installed(tiny_base),
    ):
        pass
    assert hooked_modules(tiny_base) == []


def test_one_thread_is_for_a_while():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        with one_thread():
            assert torch.get_num_threads() == 1
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


# ---- while an agent runs -----------------------------------------------------------------------------------


@pytest.fixture(scope="module", params=[None, with_a_window, with_a_recurrence], ids=["plain", "window", "recurrence"])
def base(request, tiny_base):
    return replace(tiny_base, model=request.param().eval()) if request.param else tiny_base


@pytest.fixture(scope="module")
def texts(tiny_base):
    said = [
        "Who is Ana Ito? Ana Ito is a baker. Ana",
        "one two three one two",
        "A: yes. B: no. A: yes. B: no. A: yes. B:",
    ]
    return [tiny_base.render("Tools: none.", s) for s in said]


def replies(base, texts, hook=None, new=12):
    with hook.installed(base) if hook else nullcontext():
        return LiveBatch(base, range(len(texts)), [hook] if hook else []).reply(texts, new)


def strong(base):
    """An edit that changes what is written: it mirrors states along a few directions."""
    width = base.model.config.hidden_size
    basis = torch.linalg.qr(torch.randn(width, 8, generator=torch.Generator().manual_seed(2))).Q
    return StateEdits({1: projection(basis, strength=2.0)}, base.digest)


def test_a_row_alone_gets_what_it_gets_in_company(base, texts):
    hook = strong(base)
    together = replies(base, texts, hook)
    assert same_but_for_ties(together, [replies(base, [text], hook)[0] for text in texts])
    assert [r.text for r in together] != [r.text for r in replies(base, texts)]


def test_a_later_turn_over_the_cache_equals_a_fresh_reading(base, texts):
    hook = strong(base)
    with hook.installed(base):
        live = LiveBatch(base, range(len(texts)), [hook])
        first = live.reply(texts, 12)
        said = [f"{text}{r.text}\nObservation: {n}." for n, (text, r) in enumerate(zip(texts, first, strict=True))]
        second = live.reply(said, 12)
        assert same_but_for_ties(second, LiveBatch(base, range(len(texts)), [hook]).reply(said, 12))


def test_replies_are_those_of_the_model_again_afterwards(base, texts):
    plain = replies(base, texts)
    replies(base, texts, strong(base))
    assert replies(base, texts) == plain


def test_a_model_in_bfloat16(tiny_base, texts):
    base = replace(tiny_base, model=copy.deepcopy(tiny_base.model).bfloat16())
    assert len(replies(base, texts, strong(base))) == len(texts)
    ids = torch.arange(5, 25)[None]
    with strong(base).installed(base):
        assert outputs(base, ids)[1].dtype == torch.bfloat16


# ---- every method ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", METHODS)
def test_all_lanes_are_in_reach(name):
    assert method_class(name).family == "activations" and method_class(name).lanes == LANES


@pytest.mark.parametrize("name", METHODS)
def test_fitted_on_nothing_it_is_the_identity_and_says_so(context, tiny_base, texts, name):
    """The same people on both sides: there is nothing that could tell them apart."""
    with pytest.warns(UserWarning, match=f"{name} found nothing to erase and does nothing"):
        [hook] = quick(name).guard(replace(context, fit_retain=context.fit_forget)).hooks
    assert hook.facts["no_op"] is True
    assert replies(tiny_base, texts, hook) == replies(tiny_base, texts)


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


def test_many_prompts_go_through_in_several_passes(context, monkeypatch):
    whole = gather(context, [1], "name", 400)[1]
    monkeypatch.setattr("kbook.methods.activations.TOKENS", 1)
    one_by_one = gather(context, [1], "name", 400)[1]
    assert torch.equal(whole.forget, one_by_one.forget) and torch.equal(whole.round, one_by_one.round)
    assert torch.allclose(whole.values, one_by_one.values, atol=1e-4)
