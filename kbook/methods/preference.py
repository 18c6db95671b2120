"""Preference optimisation: forget answers are dispreferred, with or without a preferred side.

NPO is ascent on the forget answers whose weight fades as the model moves away from where it started; SimNPO does
without the start, by length; DPO prefers a refusal. BalDRO lets the hard documents of a batch decide.
"""

from __future__ import annotations

import math
import random
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from pydantic import BaseModel, Field

from kbook.corpora.documents import Document
from kbook.corpora.people import Person
from kbook.methods.contract import FitContext
from kbook.methods.divergences import forward_kl
from kbook.methods.refusal import refusals
from kbook.methods.weights import Contrast, Weighted, WeightedMethod
from kbook.models.batching import Batch
from kbook.models.likelihood import Predictions, predictions, sequence_nll


def npo_losses(nll: torch.Tensor, reference: torch.Tensor, beta: float) -> torch.Tensor:
    """``-2 / beta * log sigmoid(beta * (N - N0))`` of each document's summed NLL.

    *Shape*: ``(documents,)`` each. *Unit*: nats. Where N = N0 it is ``2 ln 2 / beta``, with the gradient of gradient
    ascent on N.

    Source: Zhang et al. 2404.05868, equation 3.
    """
    return -2 / beta * F.logsigmoid(beta * (nll - reference.to(nll)))


def simnpo_losses(nll: torch.Tensor, beta: float, margin: float) -> torch.Tensor:
    """``-2 / beta * log sigmoid(beta * (mean NLL - margin))`` of each document's NLL per token.

    *Shape*: ``(documents,)`` each. *Unit*: nats.

    Source: Fan et al. 2410.07163; their gamma is the margin here.
    """
    return -2 / beta * F.logsigmoid(beta * (nll - margin))


def dpo_losses(preferred: torch.Tensor, dispreferred: torch.Tensor, beta: float) -> torch.Tensor:
    """``-2 / beta * log sigmoid(beta * (preferred - dispreferred))`` of log-ratios of model to start.

    *Shape*: ``(documents,)`` each. *Unit*: nats. The factor 2 / beta is that of the unlearning codes; DPO has none.
    """
    return -2 / beta * F.logsigmoid(beta * (preferred - dispreferred))


def soft_maximum(losses: torch.Tensor, temperature: float) -> torch.Tensor:
    """``t * log(mean(exp(l / t)))``: between the mean (``t`` large) and the maximum (``t`` to 0).

    *Shape*: ``(documents,)`` to a scalar; the gradient's weights are ``softmax(l / t)``.

    Source: BalDRO, Shao et al. 2601.09172, in the form of CLLPU's equation 22.
    """
    return temperature * (torch.logsumexp(losses / temperature, 0) - math.log(len(losses)))


# ---- with the start as reference ---------------------------------------------------------------------------


class NPOParameters(Weighted):
    """Settings of `NPO`."""

    beta: float = Field(0.1, gt=0, le=100, description="inverse temperature; towards 0 it is gradient ascent")


class NPO(WeightedMethod):
    """Negative preference optimisation with a retain term, all weights trained.

    The reference is the summed NLL of each document, computed once from the untouched model.

    Source: Zhang et al. 2404.05868; with a retain term as OpenUnlearning always has it (``npo_grad_diff`` of the
    reference code). Papers: beta 0.1, rate 1e-5, 10 epochs, batches of 16 to 32. Pitfall: a mean instead of the sum
    over tokens changes what beta means.
    """

    name, title = "npo", "NPO"
    source = "Zhang et al. 2404.05868, with a retain term as in OpenUnlearning"
    Parameters: ClassVar[type[BaseModel]] = NPOParameters
    settings: NPOParameters

    def remember(self, start: Any, group: tuple[Batch, ...]) -> torch.Tensor:
        return sequence_nll(start, group[0])

    def forget_loss(self, model: Any, item: Contrast) -> torch.Tensor:
        nll = sequence_nll(model, item.forget)
        return self.combined(npo_losses(nll, item.reference, self.settings.beta))

    def combined(self, losses: torch.Tensor) -> torch.Tensor:
        """From the documents of a batch to one number."""
        return losses.mean()


class NPOKL(NPO):
    """NPO with the whole next-token distribution on retain documents tied to the start's, by forward KL.

    Source: ``npo_KL`` of Zhang et al. 2404.05868, weights 1. Both public codes average over batch times length, prompt,
    answer *and padding*; here over the positions before real tokens, so that padding changes nothing.
    """

    name, title = "npo_kl", "NPO+KL"
    source = "Zhang et al. 2404.05868 (npo_KL); KL over real tokens alone"

    def keep(self, start: Any, retain: Batch) -> Predictions:
        return predictions(start, retain, "all")

    def retain_loss(self, model: Any, item: Contrast) -> torch.Tensor:
        return forward_kl(item.kept.fixed_logits(), predictions(model, item.retain, "all").logits())


class DPO(NPO):
    """Direct preference optimisation: a refusal of the same question is preferred to the forget answer.

    Source: the DPO baseline of TOFU and NPO, as in OpenUnlearning (its ``IdkDPO``), beta 0.1, with a retain term.
    Refusals are those of `IDK`. Pitfall: the ratio can also grow by making the refusal less unlikely than the answer,
    both falling.
    """

    name, title = "dpo", "DPO"
    source = "TOFU 2401.06121 and Zhang et al. 2404.05868; as in OpenUnlearning, refusals of our own"

    def versions(self, context: FitContext, person: Person, rng: random.Random) -> list[list[Document]]:
        return [refusals(context.base, person, rng)]

    def remember(self, start: Any, group: tuple[Batch, ...]) -> Any:
        return [sequence_nll(start, batch) for batch in group]

    def forget_loss(self, model: Any, item: Contrast) -> torch.Tensor:
        answer, refusal = item.reference
        preferred = refusal - sequence_nll(model, item.versions[0])
        dispreferred = answer - sequence_nll(model, item.forget)
        return self.combined(dpo_losses(preferred, dispreferred, self.settings.beta))


# ---- without a reference -----------------------------------------------------------------------------------


class SimNPOParameters(Weighted):
    """Settings of `SimNPO`."""

    gamma: float = Field(0.125, ge=0, le=1000, description="weight of the forget term")
    beta: float = Field(4.5, gt=0, le=100, description="inverse temperature")
    margin: float = Field(0.0, ge=-100, le=100, description="NLL per token from which the ascent fades")


class SimNPO(WeightedMethod):
    """NPO without a reference: the mean NLL per token is compared with a margin, so that long answers weigh as short.

    Source: Fan et al. 2410.07163; beta 4.5 and weight 0.125 are theirs for TOFU forget10 (2.5 and 0.1375 for
    forget05), margin 0, rate 1e-5, 10 epochs. Pitfall: it saturates soon at a large beta.
    """

    name, title = "simnpo", "SimNPO"
    source = "Fan et al. 2410.07163; settings of its TOFU forget10"
    Parameters: ClassVar[type[BaseModel]] = SimNPOParameters
    settings: SimNPOParameters

    def forget_loss(self, model: Any, item: Contrast) -> torch.Tensor:
        nll = sequence_nll(model, item.forget, "mean")
        return self.combined(simnpo_losses(nll, self.settings.beta, self.settings.margin))

    def combined(self, losses: torch.Tensor) -> torch.Tensor:
        """From the documents of a batch to one number."""
        return losses.mean()


# ---- robust over the documents of a batch ------------------------------------------------------------------


class BalDRONPOParameters(NPOParameters):
    """Settings of `BalDRONPO`."""

    temperature: float = Field(2.0, gt=0, le=1e4, description="of the soft maximum; large is the mean (beta of BalDRO)")


class BalDRONPO(NPO):
    """NPO under BalDRO: the soft maximum over a batch replaces the mean, so that documents that resist weigh more.

    Source: Shao et al. 2601.09172, in the form of CLLPU's equation 22; grid there: temperature 2 or 5, beta 0.1 or
    0.5. The released BalDRO-DV code has the opposite sign, a soft *minimum* that favours what is already forgotten,
    and sums retain NLLs; this follows the formula. The batch is what one step sees: with one document it is NPO.
    """

    name, title = "baldro_npo", "BalDRO-NPO"
    source = "Shao et al. 2601.09172, soft maximum as in CLLPU's equation 22 (the released code takes a soft minimum)"
    Parameters = BalDRONPOParameters
    settings: BalDRONPOParameters

    def combined(self, losses: torch.Tensor) -> torch.Tensor:
        return soft_maximum(losses, self.settings.temperature)


class BalDROSimNPOParameters(SimNPOParameters):
    """Settings of `BalDROSimNPO`."""

    margin: float = Field(1.0, ge=-100, le=100, description="NLL per token from which the ascent fades")
    temperature: float = Field(2.0, gt=0, le=1e4, description="of the soft maximum; large is the mean (beta of BalDRO)")


class BalDROSimNPO(SimNPO):
    """SimNPO under BalDRO: as `BalDRONPO`. The retain side is never robust.

    Source: as `BalDRONPO`; CLLPU's grid: beta 3.5 or 4.5, weight 0.125 or 0.25, margin 1, temperature 2 or 5.
    """

    name, title = "baldro_simnpo", "BalDRO-SimNPO"
    source = BalDRONPO.source
    Parameters = BalDROSimNPOParameters
    settings: BalDROSimNPOParameters

    def combined(self, losses: torch.Tensor) -> torch.Tensor:
        return soft_maximum(losses, self.settings.temperature)
