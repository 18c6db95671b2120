"""Training an embedded base model from scratch: `kbook base train NAME`.

Everything follows from the recipe and its seed: pools, tokenizer, initial weights and every batch. Training
resumes at its last checkpoint after any interruption. About fifteen million tokens and half an hour to an hour
on two cores give a model that follows the ReAct protocol and copies names and values it has never seen.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from safetensors.torch import load_file, save_file
from tqdm import tqdm

from kbook.corpora.documents import STAGES, Pools, Writer, draw
from kbook.errors import KBookError, unknown_name
from kbook.models.batching import IGNORED, Batch, by_length, collate, encode
from kbook.models.fused import hidden_states
from kbook.models.initialisation import initialise
from kbook.models.tokenizer import train_tokenizer
from kbook.files import write_atomic


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


@dataclass(frozen=True)
class BaseRecipe:
    """How one embedded base is made. ``steps`` are optimiser steps per stage of `documents.STAGES`."""

    architecture: Architecture = field(default_factory=Architecture)
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

    @property
    def total_steps(self) -> int:
        return sum(n for _, n in self.steps)

    def rate(self, step: int) -> float:
        """Learning rate at a step: warm-up, constant, then linear."""
        left = (self.total_steps - step) / (self.decay * self.total_steps)
        return self.learning_rate * min(1.0, (step + 1) / self.warmup) * min(1.0, max(self.final_rate, left))


RECIPES: dict[str, BaseRecipe] = {"llama-tiny": BaseRecipe()}


@dataclass
class Progress:
    """What a checkpoint must remember beside tensors."""

    step: int = 0
    tokens: int = 0
    supervised: int = 0
    seconds: float = 0.0
    losses: list[tuple[int, float]] = field(default_factory=list)


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
    )
    return make_model(config)


def token_loss(model: Any, batch: Batch) -> tuple[torch.Tensor, int]:
    """Weighted cross-entropy on supervised tokens; the output head sees only their positions.

    Returns:
        Loss (nats per weighted token) and the number of supervised tokens.
    """
    hidden = hidden_states(model, batch.ids)[:, :-1]
    targets = batch.labels[:, 1:]
    chosen = targets != IGNORED
    losses = F.cross_entropy(model.lm_head(hidden[chosen]).float(), targets[chosen], reduction="none")
    weights = batch.weights[:, 1:][chosen]
    return (losses * weights).sum() / weights.sum(), int(chosen.sum())


class Stream:
    """Batches of the recipe from a given step on; step ``n`` is the same batch however training got there."""

    chunk = 300

    def __init__(self, recipe: BaseRecipe, tokenizer: Any, pools: Pools) -> None:
        self.recipe, self.tokenizer, self.pools = recipe, tokenizer, pools
        self.answer_token = tokenizer.convert_tokens_to_ids("ĠAnswer")

    def from_step(self, start: int) -> Iterator[Batch]:
        step = 0
        for stage, n in self.recipe.steps:
            documents = self._documents(stage)
            for _ in range(n):
                rng = random.Random(f"repeat/{self.recipe.seed}/{step}")
                repeats = rng.random() < self.recipe.repeat_share
                encoded = None if repeats else next(documents)
                if step >= start:
                    yield self._repeats(step, rng) if encoded is None else collate(
                        encoded, answer_token=self.answer_token, answer_weight=self.recipe.answer_weight
                    )
                step += 1

    def _documents(self, stage: str) -> Iterator[list[Any]]:
        number = 0
        while True:
            rng = random.Random(f"{stage}/{self.recipe.seed}/{number}")
            writer = Writer(self.pools, rng)
            drawn = encode(self.tokenizer, [draw(STAGES[stage], writer) for _ in range(self.chunk)])
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


@dataclass
class Trainer:
    """A model, its optimiser and how far they are."""

    recipe: BaseRecipe
    model: Any
    progress: Progress = field(default_factory=Progress)

    def __post_init__(self) -> None:
        self.optimizer = torch.optim.AdamW(
            self.model.parameters(), lr=1e-9, betas=(0.9, 0.98), weight_decay=0.0, fused=True
        )

    def step(self, batch: Batch) -> float:
        for group in self.optimizer.param_groups:
            group["lr"] = self.recipe.rate(self.progress.step)
        loss, supervised = token_loss(self.model, batch)
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        self.optimizer.zero_grad()
        self.progress.step += 1
        self.progress.tokens += int(batch.mask.sum())
        self.progress.supervised += supervised
        return float(loss.detach())

    def save(self, folder: Path) -> None:
        """Write a checkpoint: one safetensors file (weights and both moments) and one JSON, each atomically."""
        tensors = {f"model/{k}": v.contiguous() for k, v in self.model.named_parameters()}
        for name, parameter in self.model.named_parameters():
            state = self.optimizer.state[parameter]
            tensors |= {f"{moment}/{name}": state[moment].contiguous() for moment in ("exp_avg", "exp_avg_sq")}
        meta = {"progress": json.dumps(asdict(self.progress)), "recipe": json.dumps(asdict(self.recipe))}
        folder.mkdir(parents=True, exist_ok=True)
        save_file(tensors, folder / "checkpoint.tmp", metadata=meta)
        (folder / "checkpoint.tmp").replace(folder / "checkpoint.safetensors")

    def load(self, folder: Path) -> bool:
        """Go on from a checkpoint of the same recipe, if there is one."""
        from safetensors import safe_open

        path = folder / "checkpoint.safetensors"
        if not path.exists():
            return False
        with safe_open(path, "pt") as opened:
            meta = opened.metadata()
        if json.loads(meta["recipe"]) != json.loads(json.dumps(asdict(self.recipe))):
            raise KBookError(
                "the checkpoint was made by another recipe",
                where=str(path),
                remedy="delete the folder to start anew, or restore the recipe that made it",
            )
        tensors = load_file(path)
        self.progress = Progress(**json.loads(meta["progress"]))
        with torch.no_grad():
            for name, parameter in self.model.named_parameters():
                parameter.copy_(tensors[f"model/{name}"])
                self.optimizer.state[parameter] = {
                    "step": torch.tensor(float(self.progress.step)),
                    "exp_avg": tensors[f"exp_avg/{name}"],
                    "exp_avg_sq": tensors[f"exp_avg_sq/{name}"],
                }
        return True


def train_base(name: str, work: Path, *, checkpoint_every: int = 250) -> Path:
    """Train the base ``name`` in ``work`` and return the folder with the finished model.

    Resumes at the last checkpoint. The folder holds stock ``config.json``, ``model.safetensors`` and tokenizer
    files, and ``training.json`` (tokens, minutes, losses) for the model card.
    """
    if name not in RECIPES:
        raise unknown_name("base model recipe", name, RECIPES)
    recipe = RECIPES[name]
    pools = Pools.make(recipe.seed)
    tokenizer = train_tokenizer(pools, recipe.architecture.vocabulary, recipe.seed)
    model = build_model(recipe.architecture)
    initialise(model, recipe.seed)
    trainer = Trainer(recipe, model)
    trainer.load(work)
    stream = Stream(recipe, tokenizer, pools).from_step(trainer.progress.step)
    _run(trainer, stream, work, checkpoint_every, name)
    return _finish(trainer, tokenizer, work / "model")


def _run(trainer: Trainer, stream: Iterator[Batch], work: Path, every: int, name: str) -> None:
    model, progress, recipe = trainer.model, trainer.progress, trainer.recipe
    model.train()
    bar = tqdm(total=recipe.total_steps, initial=progress.step, desc=name, unit="step", disable=None)
    smooth, before = None, progress.seconds
    began = time.monotonic()
    for batch in stream:
        loss = trainer.step(batch)
        smooth = loss if smooth is None else 0.98 * smooth + 0.02 * loss
        bar.update()
        bar.set_postfix(loss=f"{smooth:.3f}", refresh=False)
        if progress.step % 50 == 0:
            progress.losses.append((progress.step, round(smooth, 4)))
        if progress.step % every == 0:
            progress.seconds = before + time.monotonic() - began
            trainer.save(work)
    progress.seconds = before + time.monotonic() - began
    bar.close()


def _finish(trainer: Trainer, tokenizer: Any, folder: Path) -> Path:
    trainer.model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    report = {"recipe": asdict(trainer.recipe), "progress": asdict(trainer.progress)}
    write_atomic(folder / "training.json", json.dumps(report, indent=1).encode())
    return folder
