"""States with a planted difference, a probe to look for it that shares nothing with the methods, and layers' states."""

import torch

from kbook.methods.activations import changed_outputs, decoder_layers
from kbook.methods.states import States


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


def layer_outputs(base, ids: torch.Tensor) -> dict[int, torch.Tensor]:
    """What each decoder layer gives."""
    found: dict[int, torch.Tensor] = {}

    def keep(n):
        return lambda _input, output: found.setdefault(n, output)

    with changed_outputs({layer: keep(n) for n, layer in enumerate(decoder_layers(base))}), torch.no_grad():
        base.model.base_model(input_ids=ids, use_cache=False)
    return found
