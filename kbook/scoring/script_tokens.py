"""What counts as a token in each script, for ROUGE-L in ten languages.

Scripts that put spaces between words give words; Thai, kana and CJK, which do not, give single characters. The
common scorer for English knows ASCII letters alone: of most scripts it sees nothing.

Example:
    >>> script_tokens("Am 14. März"), script_tokens("東京タワー2033年")
    (['am', '14', 'märz'], ['東', '京', 'タ', 'ワ', 'ー', '2033', '年'])
"""

from __future__ import annotations

import unicodedata

from kbook.text import folded

_SINGLE = (
    (0x0E00, 0x0E7F),  # Thai
    (0x3005, 0x3007),  # ideographic iteration mark, closing mark and zero
    (0x3040, 0x30FF),  # kana
    (0x31F0, 0x31FF),  # kana, extensions
    (0x3400, 0x4DBF),  # CJK, extension A
    (0x4E00, 0x9FFF),  # CJK
    (0xF900, 0xFAFF),  # CJK, compatibility
    (0x1B000, 0x1B16F),  # kana, supplements
    (0x20000, 0x3FFFF),  # CJK, further extensions
)


def script_tokens(text: str) -> list[str]:
    """Split a text into words or, in Thai, kana and CJK, single characters.

    Letters, numbers and marks stay together; anything else separates and is no token.

    Shape: one text → its tokens, NFKC and case-folded.
    Unit: tokens.
    Missing: a text without letters, numbers and marks has no token.
    Source: CLLPU, section 4.2.1, ROUGE-L; its tokens are those of protocol B, section 4.
    """
    return "".join(map(_spaced, folded(text))).split()


def _spaced(character: str) -> str:
    if unicodedata.category(character)[0] not in "LNM":
        return " "
    code = ord(character)
    return f" {character} " if any(first <= code <= last for first, last in _SINGLE) else character
