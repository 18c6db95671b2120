"""Fonts of the figures: which families draw which script here, and how a language is labelled with what there is.

matplotlib shapes text since 3.11: Arabic is joined and runs from the right, Bengali vowels stand where they belong.
Without that, or without a font, a language is labelled by its code alone.

Example:
    >>> label("de")
    'de Deutsch'
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import Any

from kbook.corpora.languages import LANGUAGES, language

FAMILY = "DejaVu Sans"
"""Draws Latin letters, digits and signs, and comes with matplotlib."""
FAMILIES: dict[str, tuple[str, ...]] = {
    "Latin": (FAMILY,),
    "Arabic": ("Noto Sans Arabic", "Noto Naskh Arabic", "Geeza Pro", "Segoe UI", FAMILY),
    "Bengali": ("Noto Sans Bengali", "Bangla Sangam MN", "Nirmala UI", "Lohit Bengali"),
    "Thai": ("Noto Sans Thai", "Noto Looped Thai", "Thonburi", "Leelawadee UI", "Garuda"),
    "kana and kanji": ("Noto Sans CJK JP", "Hiragino Sans", "Yu Gothic", "IPAexGothic", "WenQuanYi Zen Hei"),
    "Han": ("Noto Sans CJK JP", "Noto Sans CJK SC", "PingFang SC", "Microsoft YaHei", "WenQuanYi Zen Hei"),
}
"""Script → families that draw it, the preferred one first: Noto, then what comes with other systems."""
SHAPED = ("Arabic", "Bengali", "Thai")
"""Scripts whose letters change with their neighbours."""
PACKAGES = ("fonts-noto-core", "fonts-noto-cjk")
"""Of Debian; the fonts are the same for all systems."""


def label(code: str) -> str:
    """A language as the axes of figures name it: its code, and its own name where a font draws it.

    The code comes first, so that labels of both directions begin alike.
    """
    return f"{code} {language(code).own_name}" if language(code).script in drawn() else code


def labels(codes: Iterable[str]) -> dict[str, str]:
    """Code → `label`."""
    return {code: label(code) for code in codes}


@lru_cache(maxsize=1)
def drawn() -> dict[str, str]:
    """Script → the family that draws it on this machine; scripts that none draws are left out."""
    from matplotlib.font_manager import fontManager

    if len(_chosen(fontManager)) < len(FAMILIES):
        _look_again(fontManager)
    return {script: name for script, name in _chosen(fontManager).items() if script not in SHAPED or shapes()}


def families() -> list[str]:
    """The families in which text is drawn, each for what those before it lack."""
    return list(dict.fromkeys((FAMILY, *drawn().values())))


def undrawn() -> list[str]:
    """Codes of the languages that figures can only name by code."""
    return [code for code in LANGUAGES if language(code).script not in drawn()]


def shapes() -> bool:
    """Whether matplotlib joins and reorders letters as their script demands."""
    from matplotlib import ft2font

    return hasattr(ft2font, "__libraqm_version__")


def _chosen(manager: Any) -> dict[str, str]:
    here = {entry.name for entry in manager.ttflist}
    found = {script: next((name for name in names if name in here), "") for script, names in FAMILIES.items()}
    return {script: name for script, name in found.items() if name}


def _look_again(manager: Any) -> None:
    """Find Noto where it was installed after matplotlib made its list of fonts, which it keeps."""
    from matplotlib.font_manager import findSystemFonts

    known = {entry.fname for entry in manager.ttflist}
    for path in findSystemFonts():
        if path not in known and Path(path).name.startswith("Noto"):
            manager.addfont(path)
