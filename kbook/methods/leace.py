"""LEACE: the smallest affine change of hidden states after which no linear probe tells forget from retain."""

from __future__ import annotations

import torch
from pydantic import Field

from kbook.methods.activations import LinearErasure
from kbook.methods.states import DepthParameters, Fit, StateMethod, States


class LEACEParameters(DepthParameters):
    """Settings of `LEACE`."""

    depth: float = Field(1.0, ge=0, le=1, description="the layer, as a fraction of the depth; 1 is the last")
    tolerance: float = Field(
        0.01, ge=0, le=1, description="whitened cross-covariance below which there is nothing to erase"
    )
    shrinkage: bool = Field(True, description="shrink the covariance of states towards a multiple of the identity")


def shrunk(covariance: torch.Tensor, n: int) -> torch.Tensor:
    """Blend a sample covariance with a multiple of the identity of the same trace, with the optimal weight.

    *Shape*: ``(width, width)`` to the same. *Missing*: fewer samples mean more of the identity.

    Args:
        covariance: S, with width p.
        n: samples that it was estimated from.

    Returns:
        ``a S + (1 - a) tr(S)/p I`` with ``1 - a = tr(S)^2 / n / (|S|^2 - tr(S)^2 / p)``, within 0 and 1.

    Source: Bodnar, Gupta and Parolya 2014 (1308.2608), with the identity as target.
    """
    width, trace = len(covariance), torch.trace(covariance)
    spread = covariance.square().sum() - trace**2 / width
    weight = float((trace**2 / n / spread).clamp(0, 1)) if spread > 0 else 1.0
    identity = torch.eye(width, dtype=covariance.dtype)
    return (1 - weight) * covariance + weight * trace / width * identity


def leace(values: torch.Tensor, forget: torch.Tensor, tolerance: float, shrinkage: bool) -> Fit:
    """The closed form, unless its singular value is within the tolerance.

    With ``W = (S_hh^1/2)^+`` and ``u`` the direction of ``W s_hz``:
    ``r(h) = h - W^+ u u' W (h - mean)``.

    *Shape*: ``(n, width)`` and ``(n,)``. *Unit*: the singular value ``|W s_hz|`` is the standard deviation
    of the label (at most 0.5) times the multiple correlation of label and state; with shrinkage, about that.

    Source: Belrose et al. 2306.03819, theorem 4.3.
    """
    n, mean = len(values), values.mean(0)
    centred, label = values - mean, forget.double() - forget.double().mean()
    covariance, cross = centred.T @ centred / (n - 1), centred.T @ label / (n - 1)
    scales, basis = torch.linalg.eigh(shrunk(covariance, n) if shrinkage else covariance)
    kept = scales > scales[-1].clamp(min=0) * len(scales) * torch.finfo(scales.dtype).eps
    scales, basis = scales[kept].sqrt(), basis[:, kept]
    whitened = basis.T @ cross / scales
    singular = float(whitened.norm())
    facts = {
        "singular": round(singular, 6),
        "tolerance": tolerance,
        "n": n,
        "rank": int(singular > tolerance),
    }
    if singular <= tolerance:
        return Fit(None, facts)
    unit = whitened / singular
    left, right = basis @ (scales * unit), basis @ (unit / scales)
    return Fit(LinearErasure(left[:, None], right[None], mean), facts)


class LEACE(StateMethod):
    """Least-squares concept erasure of the label "to be forgotten".

    Where: output of one layer, all tokens, so all lanes. A probe of another kind, or of another layer, may
    still find what it looks for.

    The singular value of the whitened cross-covariance decides whether anything is erased. The library's
    absolute tolerance of 0.01 makes LEACE the identity where the label hardly correlates with states, as it
    does over all tokens of a prompt (K-Bench reports LEACE as a no-op for this reason). The value, the
    tolerance and the rank are among the facts of the fit.

    The library's constraint on the trace is left out: with the covariance that whitens, the trace of the
    erased covariance never exceeds the trace before.

    Source: Belrose et al. 2306.03819 and its library (affine, shrinkage, absolute tolerance); last layer
    as in K-Bench.
    """

    name, title = "leace", "LEACE"
    source = "Belrose et al. 2306.03819; last layer and tolerance 0.01 as in K-Bench, fitted on name tokens"
    Parameters = LEACEParameters
    settings: LEACEParameters

    def fit(self, states: States, seed: int) -> Fit:
        return leace(states.values, states.forget, self.settings.tolerance, self.settings.shrinkage)
