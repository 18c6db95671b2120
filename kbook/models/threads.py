"""How many threads torch computes with, for a while."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def threads(n: int) -> Iterator[None]:
    """Compute with ``n`` threads inside, and with as many as before afterwards.

    One is best for long loops of small products, where more threads only wait for each other. Another number
    rounds sums in another order.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(n)
    try:
        yield
    finally:
        torch.set_num_threads(before)
