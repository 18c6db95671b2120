"""The one error a reader of this book should ever see: what is wrong, where, and what to do about it."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class KBookError(Exception):
    """Report bad input in one paragraph; the command line prints it and exits with status 2.

    Args:
        what: what is wrong, naming the offending value.
        where: the file, line, field or object in which it was found ("" when there is none).
        remedy: what the reader can do now.
    """

    def __init__(self, what: str, where: str = "", remedy: str = "") -> None:
        super().__init__(what, where, remedy)
        self.what, self.where, self.remedy = what, where, remedy

    def __str__(self) -> str:
        head = f"{self.where}: {self.what}" if self.where else self.what
        return _paragraph(" ".join(_sentence(part) for part in (head, self.remedy) if part))


def unknown_name(kind: str, name: str, known: Iterable[str], where: str = "") -> KBookError:
    """Build the error for a name that nobody knows, with its nearest neighbours and the whole list.

    Args:
        kind: what the name should have named, as in "lane" or "profile".
        name: the name that was given.
        known: all names that would have been accepted.
        where: as in `KBookError`.
    """
    names = list(known)
    folded = {candidate.casefold(): candidate for candidate in names}
    near = [folded[match] for match in difflib.get_close_matches(name.casefold(), folded, n=3)]
    hint = f"Did you mean {' or '.join(near)}? " if near else ""
    listed = f"Known: {', '.join(names)}" if names else "None are known"
    return KBookError(f"unknown {kind} {name!r}", where, hint + listed)


def _sentence(text: str) -> str:
    text = text.strip()
    return text if text.endswith((".", "?", "!")) else text + "."


def _paragraph(text: str) -> str:
    """Keep a message to one inert paragraph: names in it may come from hostile files."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in " ".join(text.split()))
