"""Methods that act on activations: what they are fitted on, and the one hook that applies them.

Such a method reads the hidden states of a layer while the model is asked about people of the two fitting
pools, looks for what tells the pools apart, and takes it out of every token's state, in every forward pass,
whatever the text came from: all lanes are in reach.

Which states are read decides what can be found. Prompts about forget and retain people differ in the name
alone; tokens before it are the *same* under a causal mask, so that labels of all tokens say almost nothing
about a state. By default the name's own tokens are read.
"""

from __future__ import annotations

import hashlib
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar, Literal, Self

import torch
from pydantic import Field

from kbook.corpora import protocol
from kbook.corpora.people import Person
from kbook.corpora.wordings import QUESTIONS, SUMMARY_PROMPTS
from kbook.digests import digest_of
from kbook.errors import KBookError
from kbook.keys import FIELDS
from kbook.methods.contract import FitContext, Guard, Intervention, Parameters
from kbook.methods.names import places
from kbook.models.bases import Base
from kbook.models.decoding import DecodingHook

Positions = Literal["name", "last", "all"]
Change = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
"""``(input, output) -> output`` of a module, for all rows of a pass."""

WORDINGS = (*(protocol.question(QUESTIONS[f][0]) for f in FIELDS), SUMMARY_PROMPTS[0])
"""What an agent is asked about a person, in canonical words."""
TOKENS = 4096
"""Padded tokens in one pass while states are gathered."""


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


# ---- what methods are fitted on ----------------------------------------------------------------------------


@dataclass(frozen=True)
class States:
    """Hidden states of one layer while people were asked about.

    *Shape*: ``values`` ``(n, width)``, float64 on the CPU; ``forget`` ``(n,)``, whether the asked person is
    of the forget pool; ``round`` ``(n,)``, the number of the person's prompt.
    """

    values: torch.Tensor
    forget: torch.Tensor
    round: torch.Tensor

    def __post_init__(self) -> None:
        if not torch.isfinite(self.values).all():
            raise KBookError(
                "hidden states are not finite",
                where="fitting on activations",
                remedy="use dtype float32 or bfloat16 (float16 overflows in large models), or another depth",
            )
        for pool, n in (("forget", int(self.forget.sum())), ("retain", int((~self.forget).sum()))):
            if not n:
                raise _no_people(pool)

    @property
    def majority(self) -> float:
        """Share of the larger pool: what a probe gets right that knows nothing."""
        share = float(self.forget.double().mean())
        return max(share, 1 - share)

    def of(self, forget: bool) -> torch.Tensor:
        """The states of one pool."""
        return self.values[self.forget == forget]

    def split(self) -> tuple[States, States]:
        """All rounds but the last, and the last; a single round is both."""
        last = self.round == self.round.max()
        return (self, self) if last.all() else (self._where(~last), self._where(last))

    def _where(self, chosen: torch.Tensor) -> States:
        return States(self.values[chosen], self.forget[chosen], self.round[chosen])


@dataclass(frozen=True)
class _Asked:
    text: str
    name: str
    forget: bool
    round: int


def gather(context: FitContext, layers: Sequence[int], positions: Positions, prompts: int) -> dict[int, States]:
    """Hidden states of ``layers`` while the fitting people are asked about, as an agent is asked.

    The pools give equally many people, the first of each; the prompts go round the wordings person by
    person.

    Args:
        context: base and fitting pools.
        layers: numbers of decoder layers; their output is read.
        positions: tokens of the name, the last token of the prompt (where the reply begins), or all tokens.
        prompts: at most so many, both pools together.

    Raises:
        KBookError: an empty pool, or states that are not finite.
    """
    asked = _prompts(context, prompts)
    found: dict[int, list[torch.Tensor]] = {layer: [torch.empty(0)] * len(asked) for layer in layers}
    for indices, ids, chosen in _passes(context.base, asked, positions):
        captured = _layer_outputs(context.base, layers, ids)
        for layer in layers:
            for row, i in enumerate(indices):
                found[layer][i] = captured[layer][row, chosen[row]].cpu().double()
    counts = torch.tensor([len(values) for values in found[layers[0]]])
    forget, rounds = (torch.tensor([getattr(a, f) for a in asked]) for f in ("forget", "round"))
    marks = forget.repeat_interleave(counts), rounds.repeat_interleave(counts)
    return {layer: States(torch.cat(values), *marks) for layer, values in found.items()}


def _prompts(context: FitContext, most: int) -> list[_Asked]:
    pools = {"forget": context.fit_forget, "retain": context.fit_retain}
    for name, pool in pools.items():
        if not pool:
            raise _no_people(name)
    n = min(*map(len, pools.values()), max(1, most // 2))
    rounds = max(1, min(len(WORDINGS), most // (2 * n)))
    return [
        _Asked(_prompt(context.base, person, i + number), person.name, name == "forget", number)
        for number in range(rounds)
        for name, pool in pools.items()
        for i, person in enumerate(pool[:n])
    ]


def _prompt(base: Base, person: Person, number: int) -> str:
    wording = WORDINGS[number % len(WORDINGS)]
    return base.render(protocol.system_prompt(style=base.style), wording.format(name=person.name))


def _passes(
    base: Base, asked: Sequence[_Asked], positions: Positions
) -> Iterator[tuple[list[int], list[list[int]], list[list[int]]]]:
    """Prompts of like length together: their numbers, token ids, and the positions to be read."""
    encoded = base.tokenizer([a.text for a in asked], add_special_tokens=False, return_offsets_mapping=True)
    ids, spans = encoded["input_ids"], encoded["offset_mapping"]
    chosen = [_chosen(a, s, positions) for a, s in zip(asked, spans, strict=True)]
    group: list[int] = []
    for i in sorted(range(len(asked)), key=lambda i: len(ids[i])):
        if group and (len(group) + 1) * len(ids[i]) > TOKENS:
            yield group, [ids[j] for j in group], [chosen[j] for j in group]
            group = []
        group.append(i)
    yield group, [ids[j] for j in group], [chosen[j] for j in group]


def _chosen(asked: _Asked, spans: Sequence[tuple[int, int]], positions: Positions) -> list[int]:
    if positions != "name":
        return [len(spans) - 1] if positions == "last" else list(range(len(spans)))
    named = places(asked.text, [asked.name])
    found = [i for i, (a, b) in enumerate(spans) if any(a < end and start < b for start, end in named)]
    if not found:
        raise KBookError(
            f"the name {asked.name!r} is not in the prompt as the chat template renders it",
            where="fitting on activations",
            remedy='mend the template, or fit on positions = "last"',
        )
    return found


@torch.no_grad()
def _layer_outputs(base: Base, layers: Sequence[int], ids: Sequence[Sequence[int]]) -> dict[int, torch.Tensor]:
    """What layers give for right-padded prompts. Shape of each: ``(prompts, tokens, width)``."""
    tokens = torch.zeros((len(ids), max(map(len, ids))), dtype=torch.long)
    mask = torch.zeros_like(tokens)
    for row, sequence in enumerate(ids):
        tokens[row, : len(sequence)], mask[row, : len(sequence)] = torch.tensor(sequence), 1
    found: dict[int, torch.Tensor] = {}

    def keeping(layer: int) -> Change:
        def keep(_input: torch.Tensor, output: torch.Tensor) -> torch.Tensor:
            found[layer] = output
            return output

        return keep

    modules = decoder_layers(base)
    with changed_outputs({modules[layer]: keeping(layer) for layer in layers}):
        on = tokens.to(base.device), mask.to(base.device)
        base.model.base_model(input_ids=on[0], attention_mask=on[1], use_cache=False)
    return found


def _no_people(pool: str) -> KBookError:
    return KBookError(
        f"there is nobody in the {pool} fitting pool",
        where="fitting on activations",
        remedy=f"give people to fit on: corpus.n_fit_{pool} of the profile",
    )


# ---- what fitting gives ------------------------------------------------------------------------------------


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


@contextmanager
def one_thread() -> Iterator[None]:
    """For long loops of small products: there more threads only wait for each other, and round in another order."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


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


@dataclass(frozen=True)
class Fit:
    """An edit, or None where there is nothing to erase, with JSON-able facts about it."""

    edit: Edit | None
    facts: Mapping[str, Any]


class StateParameters(Parameters):
    """Settings that methods on activations share."""

    positions: Positions = Field("name", description="tokens of a prompt whose states are fitted on: name, last or all")
    prompts: int = Field(400, ge=2, le=100_000, description="fitting prompts at most, both pools together")


class DepthParameters(StateParameters):
    """Settings of methods that act on one layer."""

    depth: float = Field(0.5, ge=0, le=1, description="the layer, as a fraction of the depth; 1 is the last")


class StateMethod(Intervention):
    """A method that is fitted on hidden states and changes them while the model runs.

    A fit that finds nothing gives a guard that does nothing, a warning, and ``no_op`` among the facts of its
    hook: such a run equals the baseline, and must not be read as one in which a method failed to help.
    """

    family: ClassVar[str] = "activations"
    settings: StateParameters

    @property
    def depths(self) -> tuple[float, ...]:
        """Where it acts."""
        depth: float = self.settings.depth  # type: ignore[attr-defined]  # methods of several layers say their own
        return (depth,)

    @abstractmethod
    def fit(self, states: States, seed: int) -> Fit:
        """Find what tells forget from retain states of one layer.

        Args:
            states: of both pools.
            seed: of the cell; closed forms do not need it.
        """

    def guard(self, context: FitContext) -> Guard:
        base, settings = context.base, self.settings
        layers = sorted({layer_at(base, depth) for depth in self.depths})
        gathered = gather(context, layers, settings.positions, settings.prompts)
        fits = {layer: self.fit(states, context.seed) for layer, states in gathered.items()}
        edits = {layer: fit.edit.to(base.device) for layer, fit in fits.items() if fit.edit is not None}
        facts = {"no_op": not edits, "layers": {str(layer): dict(fit.facts) for layer, fit in fits.items()}}
        if not edits:
            warnings.warn(f"{self.name} found nothing to erase and does nothing: {facts['layers']}", stacklevel=2)
        state = {
            "method": self.name,
            "settings": settings,
            "base": base.digest,
            "edits": {str(layer): edit.digest for layer, edit in edits.items()},
        }
        return Guard(hooks=(StateEdits(edits, base.digest, facts),), digest=digest_of(state))
