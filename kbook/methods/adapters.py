"""Low-rank adapters that are not part of a model: trained on it, kept beside it, and added row by row.

The same hooks add an adapter while it is trained and while an agent runs, so that what is deployed is what was
trained. The model's own weights are never touched, and there is no second copy of them: where an adapter is not
added, the model is the model.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save

from kbook.errors import KBookError
from kbook.files import write_atomic
from kbook.methods.activations import Change, changed_outputs, decoder_layers, require_same_model
from kbook.methods.names import message_finder
from kbook.models.bases import Base
from kbook.models.decoding import DecodingHook, Pass

Route = Callable[[Hashable, str], bool]
"""``(conversation, user's message) -> is the adapter switched on``."""

HEAD = "adapter"
"""Entry of a file's metadata: the digest of the model that the adapter belongs to, and its scale."""


def linear_modules(base: Base) -> dict[str, Any]:
    """The linear modules of all decoder layers by name: projections of attention and feed-forward parts."""
    within = {id(m) for layer in decoder_layers(base) for m in layer.modules() if isinstance(m, torch.nn.Linear)}
    return {name: module for name, module in base.model.named_modules() if id(module) in within}


class Adapter(torch.nn.Module):
    """``scale * B A x``, added to the output of each linear module.

    *Shape*: ``down[name]`` is A, ``(rank, inputs)``; ``up[name]`` is B, ``(outputs, rank)``.
    """

    def __init__(self, down: Mapping[str, torch.Tensor], up: Mapping[str, torch.Tensor], scale: float) -> None:
        super().__init__()
        self.scale = scale
        self.numbers = {name: i for i, name in enumerate(down)}
        self._down = torch.nn.ParameterList(down.values())
        self._up = torch.nn.ParameterList(up[name] for name in down)

    @classmethod
    def fresh(cls, base: Base, rank: int, alpha: float, generator: torch.Generator) -> Adapter:
        """An adapter that adds nothing yet: A uniform within 1 / sqrt(inputs), B zero, scale alpha / rank."""
        down, up = {}, {}
        for name, module in linear_modules(base).items():
            drawn = 2 * torch.rand((rank, module.in_features), generator=generator) - 1
            down[name] = (drawn / math.sqrt(module.in_features)).to(base.device)
            up[name] = torch.zeros((module.out_features, rank), device=base.device)
        return cls(down, up, alpha / rank)

    @property
    def down(self) -> dict[str, torch.Tensor]:
        return dict(zip(self.numbers, self._down, strict=True))

    @property
    def up(self) -> dict[str, torch.Tensor]:
        return dict(zip(self.numbers, self._up, strict=True))

    def added(self, name: str, inputs: torch.Tensor) -> torch.Tensor:
        """What one module's output gains, in the type of ``inputs``."""
        number = self.numbers[name]
        low = inputs.to(self._down[number].dtype) @ self._down[number].T
        return (self.scale * low @ self._up[number].T).to(inputs.dtype)


def together(adapters: Sequence[Adapter]) -> Adapter:
    """One adapter that adds what all of ``adapters`` add."""
    down = {n: torch.cat([a.down[n].detach() for a in adapters]) for n in adapters[0].numbers}
    up = {n: torch.cat([a.scale * a.up[n].detach() for a in adapters], dim=1) for n in adapters[0].numbers}
    return Adapter(down, up, 1.0).requires_grad_(False)


def overlap(earlier: Sequence[Adapter], new: Adapter, n_layers: int) -> torch.Tensor:
    """How far a new adapter reads what earlier ones read: ``1/L sum |A_i A_new'|^2`` over modules and adapters.

    *Missing*: without earlier adapters it is 0.

    Args:
        earlier: frozen adapters.
        new: the one that is trained.
        n_layers: L, decoder layers, not modules.
    """
    terms = [(old.down[n] @ a.T).square().sum() for old in earlier for n, a in new.down.items()]
    return torch.stack(terms).sum() / n_layers if terms else torch.zeros(())


class Adapted(torch.nn.Module):
    """A model while an adapter is trained on it: its parameters are the adapter's, its layers the model's.

    Being a class of its own, it also keeps `kbook.models.fused` from going round the hooks.
    """

    def __init__(self, base: Base, adapter: Adapter) -> None:
        super().__init__()
        self.adapter = adapter
        self._of = (base.model,)  # in a tuple, so that the model's weights are not parameters of this module

    @property
    def model(self) -> Any:
        return self._of[0].model

    @property
    def lm_head(self) -> Any:
        return self._of[0].lm_head


@contextmanager
def attached(base: Base, adapters: Sequence[Adapter]) -> Iterator[None]:
    """Add adapters for every row, with gradients for the adapters alone; afterwards the model is as before."""

    def adding(name: str) -> Change:
        return lambda inputs, output: output + sum(adapter.added(name, inputs) for adapter in adapters)

    trainable = [p for p in base.model.parameters() if p.requires_grad]
    try:
        for parameter in trainable:
            parameter.requires_grad_(False)
        with changed_outputs({module: adding(name) for name, module in linear_modules(base).items()}):
            yield
    finally:
        for parameter in trainable:
            parameter.requires_grad_(True)


class RoutedAdapter(DecodingHook):
    """Adds an adapter in the conversations that a router picks, and touches no other row of the batch.

    A conversation is routed once, when it is first read, by the user's message.

    Args:
        base: whose chat template finds the user's message.
        adapter: what is added.
        route: decides.
        facts: JSON-able account of adapter and router.
    """

    def __init__(self, base: Base, adapter: Adapter, route: Route, facts: Mapping[str, Any]) -> None:
        self.adapter, self.route, self.facts = adapter, route, facts
        self.base = base.digest
        self._message = message_finder(base)
        self._routed: dict[Hashable, tuple[str, bool]] = {}
        self._rows: list[int] = []

    def start(self, base: Base) -> None:
        self._routed.clear()

    def embeddings(self, step: Pass, values: torch.Tensor) -> torch.Tensor:
        rows = enumerate(zip(step.rows, step.texts, strict=True))
        self._rows = [i for i, (row, text) in rows if self.is_routed(row, text)]
        return values

    def is_routed(self, row: Hashable, text: str) -> bool:
        """Whether a conversation, as far as it has come, has the adapter on."""
        prompt, routed = self._routed.get(row, ("", False))
        if not prompt or not text.startswith(prompt):
            routed = self.route(row, self._message(text))
            self._routed[row] = text, routed
        return routed

    @contextmanager
    def installed(self, base: Base) -> Iterator[None]:
        """Install the adapter.

        Raises:
            KBookError: ``base`` is not the model that it was trained on.
        """
        require_same_model(base, self.base)
        modules = linear_modules(base)
        try:
            with torch.no_grad(), changed_outputs({modules[n]: self._adding(n) for n in self.adapter.numbers}):
                yield
        finally:
            self._rows = []

    def _adding(self, name: str) -> Change:
        def add(inputs: torch.Tensor, output: torch.Tensor) -> torch.Tensor:
            if not self._rows:
                return output
            changed = output.clone()
            changed[self._rows] += self.adapter.added(name, inputs[self._rows])
            return changed

        return add


# ---- files -------------------------------------------------------------------------------------------------


def save_adapter(path: Path, adapter: Adapter, model: str) -> None:
    """Write an adapter with the digest of the model that it belongs to."""
    tensors = {f"down/{n}": t.detach().cpu().contiguous() for n, t in adapter.down.items()}
    tensors |= {f"up/{n}": t.detach().cpu().contiguous() for n, t in adapter.up.items()}
    path.parent.mkdir(parents=True, exist_ok=True)
    head = json.dumps({"model": model, "scale": adapter.scale})  # one entry: safetensors orders several at random
    write_atomic(path, save(tensors, metadata={HEAD: head}))


def load_adapter(path: Path, base: Base) -> Adapter:
    """Read an adapter for ``base``.

    Raises:
        KBookError: no such file, a damaged one, or one that belongs to another model.
    """
    remedy = "fit the method again on the model that answers"
    try:
        with safe_open(path, "pt") as opened:
            meta, tensors = opened.metadata() or {}, {key: opened.get_tensor(key) for key in opened.keys()}
        head = json.loads(meta[HEAD])
        scale, model = float(head["scale"]), str(head["model"])
    except (OSError, SafetensorError, KeyError, TypeError, ValueError) as error:
        raise KBookError(f"the adapter cannot be read ({error})", str(path), remedy) from None
    require_same_model(base, model)
    down, up = (
        {key.removeprefix(side): t.to(base.device) for key, t in tensors.items() if key.startswith(side)}
        for side in ("down/", "up/")
    )
    shapes = {name: (m.out_features, m.in_features) for name, m in linear_modules(base).items()}
    fitting = {name: (up[name].shape[0], a.shape[1]) for name, a in down.items() if name in up}
    if fitting != shapes:
        raise KBookError("the adapter has other modules or shapes than the model", str(path), remedy)
    return Adapter(down, up, scale).requires_grad_(False)
