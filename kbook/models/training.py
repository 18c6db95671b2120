"""What all training shares: optimiser, schedule, checkpoints, loss curve, and a stop when it goes wrong.

Pretraining, injection and unlearning differ in their batches and their objective, not in how a step is
taken or how a run survives an interruption. A run that is resumed at its last checkpoint ends with the
same bytes as one that never stopped.
"""

from __future__ import annotations

import json
import math
import time
import warnings
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from tqdm import tqdm

from kbook.errors import KBookError
from kbook.files import set_aside, write_atomic
from kbook.models.batching import IGNORED, Batch

Objective = Callable[[Any, Any], torch.Tensor]
"""``(model, item) -> loss``; an item is a `Batch` or whatever else the objective reads."""
MakeOptimizer = Callable[[list[torch.nn.Parameter]], torch.optim.Optimizer]
"""Parameters to an optimiser whose state of each is ``step``, ``exp_avg`` and ``exp_avg_sq``."""

CHECKPOINT = "checkpoint.safetensors"
POINT = 10
"""Steps in one point of a loss curve."""


@dataclass
class Progress:
    """What a checkpoint must remember beside tensors.

    ``losses`` holds a step and the mean loss of the last `POINT`; ``tokens`` and ``supervised`` count what
    was read and what carried loss, in items that are a batch or have ``batches``; ``began`` is the step at which the
    optimiser's moments were last empty.
    """

    step: int = 0
    began: int = 0
    tokens: int = 0
    supervised: int = 0
    seconds: float = 0.0
    losses: list[tuple[int, float]] = field(default_factory=list)
    window: list[float] = field(default_factory=list)
    stopped: str = ""

    def note(self, loss: float, finite: bool) -> None:
        """Take one step's loss into the curve; set ``stopped`` if training has gone wrong."""
        self.step += 1
        self.window.append(loss)
        if not finite:
            self.stopped = f"the loss ({loss:g}) or its gradient is not finite at step {self.step}"
        elif len(self.window) >= POINT:
            self.losses.append((self.step, round(sum(self.window) / len(self.window), 4)))
            self.window = []
            self._look_for_divergence()

    def count(self, item: Any) -> None:
        for batch in (item,) if isinstance(item, Batch) else getattr(item, "batches", ()):
            self.tokens += int(batch.mask.sum())
            self.supervised += int((batch.labels != IGNORED).sum())

    def _look_for_divergence(self) -> None:
        highest, last = max(value for _, value in self.losses[:3]), self.losses[-1][1]
        if last > highest + max(1.0, abs(highest)):
            self.stopped = f"the loss rose from {highest:g} to {last:g} by step {self.step}"


def warm_then_linear(peak: float, step: int, warmup: int, left: float, floor: float) -> float:
    """Learning rate: linear warm-up, constant, then linear down to ``floor`` times the peak.

    Args:
        peak: the rate between.
        step: from 0.
        warmup: steps of the warm-up.
        left: what remains of the run as a multiple of the decay's length; above 1 the rate is constant.
        floor: share of the peak at which the decay ends.
    """
    return peak * min(1.0, (step + 1) / max(1, warmup)) * min(1.0, max(floor, left))


def adamw(parameters: list[torch.nn.Parameter], weight_decay: float = 0.0) -> torch.optim.Optimizer:
    """What everything is trained with, unless a method is its optimiser."""
    fused = all(p.device.type in ("cpu", "cuda") for p in parameters)
    return torch.optim.AdamW(parameters, lr=1e-9, betas=(0.9, 0.98), weight_decay=weight_decay, fused=fused)


@dataclass
class Trainer:
    """A model, its optimiser and how far they are; ``recipe`` is what a checkpoint must agree with."""

    recipe: dict[str, Any]
    model: Any
    objective: Objective
    progress: Progress = field(default_factory=Progress)
    make_optimizer: MakeOptimizer = adamw

    def __post_init__(self) -> None:
        self.trained = {name: p for name, p in self.model.named_parameters() if p.requires_grad}
        self.optimizer = self.make_optimizer(list(self.trained.values()))

    def set_rate(self, rate: float) -> None:
        for group in self.optimizer.param_groups:
            group["lr"] = rate

    def begin_anew(self) -> None:
        """Forget the optimiser's moments: a warm restart."""
        self.optimizer.state.clear()
        self.progress.began = self.progress.step

    def step(self, item: Any) -> float:
        """Take one step and return its loss; weights stay as they are if loss or gradient is not finite."""
        device = next(iter(self.trained.values())).device
        with torch.random.fork_rng([device] if device.type == "cuda" else []):
            torch.manual_seed(self.progress.step)  # dropout, if any, must not depend on interruptions
            loss = self.objective(self.model, item)
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(list(self.trained.values()), 1.0)
        value = float(loss.detach())
        finite = math.isfinite(value) and math.isfinite(float(norm))
        if finite:
            self.optimizer.step()
        self.optimizer.zero_grad()
        self.progress.count(item)
        self.progress.note(value, finite)
        return value

    def save(self, folder: Path) -> None:
        """Write a checkpoint, atomically: weights and moments as tensors, progress and recipe as JSON."""
        tensors = {f"model/{name}": p.detach().contiguous() for name, p in self.trained.items()}
        for name, parameter in self.trained.items():
            state = self.optimizer.state.get(parameter, {})
            tensors |= {f"{m}/{name}": state[m].contiguous() for m in ("exp_avg", "exp_avg_sq") if m in state}
        meta = {"progress": json.dumps(asdict(self.progress)), "recipe": json.dumps(self.recipe)}
        write_atomic(folder / CHECKPOINT, save(tensors, metadata=meta))

    def load(self, folder: Path) -> bool:
        """Go on from a checkpoint of the same recipe, if there is one.

        Raises:
            KBookError: the checkpoint was made by another recipe.
        """
        path = folder / CHECKPOINT
        if not path.exists():
            return False
        try:
            with safe_open(path, "pt") as opened:
                meta, tensors = opened.metadata(), {key: opened.get_tensor(key) for key in opened.keys()}
        except SafetensorError as error:
            set_aside(path, f"is damaged ({error})")
            return False
        if json.loads(meta["recipe"]) != json.loads(json.dumps(self.recipe)):
            raise KBookError(
                "the checkpoint was made by another recipe",
                where=str(path),
                remedy="delete the folder to start anew, or restore the recipe that made it",
            )
        self._restore(Progress(**json.loads(meta["progress"])), tensors)
        return True

    @torch.no_grad()
    def _restore(self, progress: Progress, tensors: dict[str, torch.Tensor]) -> None:
        self.progress = progress
        self.optimizer.state.clear()
        taken = float(progress.step - progress.began)
        for name, parameter in self.trained.items():
            parameter.copy_(tensors[f"model/{name}"])
            if f"exp_avg/{name}" in tensors:
                moments = {m: tensors[f"{m}/{name}"].to(parameter.device) for m in ("exp_avg", "exp_avg_sq")}
                self.optimizer.state[parameter] = {"step": torch.tensor(taken), **moments}


def train(
    trainer: Trainer, stream: Iterable[tuple[float, Any]], folder: Path, *, label: str, total: int, every: int
) -> Progress:
    """Take a step for each ``(rate, item)`` of ``stream``; write a checkpoint to ``folder`` now and then.

    If the loss diverges or is no number, training ends with the weights of the last checkpoint, warns, and
    says why in ``progress.stopped``.

    Args:
        trainer: loaded from its checkpoint, if there was one.
        stream: the remaining steps, from ``trainer.progress.step`` on.
        folder: of the checkpoint.
        label: of the progress bar, which shows on a terminal only.
        total: steps of the whole run, as far as they are known.
        every: steps between checkpoints.
    """
    trainer.model.eval()
    if trainer.progress.stopped:
        return trainer.progress
    if not trainer.progress.step:
        trainer.save(folder)
    before, began = trainer.progress.seconds, time.monotonic()
    trainer.model.train()
    with tqdm(total=total, initial=trainer.progress.step, desc=label, unit="step", disable=None) as bar:
        for rate, item in stream:
            trainer.set_rate(rate)
            bar.set_postfix(loss=f"{trainer.step(item):.3f}", refresh=False)
            bar.update()
            trainer.progress.seconds = before + time.monotonic() - began
            if trainer.progress.stopped:
                _return_to_checkpoint(trainer, folder, label)
                break
            if trainer.progress.step % every == 0:
                trainer.save(folder)
    trainer.model.eval()
    return trainer.progress


def _return_to_checkpoint(trainer: Trainer, folder: Path, label: str) -> None:
    reason = trainer.progress.stopped
    trainer.load(folder)
    trainer.progress.stopped = f"{reason}; training ended with the weights of step {trainer.progress.step}"
    trainer.save(folder)
    warnings.warn(f"{label}: {trainer.progress.stopped}", stacklevel=3)
