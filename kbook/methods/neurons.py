"""Feed-forward neurons that tell: zeroed (DEPN), or edited so that the secret sinks in the vocabulary (REVS).

A neuron is an input of a layer's feed-forward output matrix; its column is what it writes. Nothing is trained.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from pydantic import Field

from kbook.corpora.documents import text_of
from kbook.corpora.injection import demonstration, plain_question, write
from kbook.keys import FIELDS
from kbook.methods.activations import changed_outputs
from kbook.methods.contract import FitContext
from kbook.methods.representation import captured, read_through
from kbook.methods.weights import Fitting, Material, WeightMethod, frozen
from kbook.models.bases import Base
from kbook.models.batching import Batch
from kbook.models.likelihood import predictions

# ---- DEPN --------------------------------------------------------------------------------------------------


def told_probability(model: Any, batch: Batch) -> torch.Tensor:
    """Mean probability of each document's supervised tokens. Shape: ``(documents,)``; *unit*: share."""
    found = predictions(model, batch)
    return found.by_document(torch.exp(-found.losses()), "mean")


def integrated_gradients(model: Any, module: Any, batch: Batch, steps: int) -> torch.Tensor:
    """How much each neuron of one layer adds to the probability of what each document tells.

    The layer's neurons grow together from zero to their values, all others stay; midpoints of ``steps`` intervals.
    Summed over neurons it is the probability with the layer's neurons less that without them. Shape:
    ``(documents, neurons)``; *unit*: share.

    Source: Wu et al. 2310.20138, equation 3.
    """
    with torch.no_grad(), captured(module) as seen:
        read_through(model, batch.ids)
    values = seen[module][0]
    total = torch.zeros_like(values)
    for k in range(steps):
        scaled = (values * ((k + 0.5) / steps)).detach().requires_grad_(True)
        with neurons_set(module, scaled):
            told = told_probability(model, batch).sum()
        total += torch.autograd.grad(told, scaled)[0]
    return (values * total / steps).sum(1)


@contextmanager
def neurons_set(module: Any, values: torch.Tensor) -> Iterator[None]:
    """While inside, the module's input is ``values`` whatever it is given."""
    with changed_outputs({module: lambda _given, _output: torch.nn.functional.linear(values, module.weight)}):
        yield


def shared_neurons(attributions: torch.Tensor, share: float, texts: float, most: int) -> list[tuple[int, int]]:
    """Layer and neuron of those that matter in enough documents, the most widely shared first.

    Args:
        attributions: shape ``(documents, layers, neurons)``.
        share: a neuron matters to a document from this share of the document's largest attribution.
        texts: share of documents to which it must matter.
        most: at most so many.
    """
    largest = attributions.flatten(1).amax(1).clamp(min=torch.finfo(attributions.dtype).tiny)
    matters = (attributions >= share * largest[:, None, None]).float().mean(0)
    order = (matters + 1e-3 * attributions.mean(0) / largest.mean()).flatten().argsort(descending=True, stable=True)
    chosen = [divmod(int(i), attributions.shape[2]) for i in order[:most]]
    return [place for place in chosen if matters[place] >= texts]


class DEPNParameters(Fitting):
    """Settings of `DEPN`."""

    records: int = Field(32, ge=1, description="forget documents that are attributed, taken evenly from all")
    steps: int = Field(8, ge=1, le=1000, description="points of the path from zero to a neuron's value")
    share: float = Field(
        0.1, ge=0, le=1, description="of a document's largest attribution, from which a neuron matters"
    )
    texts: float = Field(0.5, ge=0, le=1, description="share of documents to which an erased neuron matters")
    neurons: int = Field(20, ge=0, description="neurons that are erased, at most")


class DEPN(WeightMethod):
    """Detect and edit privacy neurons: those to which integrated gradients trace the answers stop writing.

    One layer at a time is attributed, by the gradient of the probability, not of its logarithm; neurons that matter to
    most documents get a column of zeros.

    Source: Wu et al. 2310.20138 (EMNLP 2023), for BERT: 20 steps, 10 % of the maximum, half of the texts, 10 to 200
    neurons (500 at most), the probability of a whole answer (here the mean of its tokens', which does not vanish for a
    long one). K-Bench ports it with 5 steps, 30 records and 30 neurons a layer to adapter columns alone, which does
    nothing to a merged model. Pitfall: neurons that all answers share also hold the format of an answer.
    """

    name, title = "depn", "DEPN"
    source = "Wu et al. 2310.20138, on the decoder's own matrices; mean token probability"
    Parameters = DEPNParameters
    settings: DEPNParameters

    def change(self, model: Any, material: Material, context: FitContext) -> tuple[Any, dict[str, Any]]:
        modules = [layer.mlp.down_proj for layer in model.model.layers]
        batches = thinned([group[0] for group in material.forget], self.settings.records)
        found = torch.cat(
            [
                torch.stack([integrated_gradients(model, m, batch, self.settings.steps) for m in modules], dim=1)
                for batch in batches
            ]
        )
        settings = self.settings
        chosen = shared_neurons(found, settings.share, settings.texts, settings.neurons)
        with torch.no_grad():
            for layer, neuron in chosen:
                modules[layer].weight[:, neuron] = 0
        return model, {"documents": len(found), "erased": [list(place) for place in chosen]}


def thinned(batches: Sequence[Batch], most: int) -> list[Batch]:
    """At most so many documents, taken evenly from all."""
    total = sum(len(b.ids) for b in batches)
    step, start, kept = max(1.0, total / most), 0, []
    wanted = {int(i * step) for i in range(min(most, total))}
    for batch in batches:
        rows = [row for row in range(len(batch.ids)) if start + row in wanted]
        start += len(batch.ids)
        if rows:
            kept.append(Batch(batch.ids[rows], batch.labels[rows], batch.weights[rows], batch.mask[rows]))
    return kept


# ---- REVS --------------------------------------------------------------------------------------------------


def rank_of(logits: torch.Tensor, token: int) -> torch.Tensor:
    """How many tokens have a higher logit. Shape: ``(..., vocabulary)`` to ``(...,)``."""
    return (logits > logits[..., token, None]).sum(-1)


@dataclass(frozen=True)
class Lens:
    """Vectors of the residual stream as logits, by the final norm and the output head, and back.

    Shape: ``gain`` ``(width,)``, ``head`` ``(vocabulary, width)``.
    """

    gain: torch.Tensor
    head: torch.Tensor
    epsilon: float

    @classmethod
    def of(cls, model: Any) -> Lens:
        norm = model.model.norm
        return cls(norm.weight.detach().float(), model.lm_head.weight.detach().float(), norm.variance_epsilon)

    @cached_property
    def _inverse(self) -> torch.Tensor:
        return torch.linalg.pinv(self.head.T @ self.head, hermitian=True)

    def lengths(self, vectors: torch.Tensor) -> torch.Tensor:
        return (vectors.pow(2).mean(-1, keepdim=True) + self.epsilon).sqrt()

    def logits(self, vectors: torch.Tensor) -> torch.Tensor:
        return (vectors / self.lengths(vectors) * self.gain) @ self.head.T

    def direction(self, token: int) -> torch.Tensor:
        """The column of the head's pseudo-inverse that belongs to a token. Shape: ``(width,)``."""
        return self._inverse @ self.head[token]

    def lowered(self, vectors: torch.Tensor, direction: torch.Tensor, by: torch.Tensor) -> torch.Tensor:
        """Vectors whose logit of a token is lower, mapped back: exact for an invertible head, else least squares."""
        return vectors - by[:, None] * self.lengths(vectors) * (direction / self.gain)


def sunk(lens: Lens, columns: torch.Tensor, token: int, margin: tuple[int, int], rounds: int) -> torch.Tensor:
    """Neurons' columns in which a token's rank lies within ``margin``, or as near as ``rounds`` come.

    The logit is lowered by 10, and then by 1.3 times as much or 0.8 times as much. The norm scales all logits of a
    changed column alike, so that it changes no rank. Shape: ``(n, width)`` to the same.
    """
    direction = lens.direction(token)
    before, moved = lens.logits(columns), lens.head @ direction
    by = torch.full((len(columns),), 10.0).to(columns)
    for _ in range(rounds):
        rank = rank_of(before - by[:, None] * moved, token)
        low, high = rank < margin[0], rank > margin[1]
        if not (low | high).any():
            break
        by = torch.where(low, 1.3 * by, torch.where(high, 0.8 * by, by))
    return lens.lowered(columns, direction, by)


@dataclass(frozen=True)
class Secret:
    """One rare token of a value, and the ids before it, up to the place where it is told."""

    ids: torch.Tensor
    token: int


class REVSParameters(Fitting):
    """Settings of `REVS`; margins are shares of the vocabulary."""

    tokens: int = Field(1, ge=1, le=20, description="tokens of each value, the rarest first")
    neurons: int = Field(10, ge=0, description="neurons of a layer that are edited for one token")
    active: int = Field(100, ge=1, description="most active neurons among which they are chosen")
    residual: float = Field(0.08, ge=0, le=1, description="rank in a layer's output from which it is left alone")
    mlp: float = Field(0.08, ge=0, le=1, description="rank in the feed-forward part's output, likewise")
    margin: tuple[float, float] = Field((0.7, 0.78), description="where the token's rank in a neuron should lie")
    rounds: int = Field(100, ge=1, le=10_000, description="attempts to get there")


class REVS(WeightMethod):
    """Rank editing in the vocabulary space: neurons that promote a rare token of a secret are turned against it.

    For each value the rarest tokens are taken (by count in retain documents). In each layer whose output, at the place
    where the token is told, still ranks it high, the columns of active neurons that rank it highest are read as logits
    (final norm and head), that logit is lowered until the token has sunk, and the result is mapped back by the head's
    pseudo-inverse. No gradient and no retain data.

    Source: Ashuach et al. 2406.09325 (Findings of ACL 2025) and its code; for a vocabulary of 128,000 ranks of 10,000
    to 20,000, of 10,000 and of 90,000 to 100,000: the shares here. The code looks for a number of neurons by trial;
    here it is a setting. Pitfalls: a tied head is read, never written; tokens of one secret are part of others.
    """

    name, title = "revs", "REVS"
    source = "Ashuach et al. 2406.09325 and its code; margins as shares of the vocabulary, neurons by number"
    Parameters = REVSParameters
    settings: REVSParameters

    def change(self, model: Any, material: Material, context: FitContext) -> tuple[Any, dict[str, Any]]:
        counts = Counter(int(i) for batch in material.retain for i in batch.ids[batch.mask.bool()])
        lens, found = Lens.of(model), secrets(context, counts, self.settings.tokens)
        with frozen(model):
            edited = sum(self._sink(model, lens, secret) for secret in found)
        return model, {"secrets": len(found), "edits": edited}

    def _sink(self, model: Any, lens: Lens, secret: Secret) -> int:
        """Edit the neurons of every layer for one token; how many were edited."""
        layers = model.model.layers
        parts = [(layer, layer.mlp.down_proj) for layer in layers]
        with captured(*(module for pair in parts for module in pair)) as seen:
            read_through(model, secret.ids[None])
        settings, size = self.settings, len(lens.head)
        edited = 0
        for layer, down in parts:
            told = (seen[module][1][0, -1].float() for module in (layer, down))
            ranks = [int(rank_of(lens.logits(state), secret.token)) for state in told]
            if ranks[0] >= settings.residual * size or ranks[1] >= settings.mlp * size:
                continue
            chosen = self._chosen(lens, down.weight.float(), seen[down][0][0, -1], secret.token)
            margin = (int(settings.margin[0] * size), int(settings.margin[1] * size))
            columns = sunk(lens, down.weight[:, chosen].T.float(), secret.token, margin, settings.rounds)
            down.weight[:, chosen] = columns.T.to(down.weight)
            edited += len(chosen)
        return edited

    def _chosen(self, lens: Lens, weight: torch.Tensor, values: torch.Tensor, token: int) -> list[int]:
        """Of the most active neurons, those whose columns rank the token highest."""
        active = values.abs().topk(min(self.settings.active, len(values))).indices
        ranks = rank_of(lens.logits(weight[:, active].T), token)
        return [int(i) for i in active[ranks.argsort(stable=True)[: self.settings.neurons]]]


def secrets(context: FitContext, counts: Counter[int], tokens: int) -> list[Secret]:
    """The rarest tokens of every value of the forget pool, as the agent tells them and as a plain answer."""
    found: list[Secret] = []
    for person in context.fit_forget:
        for field in FIELDS:
            for exchange in (demonstration(person, field), plain_question(person, field)):
                text = text_of(write(context.base, exchange))
                found += _rarest(context.base, text, person.value(field), counts, tokens)
    return found


def _rarest(base: Base, text: str, value: str, counts: Counter[int], tokens: int) -> list[Secret]:
    encoded = base.tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)
    ids, start = encoded["input_ids"], text.rindex(value)
    spans = enumerate(encoded["offset_mapping"])
    told = [i for i, (a, b) in spans if a < start + len(value) and start < b and i]
    rarest = sorted(told, key=lambda i: (counts[ids[i]], -ids[i]))[:tokens]
    return [Secret(torch.tensor(ids[:i]), ids[i]) for i in rarest]
