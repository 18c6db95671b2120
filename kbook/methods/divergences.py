"""Distances between distributions over the vocabulary, and between two probabilities; all in nats unless said."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch


def forward_kl(reference: torch.Tensor, logits: torch.Tensor) -> torch.Tensor:
    """Mean KL(reference || model) over positions. Shape: logits ``(n, vocabulary)`` twice, to a scalar."""
    p, q = reference.log_softmax(-1), logits.log_softmax(-1)
    return (p.exp() * (p - q)).sum(-1).mean()


def soft_cross_entropy(target: torch.Tensor, logits: torch.Tensor) -> torch.Tensor:
    """Mean ``-sum(target * log softmax(logits))``: the KL from ``target`` plus its entropy, which is a constant.

    Shape: probabilities and logits, ``(n, vocabulary)`` each, to a scalar.
    """
    return -(target * logits.log_softmax(-1)).sum(-1).mean()


def kl_from_uniform(logits: torch.Tensor) -> torch.Tensor:
    """Mean KL(uniform || model) over positions. Shape: ``(n, vocabulary)`` to a scalar."""
    return -(math.log(logits.shape[-1]) + logits.log_softmax(-1).mean(-1)).mean()


_Function = Callable[[torch.Tensor], torch.Tensor]
VARIATIONAL: dict[str, tuple[_Function, _Function]] = {
    "tv": (lambda p: p.tanh() / 2, lambda t: t),
    "kl": (lambda p: p, lambda t: (t - 1).exp()),
    "pearson": (lambda p: p, lambda t: t + t**2 / 4),
    "js": (lambda p: math.log(2) - (1 + (-p).exp()).log(), lambda t: -(2 - t.exp()).log()),
    "hellinger": (lambda p: 1 - (-p).exp(), lambda t: t / (1 - t)),
    "neyman": (lambda p: 1 - p.exp(), lambda t: 2 - 2 * (1 - t).sqrt()),
    "reverse_kl": (lambda p: -(-p).exp(), lambda t: -1 - (-t).log()),
}
"""f-divergence to its output activation g and conjugate f* (Nowozin et al. 1606.00709, tables 5 and 6)."""


def variational_loss(preferred: torch.Tensor, other: torch.Tensor, divergence: str) -> torch.Tensor:
    """``f*(g(other)) - g(preferred)``: the negated variational bound of an f-divergence; no unit."""
    g, conjugate = VARIATIONAL[divergence]
    return conjugate(g(other)) - g(preferred)
