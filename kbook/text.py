"""Canonical text: the one rule by which names and values are compared when case and spacing do not matter."""

from __future__ import annotations

import unicodedata


def folded(text: str) -> str:
    r"""Unicode NFKC, case-folded, white space collapsed: how names are looked up.

    Example:
        >>> folded("  Ana\u00a0SMITH ")
        'ana smith'
    """
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())
