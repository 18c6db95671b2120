"""Fine-tuning on questions and answers in steps of a fixed number of documents, as protocol B trains.

A step of the optimiser may consist of several micro-batches (gradient accumulation). Whatever an objective aggregates,
it aggregates inside a micro-batch; a step takes their mean.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch

from kbook.corpora.documents import Document
from kbook.models.bases import Base
from kbook.models.batching import Batch, collate, encode
from kbook.models.likelihood import token_loss
from kbook.models.training import Objective, adamw
from kbook.models.tuning import fit
from kbook.profiles import Teaching


@dataclass(frozen=True)
class Step:
    """The micro-batches of one step of the optimiser: batches, or whatever else has ``batches``."""

    items: tuple[Any, ...]

    @property
    def batches(self) -> tuple[Batch, ...]:
        return tuple(b for item in self.items for b in ((item,) if isinstance(item, Batch) else item.batches))


def averaged(objective: Objective) -> Objective:
    """The mean of an objective over the micro-batches of a step."""

    def loss(model: Any, step: Step) -> torch.Tensor:
        return torch.stack([objective(model, item) for item in step.items]).mean()

    return loss


def in_steps(items: Sequence[Any], accumulation: int) -> list[Step]:
    """Items in their order, ``accumulation`` of them a step; the last step may have fewer."""
    return [Step(tuple(items[i : i + accumulation])) for i in range(0, len(items), accumulation)]


def micro_batches(base: Base, documents: Sequence[Document], size: int, rng: random.Random) -> list[Batch]:
    """Documents in random order, ``size`` of them a batch; the last one may have fewer."""
    encoded = encode(base.tokenizer, documents)
    rng.shuffle(encoded)
    return [collate(encoded[i : i + size]) for i in range(0, len(encoded), size)]


@dataclass(frozen=True)
class Plan:
    """A `Schedule` in steps."""

    learning_rate: float
    epochs: int
    warmup_steps: int

    def model_dump(self, *, mode: str) -> dict[str, Any]:
        return asdict(self)


def teach(base: Base, documents: Sequence[Document], settings: Teaching, work: Path, seed: int = 0) -> dict[str, Any]:
    """Fine-tune all weights of a copy of ``base`` on documents; write model and tokenizer into ``work``.

    Args:
        base: stays as it is.
        documents: what is taught, in another order each epoch.
        settings: rate, epochs, warm-up, weight decay and batches.
        work: folder of the result.
        seed: of the order.

    Returns:
        The facts of `fit`.
    """
    model = copy.deepcopy(base.model)
    how = settings.batches

    def epoch(number: int) -> list[Step]:
        rng = random.Random(f"teaching/{seed}/{number}")
        return in_steps(micro_batches(base, documents, how.size, rng), how.accumulation)

    plan = Plan(settings.learning_rate, settings.epochs, settings.warmup_epochs * len(epoch(0)))
    optimizer = partial(adamw, weight_decay=settings.weight_decay)
    facts = fit(model, epoch, plan, work, averaged(token_loss), label="teaching", optimizer=optimizer)
    model.save_pretrained(work)
    base.tokenizer.save_pretrained(work)
    return facts
