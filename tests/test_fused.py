"""The fused forward pass is the stock one, and steps aside where it would not be."""

from typing import Any

import pytest
import torch

from kbook.models import fused
from kbook.models.fused import hidden_states
from kbook.models.initialisation import initialise
from kbook.models.pretrain import Architecture, build_model

FAMILIES = {
    "llama": Architecture("llama", 64, 2, 4, 4, 16, 96, 128),
    "llama, grouped keys": Architecture("llama", 64, 2, 4, 2, 16, 96, 128),
    "mistral": Architecture("mistral", 64, 2, 4, 2, 16, 96, 128),
    "qwen3": Architecture("qwen3", 64, 2, 4, 2, 16, 96, 128),
}
IDS = torch.randint(6, 128, (3, 20), generator=torch.Generator().manual_seed(0))


def model_of(shape: Architecture, **config: Any) -> Any:
    model = build_model(shape)
    initialise(model, 0)
    with torch.no_grad():  # no output is zero, as some are at the start
        for n, parameter in enumerate(model.parameters()):
            parameter += 0.05 * torch.randn(parameter.shape, generator=torch.Generator().manual_seed(n))
    for name, value in config.items():
        setattr(model.config, name, value)
    return model


def stock(model: Any, ids: torch.Tensor = IDS) -> torch.Tensor:
    hidden: torch.Tensor = model.model(input_ids=ids, use_cache=False).last_hidden_state
    return hidden


def gradients(model: Any, hidden: torch.Tensor) -> dict[str, torch.Tensor]:
    model.zero_grad()
    (hidden * torch.arange(hidden.shape[-1])).square().mean().backward()
    return {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}


@pytest.fixture
def refuse_stock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail if a model's own forward pass is taken."""
    import transformers as hf

    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("the stock path was taken")

    for cls in (hf.LlamaModel, hf.MistralModel, hf.Qwen3Model):
        monkeypatch.setattr(cls, "forward", refuse)


@pytest.mark.parametrize("shape", FAMILIES.values(), ids=FAMILIES)
def test_values_and_gradients_are_those_of_the_stock_pass(shape: Architecture) -> None:
    model = model_of(shape)
    ours, theirs = hidden_states(model, IDS), stock(model)
    torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)
    of_ours, of_theirs = gradients(model, ours), gradients(model, theirs)
    assert of_ours.keys() == of_theirs.keys()
    for name, gradient in of_theirs.items():
        torch.testing.assert_close(of_ours[name], gradient, rtol=1e-3, atol=1e-4 * float(gradient.abs().max()))


@pytest.mark.parametrize("shape", FAMILIES.values(), ids=FAMILIES)
def test_these_families_are_fused(shape: Architecture, refuse_stock: None) -> None:
    assert hidden_states(model_of(shape), IDS).shape == (3, 20, 64)


def test_padding_on_the_right_changes_no_real_token() -> None:
    model = model_of(FAMILIES["qwen3"])
    padded = torch.cat([IDS, torch.zeros(3, 5, dtype=torch.long)], dim=1)
    torch.testing.assert_close(hidden_states(model, padded)[:, :20], hidden_states(model, IDS), rtol=1e-4, atol=1e-5)


def test_a_window_shorter_than_the_text_takes_the_stock_pass() -> None:
    model = model_of(FAMILIES["mistral"], sliding_window=8)
    assert torch.equal(hidden_states(model, IDS), stock(model))
    unbound = model_of(FAMILIES["mistral"], sliding_window=None)
    assert not torch.allclose(hidden_states(model, IDS), hidden_states(unbound, IDS), atol=1e-3)  # the window matters


def test_a_window_as_long_as_the_text_is_fused(refuse_stock: None) -> None:
    assert hidden_states(model_of(FAMILIES["mistral"], sliding_window=20), IDS).shape == (3, 20, 64)


@pytest.mark.parametrize(
    "config",
    [{"hidden_act": "gelu"}, {"attention_dropout": 0.1}, {"model_type": "gemma"}, {"attention_bias": True}],
    ids=["other activation", "dropout", "unknown family", "biases"],
)
def test_what_the_fused_pass_does_not_compute_takes_the_stock_pass(config: dict[str, Any], refuse_stock: None) -> None:
    with pytest.raises(AssertionError, match="stock path"):
        hidden_states(model_of(FAMILIES["llama"], **config), IDS)


def test_a_model_with_adapters_takes_the_stock_pass(refuse_stock: None) -> None:
    class Adapter(torch.nn.Linear):
        """A module of neither torch nor transformers."""

    model = model_of(FAMILIES["llama"])
    model.model.layers[0].mlp.up_proj = Adapter(64, 96, bias=False)
    with pytest.raises(AssertionError, match="stock path"):
        hidden_states(model, IDS)


def test_the_module_names_what_it_fuses() -> None:
    assert {shape.family for shape in FAMILIES.values()} == fused._FUSIBLE
