r"""Make text from anywhere inert: what models wrote, or other people, is hostile until proven otherwise.

Example:
    >>> print(escape_text("<b> $x$ {eval-rst}`y` | [z](javascript:1)"))
    \<b\> \$x\$ \{eval\-rst\}\`y\` \| \[z\]\(javascript\:1\)
"""

from __future__ import annotations

import re
import unicodedata

LINE_BREAK = " ↵ "

_PUNCTUATION = re.compile(r"([!-/:-@\[-`{-~])")
_JOINERS = "\u200c\u200d"  # invisible, but part of how Persian and Indic words are written
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})


def visible(text: str) -> str:
    """Show what could hide or reorder text: control characters as pictures (␛), other invisible ones by code.

    Line feeds stay; tabs become four spaces; line ends of other systems become line feeds.
    """
    unified = text.replace("\r\n", "\n").replace("\t", "    ")
    return "".join(c if c == "\n" or c in _JOINERS or not _is_hidden(c) else _picture(c) for c in unified)


def colourless(text: str) -> str:
    """Drop the colours that programs write for terminals."""
    return _COLOURS.sub("", text)


def slug(name: str) -> str:
    """Turn a name into the last part of an artifact's key: letters and digits of ASCII in lower case, and hyphens.

    Example:
        >>> slug("meta-llama/Llama-3.1-8B_x")
        'meta-llama-llama-3-1-8b-x'
    """
    return "-".join(re.findall(r"[a-z0-9]+", name.lower())) or "unnamed"


def clip(text: str, limit: int) -> str:
    """Keep the first `limit` characters, and say how many were left out."""
    left_out = len(text) - limit
    return text if left_out <= 0 else f"{text[:limit]} … [{left_out:,} more characters]"


def escape_line(text: str) -> str:
    """Escape one line for MyST: every ASCII punctuation mark gets its backslash, so none can be markup.

    No role, directive, link, HTML, entity, mathematics, table cell or heading can begin in the result.
    """
    return _PUNCTUATION.sub(r"\\\1", text)


def escape_text(text: str, limit: int = 400) -> str:
    """Escape text for one line of prose or one table cell: line ends are shown as ↵, long text is clipped."""
    lines = visible(clip(text, limit)).strip().split("\n")
    return escape_line(LINE_BREAK.join(" ".join(line.split()) for line in lines))


def escape_block(text: str, limit: int = 4000) -> str:
    """Escape text for a block of MyST that keeps its line ends and its indentation."""
    lines = [_keep_indent(line.rstrip()) for line in visible(clip(text, limit)).strip("\n").split("\n")]
    return "\\\n".join(escape_line(line) or "\u00a0" for line in lines)


def _keep_indent(line: str) -> str:
    body = line.lstrip(" ")
    return "\u00a0" * (len(line) - len(body)) + body


def _is_hidden(character: str) -> bool:
    return (
        not character.isascii() and unicodedata.category(character) in _HIDDEN or character < " " or character == "\x7f"
    )


def _picture(character: str) -> str:
    code = ord(character)
    if code < 0x20:
        return chr(0x2400 + code)
    return "\u2421" if code == 0x7F else f"⟨U+{code:04X}⟩"
