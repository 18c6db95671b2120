"""Names in text: who is asked about, and where a name stands.

A deployed filter has a list of names and a rendered conversation, nothing else. It must find the *asked*
person, not anyone whom the context mentions, and must not take "Ann Lee" for asked when the question is
about "Mary Ann Lee" or "Ann Lee MD".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from kbook.models.bases import Base

_SENTENCE_START = re.compile(r"(?:^|[.:?!]\s+|\n)$")
_WORD_BEFORE = re.compile(r"([A-Z][\w'’.-]*)[ \t]$")
_NAME_GOES_ON = re.compile(r"-\w|[ \t][A-Z]")


class NameList:
    """Names that can be looked for.

    Args:
        names: full names. Case and the width of white space do not matter.
    """

    def __init__(self, names: Iterable[str]) -> None:
        self.names = {_folded(name): name for name in names}
        self._any = _pattern(self.names.values()) if self.names else None

    def asked(self, message: str) -> list[str]:
        """Names of the list that ``message`` asks about: those that stand there whole."""
        found = self._any.finditer(message) if self._any else ()
        whole = [_folded(m[0]) for m in found if _stands_alone(message, m.start(), m.end())]
        return [self.names[name] for name in dict.fromkeys(whole)]


def places(text: str, names: Iterable[str]) -> list[tuple[int, int]]:
    """Where ``names`` stand, as character ranges, in any surrounding: ``=Alice``, ``(Alice``, ``Alice's``."""
    chosen = list(names)
    return [m.span() for m in _pattern(chosen).finditer(text)] if chosen else []


def message_finder(base: Base) -> Callable[[str], str]:
    """How to find the user's last message in a conversation rendered for ``base``.

    The function is exact on a prompt, and on a longer conversation if the chat template marks the user's
    turn.
    """
    _, _, rest = base.render("\ue000", "\ue001").partition("\ue000")
    opening, _, closing = rest.partition("\ue001")

    def find(text: str) -> str:
        message = text.rpartition(opening)[2] if opening else text
        return message.partition(closing)[0] if closing else message

    return find


def _pattern(names: Iterable[str]) -> re.Pattern[str]:
    longest_first = sorted(names, key=len, reverse=True)
    spelt = "|".join(r"\s+".join(map(re.escape, name.split())) for name in longest_first)
    # not within a word; an underscore is no part of a word
    return re.compile(rf"(?<![^\W_])(?:{spelt})(?![^\W_])", re.IGNORECASE)


def _folded(name: str) -> str:
    return " ".join(name.split()).casefold()


def _stands_alone(message: str, start: int, end: int) -> bool:
    """No part of a longer name: neither a title or name before it, nor a suffix or name after it."""
    before = _WORD_BEFORE.search(message[:start])
    goes_back = before and (before[1].endswith(".") or not _SENTENCE_START.search(message[: before.start()]))
    joined = message[:start].endswith("-")
    return not (goes_back or joined or _NAME_GOES_ON.match(message, end))
