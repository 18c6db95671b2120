"""Private randomness: a generator is named by what it is for, so that no draw depends on other draws."""

from __future__ import annotations

import hashlib
from typing import Any

import torch


def generator_for(*names: Any) -> torch.Generator:
    """A CPU generator whose seed is a hash of ``names``: the same names, the same draws."""
    seed = int.from_bytes(hashlib.sha256(repr(names).encode()).digest()[:8], "big")
    return torch.Generator().manual_seed(seed >> 1)
