"""Activations: where edits act, and that nothing of them is left behind."""

import copy
from contextlib import nullcontext
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch
from hooks import hooked
from planted import layer_outputs
from test_decoding import same_but_for_ties, with_a_recurrence, with_a_window

from kbook.errors import KBookError
from kbook.methods.activations import (
    LinearErasure,
    StateEdits,
    changed_outputs,
    decoder_layers,
    layer_at,
    projection,
)
from kbook.models.decoding import LiveBatch


def direction(width=64, seed=0):
    drawn = torch.randn(width, 1, generator=torch.Generator().manual_seed(seed))
    return projection(drawn / drawn.norm())


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
    plain = layer_outputs(tiny_base, ids)
    with StateEdits({0: edit}, tiny_base.digest).installed(tiny_base):
        changed = layer_outputs(tiny_base, ids)  # hooked after the edit, and so sees what it made
    assert torch.allclose(changed[0], edit(plain[0]), atol=1e-6)
    assert (changed[0] @ edit.right[0]).abs().max() < 1e-4 < (plain[0] @ edit.right[0]).abs().max()
    assert not torch.allclose(changed[1], plain[1], atol=1e-3)
    with StateEdits({1: edit}, tiny_base.digest).installed(tiny_base):
        later = layer_outputs(tiny_base, ids)
    assert torch.equal(later[0], plain[0])


def test_hooks_are_gone_after_use_and_after_an_error(tiny_base):
    hook = StateEdits({0: direction()}, tiny_base.digest)
    with hook.installed(tiny_base):
        assert len(hooked(tiny_base)) == 1
    assert hooked(tiny_base) == []
    with pytest.raises(RuntimeError), hook.installed(tiny_base):
        raise RuntimeError
    assert hooked(tiny_base) == []


def test_another_model_is_refused(tiny_base):
    with (
        pytest.raises(KBookError, match="fitted on another model than tiny.*fit the method"),
        StateEdits({0: direction()}, "0123456789abcdef").installed(tiny_base),
    ):
        pass
    assert hooked(tiny_base) == []


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
        assert layer_outputs(base, ids)[1].dtype == torch.bfloat16
