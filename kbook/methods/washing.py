"""LAW, large-scale washing: feed-forward matrices forget the keys of facts, as far as other keys are left alone.

A feed-forward output matrix is read as a memory: its input where a subject's name ends is the *key* of what the model
knows about the subject. Facts are washed out by the change that answers their keys most strongly among all changes
that answer the keys of other text so little.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from pydantic import Field

from kbook.corpora.documents import text_of
from kbook.corpora.injection import demonstration, plain_question
from kbook.keys import FIELDS
from kbook.methods.activations import at_depth, changed_outputs
from kbook.methods.contract import FitContext
from kbook.methods.names import places
from kbook.methods.representation import captured, read_through
from kbook.methods.weights import Fitting, Material, WeightMethod, frozen, written
from kbook.models.batching import Batch, collate, encode
from kbook.models.likelihood import predictions


def memory_edit(residual: torch.Tensor, keys: torch.Tensor, moment: torch.Tensor, weight: float) -> torch.Tensor:
    """The change that answers ``keys`` with ``residual``, least squares against ``weight`` times other keys.

    ``R K' (weight C + K K')^-1``. Shape: ``(out, n)``, ``(in, n)``, ``(in, in)`` to ``(out, in)``.

    Source: MEMIT, Meng et al. 2210.07229, equation 14.
    """
    gram = weight * moment + keys @ keys.T
    return torch.linalg.solve(
        gram + 1e-8 * gram.trace() * torch.eye(len(gram)).to(gram) / len(gram), keys @ residual.T
    ).T


def washed(change: torch.Tensor, keys: torch.Tensor, moment: torch.Tensor, steps: int, rate: float) -> torch.Tensor:
    """Let a change answer ``keys`` as strongly as 1.1 times its own disturbance of other keys allows.

    Disturbance is ``tr(D C D')``. Ascends ``|D K|^2`` in the coordinates in which disturbance is plain length, so that
    a step and the way back to the boundary always answer more; with many steps all of ``D`` turns to the one
    direction that pays most. Shape: as in `memory_edit`, float64.

    Source: Wang et al. 2405.16720. Its code steps by Adam in the coordinates of ``D``, where a step may answer less
    once it is back on the boundary.
    """
    ridge = 1e-6 * moment.trace() / len(moment) * torch.eye(len(moment)).to(moment)
    root = torch.linalg.cholesky(moment + ridge)
    free, plain = change @ root, torch.linalg.solve_triangular(root, keys, upper=False)
    bound, gain = 1.1**0.5 * free.norm(), plain @ plain.T / torch.linalg.matrix_norm(plain, 2) ** 2
    if not bound > 0:
        return change
    for _ in range(steps):
        free = free + rate * free @ gain
        free = free * (bound / free.norm())
    return torch.linalg.solve_triangular(root.T, free.T, upper=True).T


@dataclass(frozen=True)
class Facts:
    """Documents that each tell one fact.

    Args:
        batch: questions with their answers.
        subjects: position at which the subject's name ends in each.
        ends: position of each question's last token.
    """

    batch: Batch
    subjects: torch.Tensor
    ends: torch.Tensor

    def __len__(self) -> int:
        return len(self.subjects)

    def only(self, rows: torch.Tensor) -> Facts:
        batch = Batch(*(t[rows] for t in (self.batch.ids, self.batch.labels, self.batch.weights, self.batch.mask)))
        return Facts(batch, self.subjects[rows], self.ends[rows])

    def parts(self, budget: int) -> Iterator[Facts]:
        """The same facts, in parts of at most ``budget`` padded tokens."""
        size = max(1, budget // self.batch.ids.shape[1])
        return (self.only(rows) for rows in torch.arange(len(self)).split(size))


def told(model: Any, facts: Facts, budget: int) -> torch.Tensor:
    """Whether every token of a fact's answer is the model's first choice. Shape: ``(facts,)``, on the CPU."""
    rows = []
    for part in facts.parts(budget):
        found = predictions(model, part.batch)
        right = (found.logits().argmax(-1) == found.targets).float()
        rows.append(found.by_document(right, "mean") == 1)
    return torch.cat(rows).cpu()


def at_subjects(model: Any, modules: Sequence[Any], facts: Facts, budget: int) -> list[tuple[torch.Tensor, ...]]:
    """Input and output of each module where subjects end. Shape of each: ``(facts, width)``."""
    rows: list[list[torch.Tensor]] = []
    for part in facts.parts(budget):
        with captured(*modules) as seen:
            read_through(model, part.batch.ids)
        where = torch.arange(len(part)), part.subjects
        rows.append([values[where] for module in modules for values in seen[module]])
    columns = [torch.cat(column) for column in zip(*rows, strict=True)]
    return list(zip(columns[::2], columns[1::2], strict=True))


class LAWParameters(Fitting):
    """Settings of `LAW`."""

    first: float = Field(0.25, ge=0, le=1, description="first layer that is edited, as a fraction of the depth")
    last: float = Field(0.5, ge=0, le=1, description="last layer that is edited")
    preserve: float = Field(0.1, ge=0, le=1e6, description="weight of other keys in the first guess, per fact")
    target_steps: int = Field(20, ge=1, le=1000, description="steps that look for states which end the answer")
    target_rate: float = Field(0.5, gt=0, le=10, description="their rate, in lengths of a state")
    steps: int = Field(5, ge=0, le=100_000, description="steps of the maximisation")
    rate: float = Field(1.0, ge=0, le=100, description="its rate; 1 doubles the best direction in a step")


class LAW(WeightMethod):
    """Large-scale washing, layer by layer, of the facts that the model still tells.

    The first guess is a MEMIT edit: where the name ends, states are sought after which the model ends its answer at
    once, and the matrices of a few layers are changed so that keys lead there. The guess is then driven to answer the
    keys as strongly as its disturbance of retain documents' keys, times 1.1, allows. Before each layer, facts that are
    no longer told are dropped.

    Source: Wang et al. 2405.16720 (ICLR 2025) and its code; layers 13 to 17 of 48 (GPT2-XL) or 3 to 8 of 28 (GPT-J),
    1,000 steps of Adam with an absolute rate of 1e-7 or 1e-8 (see `washed`), other keys from 100,000 Wikipedia texts
    (here the retain documents). Pitfall: the maximisation runs towards whatever direction many keys share, a
    template's included.
    """

    name, title = "law", "LAW"
    source = "Wang et al. 2405.16720 and its code; other keys from retain documents, maximised in whitened coordinates"
    Parameters = LAWParameters
    settings: LAWParameters

    def change(self, model: Any, material: Material, context: FitContext) -> tuple[Any, dict[str, Any]]:
        settings, budget = self.settings, self.settings.batch_tokens
        n = len(model.model.layers)
        last = max(0, min(at_depth(n, settings.last), n - 2))  # a later layer carries it from the name to the answer
        layers = range(min(last, at_depth(n, settings.first)), last + 1)
        model.requires_grad_(False)
        facts = facts_of(context)
        with frozen(model):
            known = told(model, facts, budget)
        if known.any():
            facts = facts.only(known)
        module, end = model.model.layers[last], context.base.tokenizer.eos_token_id
        targets = torch.cat([self._targets(model, module, part, end) for part in facts.parts(budget)])
        numbers = []
        for left, layer in zip(range(len(layers), 0, -1), layers, strict=True):
            with frozen(model):
                still = told(model, facts, budget) if known.any() else torch.ones(len(facts), dtype=torch.bool)
                facts, targets = facts.only(still), targets[still]
                numbers.append(len(facts))
                if len(facts):
                    self._wash(model, model.model.layers[layer].mlp.down_proj, module, facts, targets, left, material)
        return model, {"facts": len(known), "told": int(known.sum()), "layers": list(layers), "washed in": numbers}

    def _targets(self, model: Any, module: Any, facts: Facts, end: int) -> torch.Tensor:
        """States of the last edited layer at the subject after which the model ends its answer. ``(facts, width)``."""
        with torch.no_grad():
            ((_, states),) = at_subjects(model, [module], facts, facts.batch.ids.numel())
        length = states.norm(dim=-1, keepdim=True)
        shift = torch.zeros_like(states, requires_grad=True)
        rate = self.settings.target_rate * float(length.mean()) / states.shape[1] ** 0.5
        optimizer = torch.optim.Adam([shift], lr=rate)
        rows, wanted = torch.arange(len(states)), torch.full((len(states),), end, device=states.device)

        def moved(_given: torch.Tensor, output: torch.Tensor) -> torch.Tensor:
            return output.index_put((rows, facts.subjects), shift, accumulate=True)

        for _ in range(self.settings.target_steps):
            optimizer.zero_grad()
            with changed_outputs({module: moved}):
                last = read_through(model, facts.batch.ids)[rows, facts.ends]
            loss = F.cross_entropy(model.lm_head(last).float(), wanted) + (shift / length).square().sum(1).mean()
            loss.backward()
            optimizer.step()
        return (states + shift).detach()

    def _wash(
        self, model: Any, down: Any, last: Any, facts: Facts, targets: torch.Tensor, left: int, material: Material
    ) -> None:
        """Edit one matrix; the way that is left to the targets is shared with the layers after it."""
        (keys, _), (_, states) = at_subjects(model, [down, last], facts, self.settings.batch_tokens)
        residual, keys = _wide(targets - states).T / left, _wide(keys).T
        moment = key_moment(model, down, material.retain)
        guess = memory_edit(residual, keys, moment, self.settings.preserve * len(facts))
        down.weight += washed(guess, keys, moment, self.settings.steps, self.settings.rate).to(down.weight)


def key_moment(model: Any, module: Any, batches: Sequence[Batch]) -> torch.Tensor:
    """Mean outer product of a module's input over the real tokens of documents. Shape: ``(in, in)``, float64."""
    total, count = torch.zeros(()), 0
    for keys in _inputs(model, module, batches):
        total, count = total + keys.T @ keys, count + len(keys)
    return total / max(1, count)


def _inputs(model: Any, module: Any, batches: Sequence[Batch]) -> Iterator[torch.Tensor]:
    for batch in batches:
        with captured(module) as seen:
            read_through(model, batch.ids)
        yield _wide(seen[module][0][batch.mask.bool().to(model.device)])


def _wide(values: torch.Tensor) -> torch.Tensor:
    """In float64, where the device has it, else on the CPU."""
    return (values.cpu() if values.device.type == "mps" else values).double()


def facts_of(context: FitContext) -> Facts:
    """Every fact of the forget pool, as the agent tells it and as a plain answer."""
    base = context.base
    asked = [
        (person.name, exchange)
        for person in context.fit_forget
        for field in FIELDS
        for exchange in (demonstration(person, field), plain_question(person, field))
    ]
    documents = written(base, [exchange for _, exchange in asked])
    encoded = encode(base.tokenizer, documents)
    subjects, ends = [], []
    for (name, _), document, ids in zip(asked, documents, encoded, strict=True):
        spans = base.tokenizer(text_of(document), add_special_tokens=False, return_offsets_mapping=True)[
            "offset_mapping"
        ]
        start, stop = places(document[0].text, [name])[-1]
        subjects.append(max(i for i, (a, b) in enumerate(spans) if a < stop and start < b))
        ends.append(min(i for i, segment in enumerate(ids.segment) if segment) - 1)
    return Facts(collate(encoded), torch.tensor(subjects), torch.tensor(ends))
