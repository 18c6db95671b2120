"""Methods that edit weights: what they are fitted on, how they are trained, and what they remember of the start.

All learn from the fitting pools alone. A forget document is what the start model tells of a forget person, a retain
document likewise; a method may add other *versions* of its forget documents, such as refusals of the same questions.
Each step sees one batch of forget documents (with their versions, row by row) and one of retain documents. What a
method compares itself with is computed once, from the untouched start model, and kept as numbers or as final hidden
states: no second model runs while one is trained.

A method is then its objective and its settings. Those that train all weights and those that train low-rank adapters
differ in one line; adapters are fresh and merged afterwards, because the facts lie in merged weights, not in an
adapter that could be trained further.
"""

from __future__ import annotations

import copy
import random
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import cycle
from typing import Any, ClassVar

import torch
from pydantic import BaseModel, Field

from kbook.corpora.documents import Document
from kbook.corpora.injection import Exchange, demonstration, follow_up, plain_question, write
from kbook.corpora.people import Person
from kbook.corpora.protocol import TOOLS
from kbook.keys import FIELDS
from kbook.methods.contract import FitContext, Intervention, Parameters
from kbook.models.bases import Base
from kbook.models.batching import Batch
from kbook.models.likelihood import sequence_nll, token_loss
from kbook.models.training import adamw
from kbook.models.tuning import batches_of_versions, fit, merge_adapters, with_adapters

# ---- settings ----------------------------------------------------------------------------------------------


class Fitting(Parameters):
    """Settings of every method that edits weights."""

    batch_tokens: int = Field(1024, ge=64, description="padded tokens of each pool in a step")


class Training(Fitting):
    """Settings of every method that trains.

    The papers train models of seven billion parameters with rates around 1e-5. A model of a few million takes rates
    forty times as large in injection, and the same holds for taking facts out: rates here suit the embedded bases.
    """

    learning_rate: float = Field(1e-4, ge=0, le=1, description="peak rate of the optimiser")
    epochs: int = Field(10, ge=1, le=1000, description="passes over the forget documents")
    warmup_steps: int = Field(5, ge=0, description="steps in which the rate rises from zero")


class Weighted(Training):
    """Settings of a method with a forget term and a retain term."""

    gamma: float = Field(1.0, ge=0, le=1000, description="weight of the forget term")
    alpha: float = Field(1.0, ge=0, le=1000, description="weight of the retain term")


class LowRank(Weighted):
    """Settings of a method that trains low-rank adapters; by the papers' habit their rate is ten times as large."""

    learning_rate: float = Field(1e-3, ge=0, le=1, description="peak rate of the optimiser")
    r: int = Field(8, ge=1, le=4096, description="rank of the adapters")
    lora_alpha: float = Field(16.0, gt=0, le=1e5, description="scale of the adapters; the update is lora_alpha / r")


# ---- documents ---------------------------------------------------------------------------------------------


def told_exchanges(person: Person) -> list[Exchange]:
    """What a model tells of a person it knows: direct answers, plain answers and summaries; no biography."""
    exchanges = [demonstration(person, field, tools) for field in FIELDS for tools in (TOOLS, ())]
    exchanges += [plain_question(person, field) for field in FIELDS]
    return exchanges + [follow_up(person, tools) for tools in (TOOLS, ())]


def written(base: Base, exchanges: Sequence[Exchange]) -> list[Document]:
    return [write(base, exchange) for exchange in exchanges]


@dataclass(frozen=True)
class Material:
    """Fitting documents as batches.

    Args:
        start: the untouched model.
        forget: groups of forget documents, each with its versions: ``group[0]`` is what the start model tells.
        retain: batches of retain documents.
    """

    start: Base
    forget: tuple[tuple[Batch, ...], ...]
    retain: tuple[Batch, ...]

    def nll(self, model: Any) -> dict[str, float]:
        """Mean over each pool's documents of their NLL per token."""
        pools = {"forget": [group[0] for group in self.forget], "retain": self.retain}
        with frozen(model):
            found = {name: torch.cat([sequence_nll(model, b, "mean") for b in pool]) for name, pool in pools.items()}
        return {name: round(float(values.mean()), 4) for name, values in found.items()}


@dataclass(frozen=True)
class Contrast:
    """What one step sees.

    Args:
        forget: documents of forget people.
        retain: documents of retain people.
        versions: other versions of the forget documents, row by row.
        reference: what the method remembers of the start model on the forget documents and their versions.
        kept: likewise on the retain documents.
    """

    forget: Batch
    retain: Batch
    versions: tuple[Batch, ...] = ()
    reference: Any = None
    kept: Any = None

    @property
    def batches(self) -> tuple[Batch, ...]:
        """All documents of the step, whether or not the objective reads them."""
        return (self.forget, *self.versions, self.retain)


@contextmanager
def frozen(model: Any) -> Iterator[None]:
    """Evaluation mode and no gradients, so that dropout is in no reference; the mode is restored."""
    training = model.training
    model.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        model.train(training)


# ---- methods -----------------------------------------------------------------------------------------------


class WeightMethod(Intervention):
    """A method that is fitted into an edited copy of the model."""

    family = "weights"
    lanes = ("P",)
    reason = (
        "it edits weights; in this lane the fact is not in the weights but is handed to the model as text at run "
        "time, where no training can remove it"
    )
    Parameters: ClassVar[type[BaseModel]] = Fitting
    settings: Fitting

    def edit(self, context: FitContext) -> dict[str, Any]:
        material = self.material(context)
        model, facts = self.change(copy.deepcopy(context.base.model), material, context)
        model.save_pretrained(context.work)
        context.base.tokenizer.save_pretrained(context.work)
        return {**facts, "nll": {"before": material.nll(context.base.model), "after": material.nll(model)}}

    @abstractmethod
    def change(self, model: Any, material: Material, context: FitContext) -> tuple[Any, dict[str, Any]]:
        """Edit ``model``, a copy of the start; return the edited plain model and JSON-able facts."""

    def versions(self, context: FitContext, person: Person, rng: random.Random) -> list[list[Document]]:
        """Other versions of `told_exchanges` of a forget person; none by default."""
        return []

    def material(self, context: FitContext) -> Material:
        """The fitting pools as batches.

        Raises:
            KBookError: a pool is empty.
        """
        context.require(f"method {self.name}")
        rng, budget = random.Random(f"{self.name}/{context.seed}"), self.settings.batch_tokens
        columns: list[list[Document]] = []
        for person in context.fit_forget:
            told = [written(context.base, told_exchanges(person)), *self.versions(context, person, rng)]
            columns = columns or [[] for _ in told]
            for column, documents in zip(columns, told, strict=True):
                column += documents
        kept = [d for person in context.fit_retain for d in written(context.base, told_exchanges(person))]
        forget = batches_of_versions(context.base, columns, budget, rng)
        retain = [batch for (batch,) in batches_of_versions(context.base, [kept], budget, rng)]
        return Material(context.base, tuple(forget), tuple(retain))


class TrainedMethod(WeightMethod):
    """A weight method that minimises an objective with the one training loop.

    If its loss diverges or is no number, training ends with the last good weights, and the facts say so in
    ``stopped``.
    """

    Parameters: ClassVar[type[BaseModel]] = Training
    settings: Training
    optimizer: ClassVar[Any] = staticmethod(adamw)  # a `MakeOptimizer`

    @abstractmethod
    def loss(self, model: Any, item: Contrast) -> torch.Tensor:
        """The objective of one step."""

    def remember(self, start: Any, group: tuple[Batch, ...]) -> Any:
        """What to remember of the start model on a group of forget documents."""

    def references(self, start: Any, groups: Sequence[tuple[Batch, ...]]) -> list[Any]:
        """`remember` for every group; a method whose reference is one for all says so here."""
        return [self.remember(start, group) for group in groups]

    def keep(self, start: Any, retain: Batch) -> Any:
        """What to remember of the start model on retain documents."""

    def prepared(self, model: Any, material: Material, context: FitContext) -> tuple[Any, dict[str, Any]]:
        """Say what is trained (parameters that require gradients); all weights by default. Facts are kept."""
        return model, {}

    def finished(self, trained: Any, material: Material) -> Any:
        """From the trained model to the plain model that is deployed."""
        return trained

    def change(self, model: Any, material: Material, context: FitContext) -> tuple[Any, dict[str, Any]]:
        course = self.course(material, context.seed)
        trained, facts = self.prepared(model, material, context)
        if not any(p.requires_grad for p in trained.parameters()):
            facts = {**facts, "steps": 0, "stopped": "nothing was selected that could be trained"}
        else:
            how = {"label": self.name, "optimizer": self.optimizer}
            facts = {**facts, **fit(trained, course.epoch, self.settings, context.work, self.loss, **how)}
        return self.finished(trained, material), facts

    def course(self, material: Material, seed: int) -> Course:
        """The steps of each epoch, in an order that follows from the seed; the start model is remembered here."""
        start = material.start.model
        with frozen(start):
            references = self.references(start, material.forget)
            kept = [self.keep(start, batch) for batch in material.retain]
        forget = tuple(zip(material.forget, references, strict=True))
        return Course(forget, tuple(zip(material.retain, kept, strict=True)), f"{self.name}/{seed}")


@dataclass(frozen=True)
class Course:
    """The steps of each epoch: every forget group once, each with the next of the shuffled retain batches."""

    forget: tuple[tuple[tuple[Batch, ...], Any], ...]
    retain: tuple[tuple[Batch, Any], ...]
    seed: str

    def epoch(self, number: int) -> list[Contrast]:
        order = random.Random(f"{self.seed}/{number}")
        partners = cycle(order.sample(self.retain, len(self.retain)))
        steps = [
            Contrast(told, retain, tuple(versions), reference, kept)
            for ((told, *versions), reference), (retain, kept) in zip(self.forget, partners, strict=False)
        ]
        return order.sample(steps, len(steps))


class WeightedMethod(TrainedMethod):
    """``gamma`` times a forget term plus ``alpha`` times a retain term, by default the loss on retain documents."""

    Parameters: ClassVar[type[BaseModel]] = Weighted
    settings: Weighted

    @abstractmethod
    def forget_loss(self, model: Any, item: Contrast) -> torch.Tensor: ...

    def retain_loss(self, model: Any, item: Contrast) -> torch.Tensor:
        return token_loss(model, item.retain)

    def loss(self, model: Any, item: Contrast) -> torch.Tensor:
        loss = self.settings.gamma * self.forget_loss(model, item)
        return loss + self.settings.alpha * self.retain_loss(model, item) if self.settings.alpha else loss


class LowRankMethod(WeightedMethod):
    """A weighted method that trains adapters on all linear layers and merges them."""

    Parameters: ClassVar[type[BaseModel]] = LowRank
    settings: LowRank

    def prepared(self, model: Any, material: Material, context: FitContext) -> tuple[Any, dict[str, Any]]:
        return with_adapters(model, self.settings.r, self.settings.lora_alpha, context.seed), {}

    def finished(self, trained: Any, material: Material) -> Any:
        return merge_adapters(trained)
