"""ECO, embedding-corrupted prompts: noise on the embeddings of a forgotten person's name while it is read."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Any, ClassVar

import torch
from pydantic import Field

from kbook.digests import digest_of
from kbook.errors import KBookError
from kbook.methods.contract import FitContext, Guard, Intervention, Parameters
from kbook.methods.names import NameList, message_finder, places
from kbook.methods.seeding import generator_for
from kbook.models.bases import Base
from kbook.models.decoding import DecodingHook, Pass


class ECOParameters(Parameters):
    """Settings of `ECO`."""

    s: float = Field(100.0, ge=0, le=1e6, allow_inf_nan=False, description="standard deviation of the noise")
    k: int = Field(1, ge=1, description="first dimensions of the embedding that are corrupted")


class NameCorruption(DecodingHook):
    """Adds noise to the first dimensions of name tokens, in conversations that ask about a listed person.

    Whom a conversation asks about is settled when it is first read, from the user's message alone. The
    noise of a token is named by the seed, the conversation and the token's place: it is the same however
    the text is cut into passes, and whatever else is in the batch.
    """

    by_name: ClassVar[bool] = True

    def __init__(self, base: Base, names: NameList, s: float, k: int, seed: int) -> None:
        self.names, self.s, self.k, self.seed = names, s, k, seed
        self._message = message_finder(base)
        self._conversations: dict[Hashable, tuple[str, list[str]]] = {}

    def start(self, base: Base) -> None:
        self._conversations.clear()

    def embeddings(self, step: Pass, values: torch.Tensor) -> torch.Tensor:
        if not step.reading or not self.s:
            return values
        changed = values.clone()
        for row, name in enumerate(step.rows):
            for token, place in self._targets(name, step.texts[row], step.spans[row]):
                drawn = torch.randn(self.k, generator=generator_for(self.seed, name, place))
                changed[row, token, : self.k] += self.s * drawn.to(values)
        return changed

    def _targets(self, row: Hashable, text: str, spans: Any) -> Iterator[tuple[int, int]]:
        """Tokens that overlap the asked name, and the character at which each begins."""
        found = places(text, self._asked(row, text))
        for token, (start, end) in enumerate(spans):
            if any(start < last and first < end for first, last in found):
                yield token, start

    def _asked(self, row: Hashable, text: str) -> list[str]:
        prompt, names = self._conversations.get(row, ("", []))
        if not prompt or not text.startswith(prompt):
            prompt, names = text, self.names.asked(self._message(text))
            self._conversations[row] = prompt, names
        return names


class ECO(Intervention):
    """Corrupt the embeddings of the asked person's name if it is on the forget list.

    The gate is an oracle: the name in the question is looked up in the list. A learned prompt classifier
    would be another variant.

    Source: Liu et al. 2406.07933, variant ``rand_noise_first_n`` (noise on the first ``k`` dimensions);
    settings of K-Bench. Name tokens are found by character, not by token sequence, so that no surrounding
    hides them.
    """

    name, title, family = "eco", "ECO", "embeddings"
    source = "Liu et al. 2406.07933; K-Bench's oracle gate"
    Parameters = ECOParameters
    settings: ECOParameters

    def guard(self, context: FitContext) -> Guard:
        s, k, seed = self.settings.s, self.settings.k, context.seed
        width = context.base.model.get_input_embeddings().embedding_dim
        if k > width:
            raise KBookError(
                f"k is {k}, but the embeddings of {context.base.name} have {width} dimensions",
                where="method eco",
                remedy=f"set k to {width} or less",
            )
        names = NameList(p.name for p in context.forget_list)
        hook = NameCorruption(context.base, names, s, k, seed)
        state = {"names": sorted(names.names), "s": s, "k": k, "seed": seed}
        return Guard(hooks=(hook,), digest=digest_of(state))
