"""States with a planted difference, and a probe to look for it that shares nothing with the methods under test."""

import torch

from kbook.methods.activations import States


def states(values: torch.Tensor, forget: torch.Tensor) -> States:
    return States(values.double(), forget, torch.arange(len(values)) % 5)


def shifted(n: int = 400, width: int = 16, by: float = 3.0, axis: int = 0, seed: int = 0) -> States:
    """Standard normal states; those of the forget pool are moved along one axis. All have a common mean of 2."""
    values = torch.randn(n, width, generator=torch.Generator().manual_seed(seed), dtype=torch.float64) + 2
    forget = torch.arange(n) % 2 == 0
    values[forget, axis] += by
    return states(values, forget)


def correlated(n: int = 400, width: int = 16, seed: int = 0) -> States:
    """As `shifted`, with dimensions mixed and scaled."""
    plain = shifted(n, width, seed=seed)
    generator = torch.Generator().manual_seed(seed + 1)
    mixing = torch.randn(width, width, generator=generator, dtype=torch.float64) * torch.logspace(-1, 1, width)
    return states(plain.values @ mixing, plain.forget)


def linear_accuracy(values: torch.Tensor, forget: torch.Tensor) -> float:
    """Accuracy, on the data it was fitted on, of the least-squares probe: at its best, and at chance without signal."""
    inputs = torch.cat([values.double(), torch.ones(len(values), 1, dtype=torch.float64)], dim=1)
    signs = 2 * forget.double() - 1
    weights = torch.linalg.lstsq(inputs, signs[:, None], driver="gelsd").solution[:, 0]
    return float(((inputs @ weights).sign() == signs).double().mean())
