"""The structured start can copy before its first training step; a plain start cannot."""

import math
from typing import Any

import pytest
import torch

from kbook.models.initialisation import Structure, initialise
from kbook.models.pretrain import RECIPES, Architecture, build_model

SHAPES = {
    "llama": Architecture("llama", 256, 2, 4, 4, 64, 64, 512),
    "mistral": Architecture("mistral", 256, 2, 4, 2, 64, 64, 512),
    "qwen3": Architecture("qwen3", 256, 2, 4, 4, 64, 64, 512),
    "as shipped": RECIPES["llama-tiny"].architecture,
}
every_family = pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)


def started(shape: Architecture, seed: int = 0) -> Any:
    model = build_model(shape)
    initialise(model, seed)
    return model.eval()


@torch.no_grad()
def repeat_loss(model: Any, vocabulary: int) -> float:
    """Mean loss (nats) on the second half of random sequences that are said twice."""
    half = torch.randint(6, vocabulary, (8, 24), generator=torch.Generator().manual_seed(1))
    ids = torch.cat([half, half], dim=1)
    logits = model(input_ids=ids).logits[:, 24:-1]
    return float(torch.nn.functional.cross_entropy(logits.flatten(0, 1), ids[:, 25:].flatten()))


@every_family
def test_a_repeated_random_sequence_is_foreseen_at_step_zero(shape: Architecture) -> None:
    assert repeat_loss(started(shape), shape.vocabulary) < 0.5 * math.log(shape.vocabulary)


@every_family
def test_a_plain_start_foresees_nothing(shape: Architecture) -> None:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        plain = build_model(shape).eval()
    assert repeat_loss(plain, shape.vocabulary) > 0.95 * math.log(shape.vocabulary)


def test_without_induction_nothing_is_foreseen_either() -> None:
    shape = SHAPES["llama"]
    model = build_model(shape)
    initialise(model, 0, Structure(induction_output=0.0))
    assert repeat_loss(model.eval(), shape.vocabulary) > 0.9 * math.log(shape.vocabulary)


def test_weights_follow_from_the_seed() -> None:
    one, two, other = (started(SHAPES["llama"], seed).state_dict() for seed in (0, 0, 1))
    assert all(torch.equal(one[name], two[name]) for name in one)
    assert not torch.equal(one["model.embed_tokens.weight"], other["model.embed_tokens.weight"])


def test_the_global_generator_is_left_alone() -> None:
    model = build_model(SHAPES["llama"])
    before = torch.random.get_rng_state()
    initialise(model, 0)
    assert torch.equal(torch.random.get_rng_state(), before)
