"""Adapters beside a model: the same sum as peft's, for routed rows alone, and nothing left behind."""

import copy
from dataclasses import replace

import pytest
import torch
from hooks import hooked
from peft import LoraConfig, get_peft_model

from kbook.corpora.injection import demonstration, write
from kbook.errors import KBookError
from kbook.keys import FIELDS
from kbook.methods.adapters import (
    Adapted,
    Adapter,
    RoutedAdapter,
    attached,
    linear_modules,
    load_adapter,
    overlap,
    save_adapter,
    together,
)
from kbook.methods.seeding import generator_for
from kbook.models.batching import collate, encode
from kbook.models.decoding import LiveBatch
from kbook.models.likelihood import token_loss

IDS = torch.arange(5, 45).reshape(2, 20)


def adapter_for(base, seed=0, rank=3, size=0.3):
    """An adapter that does something: B is not zero."""
    adapter = Adapter.fresh(base, rank, 2.0 * rank, generator_for(seed))
    draw = torch.Generator().manual_seed(seed)
    for up in adapter.up.values():
        up.data[:] = size * torch.randn(up.shape, generator=draw)
    return adapter.requires_grad_(False)


@torch.no_grad()
def logits(model):
    return model(input_ids=IDS).logits


def only(*names):
    """A router for conversations by name."""
    return lambda row, message: row in names


def routed(base, route, adapter=None):
    return RoutedAdapter(base, adapter or adapter_for(base), route, {})


def replies(base, texts, rows, hook=None, new=16):
    if hook is None:
        return [r.text for r in LiveBatch(base, rows).reply(texts, new)]
    hook.start(base)
    with hook.installed(base):
        return [r.text for r in LiveBatch(base, rows, [hook]).reply(texts, new)]


@pytest.fixture(scope="module")
def texts(tiny_base):
    said = [
        "Who is Ana Ito? Ana Ito is a baker. Ana",
        "one two three one two",
        "A: yes. B: no. A: yes. B: no. A: yes. B:",
    ]
    return [tiny_base.render("Tools: none.", s) for s in said]


# ---- what is added -----------------------------------------------------------------------------------------


def test_all_linear_modules_of_the_layers_and_not_the_head(tiny_base):
    names = linear_modules(tiny_base)
    assert len(names) == 2 * 7 and "lm_head" not in names


def test_it_is_the_sum_that_peft_adds(tiny_base):
    adapter = adapter_for(tiny_base)
    config = LoraConfig(r=3, lora_alpha=6, target_modules="all-linear", task_type="CAUSAL_LM")
    theirs = get_peft_model(copy.deepcopy(tiny_base.model), config)
    for name, module in theirs.named_modules():
        if hasattr(module, "lora_A"):
            ours = name.removeprefix("base_model.model.")
            module.lora_A["default"].weight.data[:] = adapter.down[ours]
            module.lora_B["default"].weight.data[:] = adapter.up[ours]
    with attached(tiny_base, [adapter]):
        assert torch.allclose(logits(tiny_base.model), logits(theirs), atol=1e-4)
    assert not torch.allclose(logits(tiny_base.model), logits(theirs), atol=1e-2)


def test_a_fresh_adapter_adds_nothing(tiny_base):
    plain = logits(tiny_base.model)
    with attached(tiny_base, [Adapter.fresh(tiny_base, 4, 8.0, generator_for("x"))]):
        assert torch.equal(logits(tiny_base.model), plain)


def test_adapters_together_add_what_each_adds(tiny_base):
    both = [adapter_for(tiny_base, seed) for seed in (0, 1)]
    with attached(tiny_base, both):
        one_by_one = logits(tiny_base.model)
    with attached(tiny_base, [together(both)]):
        assert torch.allclose(logits(tiny_base.model), one_by_one, atol=1e-4)


def test_the_loss_sees_an_adapter_and_trains_nothing_else(tiny_base, people):
    batch = collate(
        encode(tiny_base.tokenizer, [write(tiny_base, demonstration(people[0], field)) for field in FIELDS])
    )
    adapter = adapter_for(tiny_base).requires_grad_(True)
    model = Adapted(tiny_base, adapter)
    plain = token_loss(tiny_base.model, batch).item()
    assert token_loss(model, batch).item() == pytest.approx(plain, abs=1e-5)
    with attached(tiny_base, [adapter]):
        loss = token_loss(model, batch)
        loss.backward()
    assert abs(loss.item() - plain) > 1e-3
    assert {id(p) for p in model.parameters()} == {id(p) for p in adapter.parameters()}
    assert all(p.grad is not None and p.grad.any() for p in adapter.parameters())
    assert all(p.grad is None and p.requires_grad for p in tiny_base.model.parameters())
    assert hooked(tiny_base) == []


# ---- orthogonality -----------------------------------------------------------------------------------------


def reading(down):
    return Adapter({"m": down}, {"m": torch.zeros(4, len(down))}, 1.0)


def test_adapters_that_read_other_inputs_do_not_overlap():
    old = reading(torch.eye(3, 8))
    new = reading(torch.cat([torch.zeros(3, 5), torch.eye(3)], dim=1))
    assert overlap([old], new, 2).item() == 0


def test_adapters_that_read_the_same_overlap_by_rank_over_layers():
    same = reading(torch.eye(3))
    assert overlap([same], same, 4).item() == pytest.approx(3 / 4)
    assert overlap([same, same], same, 4).item() == pytest.approx(6 / 4)
    assert overlap([], same, 4).item() == 0


def test_the_start_overlaps_already(tiny_base):
    fresh = [Adapter.fresh(tiny_base, 4, 8.0, generator_for(n)) for n in range(2)]
    assert overlap(fresh[:1], fresh[1], 2) > 0


# ---- routing ----------------------------------------------------------------------------------------------


def test_rows_that_are_not_routed_are_bit_identical(tiny_base, texts):
    """Next-token logits, in a batch in which another row has the adapter on."""

    class Keep(RoutedAdapter):
        def logits(self, step, values):
            seen.append(values.clone())
            return values

    found = {}
    for names in ((), ("b",)):
        seen = []
        hook = Keep(tiny_base, adapter_for(tiny_base), only(*names), {})
        replies(tiny_base, texts, "abc", hook, new=1)
        (found[names],) = seen
    plain = []

    class Plain(RoutedAdapter):
        def logits(self, step, values):
            plain.append(values.clone())
            return values

    LiveBatch(tiny_base, "abc", [Plain(tiny_base, adapter_for(tiny_base), only("b"), {})]).reply(texts, 1)  # no hooks
    assert torch.equal(found[()], plain[0])
    assert torch.equal(found["b",][[0, 2]], plain[0][[0, 2]])
    assert not torch.allclose(found["b",][1], plain[0][1], atol=1e-2)


def test_routed_rows_are_those_of_the_adapted_model_alone_and_in_company(tiny_base, texts):
    plain = replies(tiny_base, texts, "abc")
    mixed = replies(tiny_base, texts, "abc", routed(tiny_base, only("b")))
    alone = replies(tiny_base, texts[1:2], "b", routed(tiny_base, only("b")))
    with attached(tiny_base, [adapter_for(tiny_base)]):
        everyone = replies(tiny_base, texts, "abc")
    assert mixed == [plain[0], alone[0], plain[2]] and mixed[1] == everyone[1] != plain[1]


def test_a_later_turn_over_the_cache_has_the_adapter_on_as_well(tiny_base, texts):
    hook = routed(tiny_base, only("b"))
    hook.start(tiny_base)
    with hook.installed(tiny_base):
        live = LiveBatch(tiny_base, "abc", [hook])
        said = [t + r.text + "\nObservation: x." for t, r in zip(texts, live.reply(texts, 8), strict=True)]
        again = [r.text for r in live.reply(said, 8)]
        live.keep([1])
        last = said[1] + again[1] + "\nObservation: y."
        (left,) = live.reply([last], 8)
    assert again == replies(tiny_base, said, "abc", hook, 8)
    assert [left.text] == replies(tiny_base, [last], "b", hook, 8)


def test_a_conversation_is_routed_once_by_the_users_message(tiny_base):
    asked = []

    def route(row, message):
        asked.append((row, message))
        return "forget" in message

    hook = routed(tiny_base, route)
    text = tiny_base.render("System.", "please forget me")
    assert hook.is_routed("a", text)
    assert hook.is_routed("a", text + "Thought: nothing to see")
    assert asked == [("a", "please forget me")]
    assert not hook.is_routed("a", tiny_base.render("System.", "another question"))  # another text, another decision
    assert not hook.is_routed("b", tiny_base.render("forget it", "a question"))


def test_nothing_is_left_behind(tiny_base, texts):
    before = copy.deepcopy(tiny_base.model.state_dict())
    plain = replies(tiny_base, texts, "abc")
    hook = routed(tiny_base, only("a", "b", "c"))
    replies(tiny_base, texts, "abc", hook)
    with pytest.raises(RuntimeError), hook.installed(tiny_base):
        raise RuntimeError
    assert hooked(tiny_base) == [] and replies(tiny_base, texts, "abc") == plain
    assert all(torch.equal(v, before[k]) for k, v in tiny_base.model.state_dict().items())


def test_a_model_in_bfloat16(tiny_base, texts):
    base = replace(tiny_base, model=copy.deepcopy(tiny_base.model).bfloat16())
    assert len(replies(base, texts, "abc", routed(base, only("b")))) == 3


def test_another_model_is_refused(tiny_base):
    other = replace(tiny_base, digest="another")
    with pytest.raises(KBookError, match="fitted on another model"), routed(tiny_base, only()).installed(other):
        pass


# ---- files -------------------------------------------------------------------------------------------------


def test_an_adapter_comes_back_as_it_was(tiny_base, tmp_path):
    adapter = adapter_for(tiny_base)
    save_adapter(tmp_path / "a" / "x.safetensors", adapter, tiny_base.digest)
    again = load_adapter(tmp_path / "a" / "x.safetensors", tiny_base)
    assert again.scale == adapter.scale == 2.0
    assert all(torch.equal(again.down[n], adapter.down[n]) for n in adapter.down)
    assert all(torch.equal(again.up[n], adapter.up[n]) for n in adapter.up)


def test_an_adapter_of_another_model_is_refused(tiny_base, tmp_path):
    save_adapter(tmp_path / "x.safetensors", adapter_for(tiny_base), "0" * 64)
    with pytest.raises(KBookError, match="fitted on another model than tiny"):
        load_adapter(tmp_path / "x.safetensors", tiny_base)


def test_an_adapter_of_other_shapes_is_refused(tiny_base, tmp_path):
    adapter = reading(torch.eye(3, 8))
    save_adapter(tmp_path / "x.safetensors", adapter, tiny_base.digest)
    with pytest.raises(KBookError, match="other modules or shapes"):
        load_adapter(tmp_path / "x.safetensors", tiny_base)


@pytest.mark.parametrize("content", [None, b"", b"not safetensors at all"], ids=["missing", "empty", "damaged"])
def test_a_file_that_cannot_be_read_is_refused(tiny_base, tmp_path, content):
    path = tmp_path / "x.safetensors"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(KBookError, match="adapter cannot be read"):
        load_adapter(path, tiny_base)
