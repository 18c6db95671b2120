"""Tuning a model on documents: injection of facts into weights, and the loop that weight methods train with.

Injection trains either all weights or low-rank adapters on all linear layers, which are then merged in
float32. Both write a stock model folder. Everything follows from the settings and a seed, and an
interrupted run goes on at its last checkpoint.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol

import torch

from kbook.corpora.documents import Pools, Writer
from kbook.corpora.injection import lesson, replay, write
from kbook.corpora.people import Person
from kbook.models.bases import Base
from kbook.models.batching import Batch, Versions, by_length, collate, encode
from kbook.models.likelihood import token_loss
from kbook.models.training import MakeOptimizer, Objective, Trainer, adamw, train, warm_then_linear
from kbook.profiles import FullTuning, LoraTuning
from kbook.store import CHECKPOINTS

DECAY, FLOOR = 0.5, 0.03
"""The rate falls over the last half of a run to this share of its peak."""
CHUNK = 300
"""Documents among which like lengths are looked for: few enough that neighbouring steps differ in kind."""
REPLAY_POOL = 3_000
PROBES = 16


class Schedule(Protocol):
    """What `fit` reads of an injection's or a method's settings (pydantic models)."""

    @property
    def learning_rate(self) -> float: ...

    @property
    def epochs(self) -> int: ...

    @property
    def warmup_steps(self) -> int: ...

    def model_dump(self, *, mode: str) -> dict[str, Any]: ...


def fit(
    model: Any,
    batches_per_epoch: Callable[[int], list[Any]],
    settings: Schedule,
    work: Path,
    objective: Objective = token_loss,
    *,
    label: str = "tuning",
    checkpoint_every: int = 100,
    optimizer: MakeOptimizer = adamw,
    after_epoch: Callable[[int], None] | None = None,
) -> dict[str, Any]:
    """Train the parameters of ``model`` that require gradients, in place.

    Args:
        model: a causal language model.
        batches_per_epoch: epoch number to its items; must give the same items whenever it is asked.
        settings: rate, epochs and warm-up; the rate falls linearly over the last half.
        work: its folder ``checkpoints`` holds the checkpoint of an interrupted run.
        objective: ``(model, item) -> loss``.
        label: of the progress bar.
        checkpoint_every: steps between checkpoints.
        optimizer: makes the optimiser; its rate is set by the schedule.
        after_epoch: called with the number of each epoch that is over, and again with one that is gone through anew
            after an interruption.

    Returns:
        JSON-able facts: ``steps``, ``losses`` (step, mean loss), ``tokens``, ``seconds``,
        ``seconds_per_step`` and ``stopped``, which says why training ended early with the last good weights
        ("" if it did not).

    Raises:
        KBookError: ``work`` holds the checkpoint of a run with other settings.
    """
    recipe = {"label": label, "settings": settings.model_dump(mode="json")}
    trainer = Trainer(recipe, model, objective, make_optimizer=optimizer)
    folder = work / CHECKPOINTS
    trainer.load(folder)
    total = settings.epochs * len(batches_per_epoch(0))
    stream = _steps(batches_per_epoch, settings, trainer.progress.step, after_epoch or (lambda epoch: None))
    progress = train(trainer, stream, folder, label=label, total=total, every=checkpoint_every)
    return {
        "steps": progress.step,
        "losses": [list(point) for point in progress.losses],
        "tokens": progress.tokens,
        "seconds": round(progress.seconds, 1),
        "seconds_per_step": round(progress.seconds / max(1, progress.step), 4),
        "stopped": progress.stopped,
    }


def _steps(
    batches_per_epoch: Callable[[int], list[Any]], settings: Schedule, start: int, after_epoch: Callable[[int], None]
) -> Iterator[tuple[float, Any]]:
    """Rates and items from step ``start`` on; the decay goes by epochs, whatever their lengths."""
    step = 0
    for epoch in range(settings.epochs):
        items = batches_per_epoch(epoch)
        for i, item in enumerate(items):
            if step >= start:
                left = (1 - (epoch + i / len(items)) / settings.epochs) / DECAY
                yield warm_then_linear(settings.learning_rate, step, settings.warmup_steps, left, FLOOR), item
            step += 1
        if step >= start:
            after_epoch(epoch)


def inject(
    base: Base, people: Sequence[Person], settings: FullTuning | LoraTuning, seed: int, work: Path
) -> dict[str, Any]:
    """Teach a copy of ``base`` the facts of ``people``; write model and tokenizer into ``work``.

    Args:
        base: stays as it is.
        people: whose facts are taught (`kbook.corpora.injection.lesson`).
        settings: of full or low-rank training.
        seed: of the order of documents, the strangers of the replay and the adapters' start.
        work: folder of the result.

    Returns:
        The facts of `fit`, ``tokens_per_epoch``, and for adapters ``merge``: the largest and the mean
        difference of a logit between the model as it was trained and as it was written.
    """
    model = copy.deepcopy(base.model)
    course = Course(base, tuple(people), settings, seed)
    if isinstance(settings, LoraTuning):
        model, facts = _tune_adapters(model, course, settings, work)
    else:
        facts = fit(model, course.epoch, settings, work, label="injection")
    model.save_pretrained(work)
    base.tokenizer.save_pretrained(work)
    return {**facts, "tokens_per_epoch": round(facts["tokens"] / settings.epochs)}


@dataclass(frozen=True)
class Course:
    """What is taught, epoch by epoch: every person's lesson, and replay with new strangers each time."""

    base: Base
    people: tuple[Person, ...]
    settings: FullTuning
    seed: int

    def epoch(self, number: int) -> list[Batch]:
        rng = random.Random(f"injection/{self.seed}/{number}")
        taught = [write(self.base, exchange) for person in self.people for exchange in lesson(person, rng)]
        writer = Writer(_pools(self.seed), rng, self.base.habits)
        documents = taught + replay(self.base, writer, round(self.settings.replay * len(taught)))
        return batches_of(self.base, documents, self.settings.batch_tokens, rng)


def batches_of(base: Base, documents: Sequence[Any], budget: int, rng: random.Random) -> list[Batch]:
    """Documents in random order, in batches of like length and at most ``budget`` padded tokens."""
    return [batch for (batch,) in batches_of_versions(base, [documents], budget, rng)]


def batches_of_versions(
    base: Base, versions: Sequence[Sequence[Any]], budget: int, rng: random.Random
) -> list[tuple[Batch, ...]]:
    """As `batches_of`, for documents in several versions: row ``i`` of each of a group's batches is one document.

    Args:
        base: whose tokenizer reads them.
        versions: each version of all documents, in the same order.
        budget: padded tokens of each batch, at most.
        rng: of the order.
    """
    rows = [Versions(row) for row in zip(*(encode(base.tokenizer, v) for v in versions), strict=True)]
    rng.shuffle(rows)
    chunks = (rows[i : i + CHUNK] for i in range(0, len(rows), CHUNK))
    groups = [[row.encoded for row in group] for chunk in chunks for group in by_length(chunk, budget, rng) if group]
    rng.shuffle(groups)
    return [tuple(collate(version) for version in zip(*group, strict=True)) for group in groups]


@lru_cache(maxsize=2)
def _pools(seed: int) -> Pools:
    return Pools.make(seed + 1, REPLAY_POOL)


def _tune_adapters(model: Any, course: Course, settings: LoraTuning, work: Path) -> tuple[Any, dict[str, Any]]:
    """Train adapters, merge them in float32, and measure what merging (and the way back to dtype) changed."""
    adapted = with_adapters(model, settings.r, settings.alpha, course.seed, settings.dropout)
    facts = fit(adapted, course.epoch, settings, work, label="injection")
    probe = course.epoch(0)[0]
    before = _logits(adapted, probe)
    merged = merge_adapters(adapted)
    change = (_logits(merged, probe) - before).abs()
    merge = {"max_difference": float(change.max()), "mean_difference": float(change.mean())}
    return merged, {**facts, "merge": merge}


def with_adapters(model: Any, r: int, alpha: float, seed: int, dropout: float = 0.0) -> Any:
    """Put low-rank adapters on all linear layers; they alone are trained, and at the start they change nothing.

    Args:
        model: is changed.
        r: rank.
        alpha: scale; the update is multiplied by alpha / r.
        seed: of the adapters' start.
        dropout: on the adapters' input.
    """
    from peft import LoraConfig, get_peft_model

    config = LoraConfig(
        r=r,
        lora_alpha=alpha,  # type: ignore[arg-type]  # peft divides it by r: a float serves
        lora_dropout=dropout,
        target_modules="all-linear",
        task_type="CAUSAL_LM",
    )
    with torch.random.fork_rng([model.device] if model.device.type == "cuda" else []):
        torch.manual_seed(seed)  # peft draws the adapters' start from the global generator
        return get_peft_model(model, config)


def merge_adapters(adapted: Any) -> Any:
    """Add adapters to the weights that they sit on, in float32, and return the plain model in its own type."""
    dtype = adapted.get_base_model().dtype
    return adapted.float().merge_and_unload().to(dtype)


@torch.no_grad()
def _logits(model: Any, probe: Batch) -> torch.Tensor:
    """Logits of the real tokens of a few documents."""
    ids, mask = probe.ids[:PROBES].to(model.device), probe.mask[:PROBES].to(model.device)
    logits: torch.Tensor = model(input_ids=ids, attention_mask=mask).logits
    return logits[mask.bool()].float()
