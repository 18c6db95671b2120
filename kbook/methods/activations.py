"""Acting on activations: hooks on a model's modules, edits of hidden states, and the one hook that applies them.

A decoding hook of another kind sees embeddings or logits; these change what a decoder layer gives, in every forward
pass, whatever the text came from. `kbook.methods.states` fits such edits.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar, Self

import torch

from kbook.digests import digest_of
from kbook.errors import KBookError
from kbook.methods.contract import Guard
from kbook.models.bases import Base
from kbook.models.decoding import DecodingHook

Change = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
"""``(input, output) -> output`` of a module, for all rows of a pass."""


# ---- one mechanism for hooks on modules --------------------------------------------------------------------


@contextmanager
def changed_outputs(changes: Mapping[Any, Change]) -> Iterator[None]:
    """While inside, each module gives what its change makes of its output; afterwards nothing is left.

    A module that returns a tuple is changed in its first part. A change that returns its output untouched
    leaves the pass bit-identical.
    """
    handles = [module.register_forward_hook(_around(change)) for module, change in changes.items()]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def _around(change: Change) -> Callable[[Any, Any, Any], Any]:
    def hook(_module: Any, inputs: Any, output: Any) -> Any:
        first = output[0] if isinstance(output, tuple) else output
        changed = change(inputs[0] if inputs else first, first)
        return (changed, *output[1:]) if isinstance(output, tuple) else changed

    return hook


def decoder_layers(base: Base) -> Any:
    """The decoder layers of a model, in order.

    Raises:
        KBookError: the model has no list of as many layers as its configuration says.
    """
    n = base.model.config.get_text_config().num_hidden_layers
    lists = (m for m in base.model.base_model.modules() if isinstance(m, torch.nn.ModuleList) and len(m) == n)
    found = next(lists, None)
    if found is None:
        raise KBookError(
            f"no list of {n} layers in {type(base.model).__name__}",
            where=base.name,
            remedy="take a decoder of the transformers library, or a method that does not act on activations",
        )
    return found


def at_depth(n: int, depth: float) -> int:
    """Which of ``n`` layers lies at a fraction of the depth: 0.5 is layer 16 of 32, 1 the last one."""
    return min(n - 1, int(depth * n))


def layer_at(base: Base, depth: float) -> int:
    """The layer of a model at a fraction of its depth."""
    return at_depth(len(decoder_layers(base)), depth)


# ---- edits -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Edit(ABC):
    """A change of hidden states, token by token. Shape: ``(..., width)`` to the same."""

    def __call__(self, states: torch.Tensor) -> torch.Tensor:
        """Compute in float32 at least, and return the type of ``states``."""
        wide = states.to(torch.promote_types(states.dtype, torch.float32))
        return self.change(wide).to(states.dtype)

    @abstractmethod
    def change(self, states: torch.Tensor) -> torch.Tensor: ...

    def to(self, device: Any) -> Self:
        """The same edit, ready for the states of a model on ``device``."""
        tensors = {name: value.to(device, torch.float32) for name, value in self._tensors().items()}
        return replace(self, **tensors)

    @property
    def digest(self) -> str:
        return digest_of({name: tensor_digest(value) for name, value in self._tensors().items()})

    def _tensors(self) -> dict[str, torch.Tensor]:
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        return {name: value for name, value in values.items() if isinstance(value, torch.Tensor)}


@dataclass(frozen=True)
class LinearErasure(Edit):
    """``h - left (right (h - centre))``: all linear erasers, in low rank.

    *Shape*: ``left`` ``(width, rank)``, ``right`` ``(rank, width)``, ``centre`` ``(width,)``.
    """

    left: torch.Tensor
    right: torch.Tensor
    centre: torch.Tensor

    def change(self, states: torch.Tensor) -> torch.Tensor:
        left, right, centre = (t.to(states) for t in (self.left, self.right, self.centre))
        return states - (states - centre) @ right.T @ left.T


def projection(directions: torch.Tensor, centre: torch.Tensor | None = None, strength: float = 1.0) -> LinearErasure:
    """Take orthonormal ``directions`` out: ``h - strength * U U' (h - centre)``. Shape: ``(width, rank)``."""
    zero = torch.zeros(len(directions), dtype=directions.dtype)
    return LinearErasure(strength * directions, directions.T, zero if centre is None else centre)


def tensor_digest(value: torch.Tensor) -> str:
    """Digest the bytes of a tensor."""
    return hashlib.sha256(value.detach().cpu().contiguous().numpy().tobytes()).hexdigest()


@dataclass(frozen=True)
class StateEdits(DecodingHook):
    """Changes the output of decoder layers at every token of every pass, read or written.

    Args:
        edits: layer number to its edit; none makes a guard that does nothing.
        base: digest of the model whose states were read.
        facts: JSON-able account of the fit.
    """

    by_name: ClassVar[bool] = True

    edits: Mapping[int, Edit]
    base: str
    facts: Mapping[str, Any] = field(default_factory=dict)

    @contextmanager
    def installed(self, base: Base) -> Iterator[None]:
        """Install the edits.

        Raises:
            KBookError: ``base`` is not the model that they were fitted on.
        """
        require_same_model(base, self.base)
        layers = decoder_layers(base)
        with changed_outputs({layers[n]: _applied(edit) for n, edit in self.edits.items()}):
            yield


def facts_of(guard: Guard) -> list[dict[str, Any]]:
    """What the hooks of a guard tell about their fit, as JSON-able values; a run keeps them in its manifest."""
    return [dict(facts) for hook in guard.hooks if (facts := getattr(hook, "facts", None))]


def require_same_model(base: Base, fitted_on: str) -> None:
    """Refuse to apply what was fitted on one model to another.

    Raises:
        KBookError: the digests differ.
    """
    if base.digest != fitted_on:
        raise KBookError(
            f"what is applied was fitted on another model than {base.name} "
            f"(digest {fitted_on[:12]}, this one has {base.digest[:12]})",
            where=base.source,
            remedy="fit the method on the model that answers",
        )


def _applied(edit: Edit) -> Change:
    return lambda _input, output: edit(output)
