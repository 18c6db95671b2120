"""The ten languages of CLLPU: how they are called, written and joined.

Source: CLLPU, section 3.3 (ar, bn, de, en, es, fr, ja, sw, th, zh).
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from typing import Literal

from kbook.errors import unknown_name


@dataclass(frozen=True)
class Language:
    """One language.

    Args:
        code: ISO 639-1.
        name: in English.
        own_name: in the language itself.
        script: name of the script.
        blocks: first words of the Unicode names of its letters.
        direction: ``rtl`` where a line starts at the right.
        spaced: words are separated by spaces.
        joiner: what stands between the parts of a person's name.
        gap: what stands between two sentences.
    """

    code: str
    name: str
    own_name: str
    script: str
    blocks: tuple[str, ...]
    direction: Literal["ltr", "rtl"] = "ltr"
    spaced: bool = True
    joiner: str = " "
    gap: str = " "

    def writes(self, letter: str) -> bool:
        """Whether a letter belongs to the script of this language.

        Example:
            >>> language("th").writes("ก"), language("th").writes("k")
            (True, False)
        """
        return unicodedata.name(letter, "").startswith(self.blocks)


_LATIN = ("LATIN",)
_JAPANESE = ("HIRAGANA", "KATAKANA", "CJK")
_TABLE = {
    row.code: row
    for row in (
        Language("ar", "Arabic", "العربية", "Arabic", ("ARABIC",), direction="rtl"),
        Language("bn", "Bengali", "বাংলা", "Bengali", ("BENGALI",)),
        Language("de", "German", "Deutsch", "Latin", _LATIN),
        Language("en", "English", "English", "Latin", _LATIN),
        Language("es", "Spanish", "español", "Latin", _LATIN),
        Language("fr", "French", "français", "Latin", _LATIN),
        Language("ja", "Japanese", "日本語", "kana and kanji", _JAPANESE, spaced=False, joiner="・", gap=""),
        Language("sw", "Swahili", "Kiswahili", "Latin", _LATIN),
        Language("th", "Thai", "ไทย", "Thai", ("THAI",), spaced=False),
        Language("zh", "Chinese", "中文", "Han", ("CJK",), spaced=False, joiner="·", gap=""),
    )
}

LANGUAGES: tuple[str, ...] = tuple(_TABLE)
"""The codes, in the order of every table of the book."""


def language(code: str) -> Language:
    """Look a language up by its code.

    Raises:
        KBookError: not one of `LANGUAGES`.
    """
    if code not in _TABLE:
        raise unknown_name("language", code, LANGUAGES)
    return _TABLE[code]
