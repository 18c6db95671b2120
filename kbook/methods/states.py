"""Methods that are fitted on hidden states: which states they read, and what they have in common.

Such a method reads the hidden states of a layer while the model is asked about people of the two fitting
pools, looks for what tells the pools apart, and takes it out of every token's state, in every forward pass,
whatever the text came from: all lanes are in reach.

Which states are read decides what can be found. Prompts about forget and retain people differ in the name
alone; tokens before it are the *same* under a causal mask, so that labels of all tokens say almost nothing
about a state. By default the name's own tokens are read.
"""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import torch
from pydantic import Field

from kbook.corpora import protocol
from kbook.corpora.people import Person
from kbook.corpora.wordings import QUESTIONS, SUMMARY_PROMPTS
from kbook.digests import digest_of
from kbook.errors import KBookError
from kbook.keys import FIELDS
from kbook.methods.activations import Change, Edit, StateEdits, changed_outputs, decoder_layers, layer_at
from kbook.methods.contract import FitContext, Guard, Intervention, Parameters, require_people
from kbook.methods.names import places
from kbook.models.bases import Base

Positions = Literal["name", "last", "all"]

WORDINGS = (*(protocol.question(QUESTIONS[f][0]) for f in FIELDS), SUMMARY_PROMPTS[0])
"""What an agent is asked about a person, in canonical words."""
TOKENS = 4096
"""Padded tokens in one pass while states are gathered."""
FITTING = "fitting on activations"
"""Where an error is said to be."""


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
                where=FITTING,
                remedy="use dtype float32 or bfloat16 (float16 overflows in large models), or another depth",
            )
        require_people("forget", int(self.forget.sum()), FITTING)
        require_people("retain", int((~self.forget).sum()), FITTING)

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
    context.require(FITTING)
    pools = {"forget": context.fit_forget, "retain": context.fit_retain}
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
            where=FITTING,
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


# ---- methods -----------------------------------------------------------------------------------------------


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
