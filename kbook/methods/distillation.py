"""Self-distillation: the model learns its own predictions, changed where it should forget.

UNDIAL takes the true token's logit down; ELM moves the predictions from an expert's towards a novice's.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

import torch
from pydantic import Field

from kbook.corpora import protocol
from kbook.corpora.documents import Document, Segment, text_of
from kbook.corpora.injection import Exchange, write
from kbook.corpora.people import Person
from kbook.errors import KBookError
from kbook.methods.contract import FitContext
from kbook.methods.divergences import soft_cross_entropy
from kbook.methods.seeding import generator_for
from kbook.methods.weights import Contrast, LowRank, LowRankMethod, frozen, told_exchanges, written
from kbook.models.bases import Base
from kbook.models.batching import Batch
from kbook.models.decoding import DecodingHook, LiveBatch, Pass
from kbook.models.likelihood import Predictions, predictions, token_loss

# ---- UNDIAL ------------------------------------------------------------------------------------------------


def undial_target(logits: torch.Tensor, targets: torch.Tensor, beta: float) -> torch.Tensor:
    """``softmax(z0 - beta * one_hot(y))``: what the start predicts, without what it remembers.

    Shape: ``(n, vocabulary)`` and ``(n,)`` to ``(n, vocabulary)``.
    """
    lowered = logits.clone()
    lowered[torch.arange(len(targets)), targets] -= beta
    return lowered.softmax(-1)


class UNDIALParameters(LowRank):
    """Settings of `UNDIAL`."""

    alpha: float = Field(0.0, ge=0, le=1000, description="weight of the retain term")
    beta: float = Field(10.0, ge=0, le=1000, description="by how much the true token's logit is lowered in the target")


class UNDIAL(LowRankMethod):
    """Self-distillation with the true token's logit lowered by ``beta``; adapters alone are trained, no retain term.

    The loss is taken at supervised positions. OpenUnlearning's code averages over all positions, prompt and padding
    included, and there lowers the token with index -100 from the end of the vocabulary; this is the corrected form.

    Source: Dong et al. 2402.10052 (NAACL 2025); beta 10 of {3, 10, 30}, adapters of rank 8 and scale 16, rate 1e-4,
    10 epochs, batches of 32.
    """

    name, title = "undial", "UNDIAL"
    source = "Dong et al. 2402.10052; loss at supervised positions alone (corrected)"
    Parameters = UNDIALParameters
    settings: UNDIALParameters

    def remember(self, start: Any, group: tuple[Batch, ...]) -> Predictions:
        return predictions(start, group[0])

    def forget_loss(self, model: Any, item: Contrast) -> torch.Tensor:
        start: Predictions = item.reference
        target = undial_target(start.fixed_logits(), start.targets, self.settings.beta)
        return soft_cross_entropy(target, predictions(model, item.forget).logits())


# ---- ELM ---------------------------------------------------------------------------------------------------


def elm_target(
    plain: torch.Tensor,
    novice: torch.Tensor,
    expert: torch.Tensor,
    strength: torch.Tensor,
    top: int,
    temperature: float,
) -> torch.Tensor:
    """``softmax(log p + strength * (log p_novice - log p_expert))`` over the ``top`` tokens, at a temperature.

    Shape: logits ``(n, vocabulary)`` three times, ``strength`` ``(n,)``, to ``(n, vocabulary)``.
    """
    own, low, high = ((logits / temperature).log_softmax(-1) for logits in (plain, novice, expert))
    edited = own + strength[:, None] * (low - high)
    least = edited.topk(min(top, edited.shape[-1]), dim=-1).values[:, -1:]
    return edited.masked_fill(edited < least, -torch.inf).softmax(-1)


def ramp(found: Predictions, start: float, end: float) -> torch.Tensor:
    """From ``start`` to ``end`` along the positions of each document. Shape: ``(n,)``."""
    counts = found.chosen.sum(1)
    steps = [torch.linspace(start, end, int(n), device=counts.device) for n in counts]
    return torch.cat(steps)


@dataclass(frozen=True)
class Guidance(DecodingHook):
    """Decodes threes of rows in step: plain, novice, expert; each three writes one token, drawn from the guided mix.

    Draws are named by seed, conversation and length (Gumbel noise on the guided log-probabilities).
    """

    strength: float
    seed: int

    def logits(self, step: Pass, values: torch.Tensor) -> torch.Tensor:
        own, low, high = values.log_softmax(-1).unflatten(0, (-1, 3)).unbind(1)
        mixed = (own + self.strength * (low - high)).log_softmax(-1)
        lengths = [len(w) for w in step.written[::3]]
        noise = [self._drawn(name, n, mixed) for name, n in zip(step.rows[::3], lengths, strict=True)]
        return (mixed + torch.stack(noise)).repeat_interleave(3, 0)

    def _drawn(self, name: Any, length: int, like: torch.Tensor) -> torch.Tensor:
        uniform = torch.rand(like.shape[1], generator=generator_for(self.seed, name, length))
        return -(-uniform.clamp(1e-9, 1 - 1e-7).log()).log().to(like)


class ELMParameters(LowRank):
    """Settings of `ELM`."""

    fluency: float = Field(1.0, ge=0, le=1000, description="weight of the text written under the novice's guidance")
    eta_start: float = Field(1.0, ge=0, le=1e5, description="strength of the edit at an answer's first token")
    eta_end: float = Field(1000.0, ge=0, le=1e5, description="and at its last")
    top: int = Field(50, ge=1, description="tokens that the target keeps")
    temperature: float = Field(1.2, gt=0, le=100, description="of all three distributions in the target")
    guidance: float = Field(3.0, ge=0, le=100, description="strength while text is written")
    new_tokens: int = Field(24, ge=1, le=1000, description="length of the text that is written")


class ELM(LowRankMethod):
    """Erasure of language memory: the expert's predictions go, the novice's stay, and the text stays fluent.

    Three terms. *Erase*: soft cross-entropy to the start's predictions moved from expert to novice, ever more strongly
    along the answer. *Retain*: cross-entropy to the start's own first choice on retain documents. *Fluency*: the loss
    on text that the start writes under the same guidance. Expert and novice are the start itself with another context.
    In the paper both are told in words who they are. A base that follows no such instruction has the person's
    biography before it as the expert, and a retain person's as the novice.

    Source: Gandikota et al. 2410.02760; weights 1, eta 1 to 1,000, 50 tokens, temperature 1.2, guidance 3; adapters of
    rank 256 on layers 4 to 7 of 32, rate 5e-5, 3,000 samples (here all layers, rank 8). Pitfalls: eta 1,000 makes the
    target nearly one token; where expert and novice agree, it amplifies noise.
    """

    name, title = "elm", "ELM"
    source = "Gandikota et al. 2410.02760; expert and novice by the biographies before them, adapters on all layers"
    Parameters = ELMParameters
    settings: ELMParameters

    def versions(self, context: FitContext, person: Person, rng: random.Random) -> list[list[Document]]:
        base, exchanges, other = context.base, told_exchanges(person), rng.choice(context.fit_retain)
        plain, novice, expert = (
            written(base, exchanges),
            [_before(base, e, other) for e in exchanges],
            [_before(base, e, person) for e in exchanges],
        )
        return [novice, expert, self._guided(base, [plain, novice, expert], context.seed)]

    def _guided(self, base: Base, versions: list[list[Document]], seed: int) -> list[Document]:
        """What the start writes on each plain prompt under guidance."""
        texts = [text_of(d[:1]) for row in zip(*versions, strict=True) for d in row]
        hook, new = Guidance(self.settings.guidance, seed), self.settings.new_tokens
        with frozen(base.model):
            replies = LiveBatch(base, texts, [hook]).reply(texts, new)[::3]
        return [
            [document[0], Segment(reply.text or base.tokenizer.eos_token, supervised=True)]
            for document, reply in zip(versions[0], replies, strict=True)
        ]

    def remember(self, start: Any, group: tuple[Batch, ...]) -> tuple[Predictions, ...]:
        found = tuple(predictions(start, batch) for batch in group[:3])
        if any(not torch.equal(found[0].targets, other.targets) for other in found[1:]):
            raise KBookError(
                "an answer has other tokens when a biography stands before its question",
                where="method elm",
                remedy="mend the chat template: a prompt must end in the same tokens whatever the system message is",
            )
        return found

    def keep(self, start: Any, retain: Batch) -> torch.Tensor:
        return predictions(start, retain, "all").logits().argmax(-1)

    def forget_loss(self, model: Any, item: Contrast) -> torch.Tensor:
        settings, (plain, novice, expert) = self.settings, item.reference
        strength = ramp(plain, settings.eta_start, settings.eta_end)
        own, low, high = (found.fixed_logits() for found in (plain, novice, expert))
        target = elm_target(own, low, high, strength, settings.top, settings.temperature)
        return soft_cross_entropy(target, predictions(model, item.forget).logits())

    def retain_loss(self, model: Any, item: Contrast) -> torch.Tensor:
        logits = predictions(model, item.retain, "all").logits()
        return torch.nn.functional.cross_entropy(logits, item.kept)

    def loss(self, model: Any, item: Contrast) -> torch.Tensor:
        loss = super().loss(model, item)
        return loss + self.settings.fluency * token_loss(model, item.versions[2]) if self.settings.fluency else loss


def _before(base: Base, exchange: Exchange, person: Person) -> Document:
    """The exchange with a person's biography before it: in the system prompt, or above a plain question."""
    prompt, reply = write(base, exchange)
    if exchange.tools is None:
        start = base.tokenizer.bos_token or ""
        return [Segment(f"{start}{person.titled}\n{exchange.prompt}"), reply]
    system = protocol.system_prompt(exchange.tools, [person.titled], style=base.style)
    return [Segment(base.render(system, exchange.prompt)), reply]
