"""Unlearning on questions and answers: how protocol B fits the methods that train all weights.

Objective and memory of the start model are the method's own, as in protocol A. What differs is the material, questions
of one language, and that a judge sees the model after every epoch.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from kbook.corpora.documents import Document
from kbook.methods.weights import Material, TrainedMethod
from kbook.models.bases import Base
from kbook.models.teaching import averaged, in_steps, micro_batches
from kbook.models.tuning import fit

Judge = Callable[[Any, int], None]
"""``(model, epoch)``: called after each epoch, counted from 1, with the model as it then is."""


def unlearn(
    method: TrainedMethod,
    start: Base,
    forget: Sequence[Document],
    retain: Sequence[Document],
    work: Path,
    judge: Judge,
    *,
    size: int,
    accumulation: int,
    seed: int = 0,
) -> dict[str, Any]:
    """Train a copy of the start model by a method; nothing but what the judge keeps is left of it.

    Args:
        method: with its settings; it trains all weights.
        start: the model that knows everything.
        forget, retain: questions with their answers.
        work: its folder ``checkpoints`` holds the checkpoint of an interrupted run.
        judge: sees the model after every epoch.
        size: documents of each pool in a micro-batch.
        accumulation: micro-batches of a step.
        seed: of the order.

    Returns:
        The facts of `fit`.
    """
    rng = random.Random(f"unlearning/{seed}")
    pools = [micro_batches(start, documents, size, rng) for documents in (forget, retain)]
    material = Material(start, tuple((batch,) for batch in pools[0]), tuple(pools[1]))
    model, course = copy.deepcopy(start.model), method.course(material, seed)

    def after(epoch: int) -> None:
        model.eval()
        judge(model, epoch + 1)
        model.train()

    def steps(epoch: int) -> list[Any]:
        return in_steps(course.epoch(epoch), accumulation)

    return fit(model, steps, method.settings, work, averaged(method.loss), label=method.name, after_epoch=after)
