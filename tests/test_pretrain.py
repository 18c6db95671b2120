"""Pretraining follows from its recipe alone: interrupted, resumed or undisturbed, the bytes are the same."""

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from kbook.corpora.documents import STAGES, Pools
from kbook.errors import KBookError
from kbook.models import pretrain
from kbook.models.bases import Base, load_base
from kbook.models.batching import IGNORED, Batch
from kbook.models.pretrain import Agents, Architecture, BaseRecipe, Polish, Stream, build_model, train_base
from kbook.models.training import Trainer

STEPS = 8
SHAPE = Architecture(width=64, layers=2, heads=2, key_value_heads=2, head=32, mlp=64, vocabulary=1024)
RECIPE = BaseRecipe(
    architecture=SHAPE,
    steps=(("single hop", 3), ("full", 3)),
    polish=(Polish("polish", 1, 1e-4), Polish("finish", 1, 1e-4, anew=True)),
    batch_tokens=768,
    repeat_share=0.3,
    warmup=2,
)


@pytest.fixture(autouse=True)
def small_recipe(monkeypatch: pytest.MonkeyPatch, pools: Pools, tiny_base: Base) -> None:
    class Ready:
        make = staticmethod(lambda seed: pools)

    monkeypatch.setattr(pretrain, "RECIPES", {"small": RECIPE})
    monkeypatch.setattr(pretrain, "Pools", Ready)
    monkeypatch.setattr(pretrain, "train_tokenizer", lambda *_: tiny_base.tokenizer)
    monkeypatch.setattr(Stream, "chunk", 60)


@pytest.fixture
def interrupt_at(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Raise KeyboardInterrupt before a step, once."""

    def at(step: int) -> None:
        take = Trainer.step

        def or_stop(self: Trainer, item: Any) -> float:
            if self.progress.step == step:
                monkeypatch.setattr(Trainer, "step", take)
                raise KeyboardInterrupt
            return take(self, item)

        monkeypatch.setattr(Trainer, "step", or_stop)

    return at


def weights(folder: Path) -> bytes:
    return (folder / "model.safetensors").read_bytes()


@pytest.fixture
def undisturbed(tmp_path: Path) -> bytes:
    return weights(train_base("small", tmp_path / "undisturbed", checkpoint_every=2))


@pytest.mark.parametrize("step", [1, 3, 5], ids=lambda n: f"stopped before step {n}")
def test_a_resumed_run_ends_with_the_same_bytes(
    tmp_path: Path, undisturbed: bytes, interrupt_at: Callable[[int], None], step: int
) -> None:
    interrupt_at(step)
    with pytest.raises(KeyboardInterrupt):
        train_base("small", tmp_path / "work", checkpoint_every=2)
    assert not (tmp_path / "work" / "model").exists()
    assert weights(train_base("small", tmp_path / "work", checkpoint_every=2)) == undisturbed


def test_another_seed_gives_other_bytes(tmp_path: Path, undisturbed: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pretrain, "RECIPES", {"small": replace(RECIPE, seed=1)})
    assert weights(train_base("small", tmp_path / "other")) != undisturbed


def test_training_again_in_a_finished_folder_changes_nothing(tmp_path: Path, undisturbed: bytes) -> None:
    assert weights(train_base("small", tmp_path / "undisturbed", checkpoint_every=2)) == undisturbed


def test_the_finished_folder_is_a_stock_model_and_says_how_it_was_made(tmp_path: Path) -> None:
    folder = train_base("small", tmp_path)
    base = load_base(str(folder))
    assert type(base.model).__name__ == "LlamaForCausalLM"
    assert base.tokenizer("Ana Ito")["input_ids"]
    report = json.loads((folder / "training.json").read_text())
    assert report["progress"]["step"] == STEPS
    assert 0 < report["progress"]["supervised"] < report["progress"]["tokens"]
    assert report["recipe"]["architecture"]["width"] == 64


def test_training_moves_the_weights(tmp_path: Path, tiny_base: Base) -> None:
    trained = load_file(train_base("small", tmp_path) / "model.safetensors")
    start = build_model(SHAPE)
    pretrain.initialise(start, RECIPE.seed)
    assert any(not torch.equal(trained[n], p) for n, p in start.state_dict().items() if n in trained)


def test_the_checkpoint_of_another_recipe_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    train_base("small", tmp_path, checkpoint_every=2)
    monkeypatch.setattr(pretrain, "RECIPES", {"small": replace(RECIPE, learning_rate=1e-3)})
    with pytest.raises(KBookError, match="the checkpoint was made by another recipe"):
        train_base("small", tmp_path)


def test_an_unknown_recipe_is_named_with_its_neighbours(tmp_path: Path) -> None:
    with pytest.raises(KBookError, match="unknown base model recipe 'smal'.*Did you mean small"):
        train_base("smal", tmp_path)


def test_an_unknown_family_is_named() -> None:
    with pytest.raises(KBookError, match="unknown model family 'lama'.*llama"):
        build_model(replace(SHAPE, family="lama"))


@pytest.mark.parametrize("family", ["llama", "mistral", "qwen3"])
def test_families_are_stock_classes(family: str) -> None:
    model = build_model(replace(SHAPE, family=family))
    assert type(model).__module__.startswith("transformers.models.")
    assert model.config.tie_word_embeddings and model.config.vocab_size == 1024


# ---- the stream of batches ---------------------------------------------------------------------------------


def batches(start: int, tiny_base: Base, pools: Pools) -> Iterator[Batch]:
    return Stream(RECIPE, tiny_base.tokenizer, Agents(RECIPE, pools)).from_step(start)


def test_a_step_is_the_same_batch_however_training_got_there(tiny_base: Base, pools: Pools) -> None:
    whole = list(batches(0, tiny_base, pools))
    assert len(whole) == STEPS
    for start in (1, 4):
        rest = list(batches(start, tiny_base, pools))
        assert len(rest) == STEPS - start
        assert all(torch.equal(a.ids, b.ids) for a, b in zip(whole[start:], rest, strict=True))


def test_batches_keep_the_budget_and_the_longest_document(tiny_base: Base, pools: Pools) -> None:
    for batch in batches(0, tiny_base, pools):
        assert batch.ids.shape[1] <= RECIPE.longest
        assert batch.ids.numel() <= RECIPE.batch_tokens or len(batch.ids) == 1


def test_repeats_supervise_exactly_what_came_before(tiny_base: Base, pools: Pools) -> None:
    stream = Stream(replace(RECIPE, repeat_share=1.0), tiny_base.tokenizer, Agents(RECIPE, pools))
    for batch in stream.from_step(0):
        assert batch.ids.min() >= 6  # no special token
        for ids, labels in zip(batch.ids.tolist(), batch.labels.tolist(), strict=True):
            bigrams: set[tuple[int, int]] = set()
            for i in range(1, len(ids)):
                if labels[i] != IGNORED:
                    assert labels[i] == ids[i] and (ids[i - 1], ids[i]) in bigrams
                bigrams.add((ids[i - 1], ids[i]))
        assert (batch.labels != IGNORED).any(dim=1).all()


def test_the_rate_warms_up_stays_and_falls() -> None:
    recipe = BaseRecipe(steps=(("full", 1000),), warmup=50, decay=0.5, final_rate=0.1, learning_rate=2.0, polish=())
    rates = [recipe.rate(step) for step in (0, 24, 49, 300, 500, 750, 950, 999)]
    assert rates == pytest.approx([0.04, 1.0, 2.0, 2.0, 2.0, 1.0, 0.2, 0.2])


def test_each_polish_has_a_rate_of_its_own() -> None:
    polish = (Polish("polish", 100, 4.0), Polish("finish", 200, 1.0, anew=True))
    recipe = BaseRecipe(steps=(("full", 1000),), warmup=50, polish=polish)
    assert recipe.total_steps == 1300 and recipe.restarts == {1100}
    rates = [recipe.rate(step) for step in (1000, 1050, 1075, 1099, 1100, 1200, 1299)]
    assert rates == pytest.approx([0.08, 2.0, 1.0, 0.4, 0.02, 0.5, 0.1])


def test_every_stage_of_a_recipe_is_known() -> None:
    assert {stage for stage, _ in BaseRecipe().stages} == set(STAGES)
