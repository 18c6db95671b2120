"""Training an embedded base model from scratch: `kbook base train NAME`.

Everything follows from the recipe and its seed: pools, tokenizer, initial weights and every batch. Training
resumes at its last checkpoint after any interruption. About fifteen million tokens and half an hour to an hour
on two cores give a model that follows the ReAct protocol and copies names and values it has never seen.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from itertools import accumulate
from pathlib import Path
from typing import Any, Protocol

import torch

from kbook.corpora.documents import STAGES, Document, Habits, Pools, Writer, draw
from kbook.corpora.multilingual import Library, Scribe
from kbook.errors import KBookError, unknown_name
from kbook.files import write_atomic
from kbook.models.batching import IGNORED, Batch, by_length, collate, encode
from kbook.models.initialisation import initialise
from kbook.models.likelihood import token_loss
from kbook.models.tokenizer import train_multilingual, train_tokenizer
from kbook.models.training import Trainer, train, warm_then_linear


@dataclass(frozen=True)
class Architecture:
    """Shape of a stock decoder; ``family`` names its `transformers` class."""

    family: str = "llama"
    width: int = 256
    layers: int = 4
    heads: int = 4
    key_value_heads: int = 4
    head: int = 64
    mlp: int = 512
    vocabulary: int = 4096
    rope_theta: float = 1e6
    positions: int = 2048
    window: int | None = None  # tokens that a token attends to, itself included (Mistral)


@dataclass(frozen=True)
class Polish:
    """A short pass over more of what the passes before leave weakest, at a rate that falls linearly from ``rate``.

    ``anew`` begins with empty optimiser moments (a warm restart).
    """

    stage: str
    steps: int
    rate: float
    anew: bool = False


@dataclass(frozen=True)
class BaseRecipe:
    """How one embedded base is made: a first pass, ``steps`` per stage of `documents.STAGES`, then each polish."""

    architecture: Architecture = field(default_factory=Architecture)
    habits: Habits = Habits()
    steps: tuple[tuple[str, int], ...] = (("single hop", 500), ("short records", 900), ("full", 4_400))
    seed: int = 0
    learning_rate: float = 5e-4  # 1e-3 destroys the built-in induction heads within 100 steps
    final_rate: float = 0.1  # of learning_rate, reached linearly over the last `decay` of all steps
    decay: float = 0.35
    warmup: int = 50
    batch_tokens: int = 2048
    longest: int = 768
    repeat_share: float = 0.04  # of steps: random sequences with repeats, to keep induction sharp
    answer_weight: float = 4.0
    polish: tuple[Polish, ...] = (Polish("polish", 1_000, 3e-4), Polish("finish", 500, 2e-4, anew=True))

    @property
    def first_pass(self) -> int:
        return sum(n for _, n in self.steps)

    @property
    def stages(self) -> tuple[tuple[str, int], ...]:
        return (*self.steps, *((p.stage, p.steps) for p in self.polish))

    @property
    def total_steps(self) -> int:
        return sum(n for _, n in self.stages)

    @property
    def restarts(self) -> set[int]:
        """Steps before which the optimiser begins anew."""
        before = accumulate((p.steps for p in self.polish), initial=self.first_pass)
        return {start for start, polish in zip(before, self.polish, strict=False) if polish.anew}

    def rate(self, step: int) -> float:
        """Learning rate at a step: warm-up, constant, then linear; and once more, shorter, for each polish."""
        if step < self.first_pass:
            left = (self.first_pass - step) / (self.decay * self.first_pass)
            return warm_then_linear(self.learning_rate, step, self.warmup, left, self.final_rate)
        step -= self.first_pass
        for polish in self.polish:
            if step < polish.steps:
                left = (polish.steps - step) / polish.steps
                return warm_then_linear(polish.rate, step, self.warmup, left, self.final_rate)
            step -= polish.steps
        raise IndexError("a step beyond the recipe")

    def material(self) -> Material:
        """What the base reads."""
        return Agents(self, Pools.make(self.seed))


class Material(Protocol):
    """What a base reads: a tokenizer, and documents without end."""

    def tokenizer(self) -> Any: ...

    def documents(self, stage: str, rng: random.Random, n: int) -> list[Document]: ...


@dataclass(frozen=True)
class Agents:
    """Documents of the agent protocol about people of the pretraining world."""

    recipe: BaseRecipe
    pools: Pools

    def tokenizer(self) -> Any:
        return train_tokenizer(self.pools, self.recipe.architecture.vocabulary, self.recipe.seed)

    def documents(self, stage: str, rng: random.Random, n: int) -> list[Document]:
        writer = Writer(self.pools, rng, self.recipe.habits)
        return [draw(STAGES[stage], writer) for _ in range(n)]


@dataclass(frozen=True)
class MultilingualRecipe(BaseRecipe):
    """How a base is made that answers questions in ten languages; stages are those of `multilingual.MIXTURES`."""

    architecture: Architecture = field(default_factory=lambda: Architecture(vocabulary=8192))
    steps: tuple[tuple[str, int], ...] = (("read", 300), ("all", 5_700))
    polish: tuple[Polish, ...] = ()
    repeat_share: float = 0.02
    longest: int = 512
    world: str = "almanac"
    topics: tuple[int, int, int] = (480, 32, 8)  # shown in prompts, known, known from the core wording alone

    def material(self) -> Material:
        return Topics(self, self.library())

    def library(self) -> Library:
        """The background topics that the base reads about."""
        return Library.make(self.world, self.seed, self.topics)


@dataclass(frozen=True)
class Topics:
    """Questions and answers about background topics in ten languages."""

    recipe: MultilingualRecipe
    library: Library

    def tokenizer(self) -> Any:
        return train_multilingual(self.library, self.recipe.architecture.vocabulary)

    def documents(self, stage: str, rng: random.Random, n: int) -> list[Document]:
        scribe = Scribe(self.library, rng)
        return [scribe.draw(stage) for _ in range(n)]


READING = Polish("finish", 3_600, 4e-4, anew=True)
"""For bases that have not learned to read among several people when the other passes are over."""

RECIPES: dict[str, BaseRecipe] = {
    "llama-tiny": BaseRecipe(),
    "mistral-tiny": BaseRecipe(
        Architecture("mistral", heads=8, key_value_heads=4, window=512),
        Habits(confirms=True),
        seed=1,
        polish=(*BaseRecipe.polish, READING),
    ),
    "qwen-tiny": BaseRecipe(Architecture("qwen3"), Habits(restates=True), seed=2, polish=(*BaseRecipe.polish, READING)),
    "multi-tiny": MultilingualRecipe(seed=3),
}


def build_model(shape: Architecture) -> Any:
    """An uninitialised stock `transformers` decoder of this shape."""
    import transformers as hf

    classes = {
        "llama": (hf.LlamaConfig, hf.LlamaForCausalLM),
        "mistral": (hf.MistralConfig, hf.MistralForCausalLM),
        "qwen3": (hf.Qwen3Config, hf.Qwen3ForCausalLM),
    }
    if shape.family not in classes:
        raise unknown_name("model family", shape.family, classes)
    make_config, make_model = classes[shape.family]
    window = {"sliding_window": shape.window} if shape.family == "mistral" else {}
    config = make_config(
        vocab_size=shape.vocabulary,
        hidden_size=shape.width,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads,
        num_key_value_heads=shape.key_value_heads,
        head_dim=shape.head,
        intermediate_size=shape.mlp,
        max_position_embeddings=shape.positions,
        tie_word_embeddings=True,
        rope_parameters={"rope_type": "default", "rope_theta": shape.rope_theta},
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=2,
        **window,
    )
    return make_model(config)


class Stream:
    """Batches of the recipe from a given step on; step ``n`` is the same batch however training got there."""

    chunk = 300

    def __init__(self, recipe: BaseRecipe, tokenizer: Any, material: Material) -> None:
        self.recipe, self.tokenizer, self.material = recipe, tokenizer, material
        self.answer_token = tokenizer.convert_tokens_to_ids("ĠAnswer")

    def from_step(self, start: int) -> Iterator[Batch]:
        step = 0
        for stage, n in self.recipe.stages:
            documents = self._documents(stage)
            for _ in range(n):
                rng = random.Random(f"repeat/{self.recipe.seed}/{step}")
                repeats = rng.random() < self.recipe.repeat_share
                encoded = None if repeats else next(documents)
                if step >= start:
                    yield (
                        self._repeats(step, rng)
                        if encoded is None
                        else collate(encoded, answer_token=self.answer_token, answer_weight=self.recipe.answer_weight)
                    )
                step += 1

    def _documents(self, stage: str) -> Iterator[list[Any]]:
        number = 0
        while True:
            rng = random.Random(f"{stage}/{self.recipe.seed}/{number}")
            drawn = encode(self.tokenizer, self.material.documents(stage, rng, self.chunk))
            fitting = [e for e in drawn if len(e) <= self.recipe.longest]
            yield from by_length(fitting, self.recipe.batch_tokens, rng)
            number += 1

    def _repeats(self, step: int, rng: random.Random) -> Batch:
        """Random tokens in which a stretch comes again; all of the repeat but its first token is supervised."""
        length = rng.choice((48, 96, 192))
        rows = self.recipe.batch_tokens // length
        generator = torch.Generator().manual_seed(self.recipe.seed * 1_000_003 + step)
        ids = torch.randint(6, self.recipe.architecture.vocabulary, (rows, length), generator=generator)
        labels = torch.full_like(ids, IGNORED)
        most = min(40, length // 4)
        for row in range(rows):
            n = rng.randint(3, most)
            start = rng.randint(0, max(0, length - 3 * n))
            source, place = ids[row, start : start + n].clone(), start + n
            while place + n <= length:
                place += rng.randint(0, min(most, length - place - n))
                ids[row, place : place + n] = source
                labels[row, place + 1 : place + n] = source[1:]
                place += n
        return Batch(ids, labels, torch.ones(ids.shape), torch.ones_like(ids))


def train_base(name: str, work: Path, *, checkpoint_every: int = 250) -> Path:
    """Train the base ``name`` in ``work`` and return the folder with the finished model.

    Resumes at the last checkpoint. The folder holds stock ``config.json``, ``model.safetensors`` and tokenizer
    files, and ``training.json`` (tokens, minutes, losses) for the model card.
    """
    if name not in RECIPES:
        raise unknown_name("base model recipe", name, RECIPES)
    recipe = RECIPES[name]
    material = recipe.material()
    tokenizer = material.tokenizer()
    model = build_model(recipe.architecture)
    initialise(model, recipe.seed)
    trainer = Trainer(asdict(recipe), model, token_loss)
    trainer.load(work)
    start = trainer.progress.step
    batches = Stream(recipe, tokenizer, material).from_step(start)

    def stream() -> Iterator[tuple[float, Batch]]:
        for step, batch in enumerate(batches, start):
            if step in recipe.restarts:
                trainer.begin_anew()
            yield recipe.rate(step), batch

    train(trainer, stream(), work, label=name, total=recipe.total_steps, every=checkpoint_every)
    if trainer.progress.stopped:
        raise KBookError(
            f"training {name} failed: {trainer.progress.stopped}",
            where=str(work),
            remedy="lower the learning rate of its recipe and start in an empty folder",
        )
    return _finish(trainer, tokenizer, work / "model")


def _finish(trainer: Trainer, tokenizer: Any, folder: Path) -> Path:
    trainer.model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    report = {"recipe": trainer.recipe, "progress": asdict(trainer.progress)}
    write_atomic(folder / "training.json", json.dumps(report, indent=1).encode())
    return folder
