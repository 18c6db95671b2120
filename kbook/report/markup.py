r"""HTML that is safe by construction: every text is escaped, unless it was made here.

Example:
    >>> print(tag("td", "<b>\u202ename</b>", class_="name"))
    <td class="name">&lt;b&gt;⟨U+202E⟩name&lt;/b&gt;</td>
"""

from __future__ import annotations

import html
from collections.abc import Iterable
from typing import Any

from kbook.report.text import visible

VOID = frozenset({"br", "hr", "meta"})


class Html(str):
    """Text that is HTML already; only this module and what calls it make one."""


def text(value: Any) -> Html:
    """Escape a value; what could hide or reorder text is made visible."""
    return value if isinstance(value, Html) else Html(html.escape(visible(str(value))))


def join(parts: Iterable[Any], between: str = "") -> Html:
    """Put parts one after the other, each escaped unless it is HTML."""
    return Html(text(between).join(text(part) for part in parts))


def tag(name: str, /, *children: Any, **attributes: Any) -> Html:
    """Make an element; an attribute that is None is left out, and `class_` is written `class`."""
    pairs = [(key.rstrip("_").replace("_", "-"), value) for key, value in attributes.items() if value is not None]
    inside = "".join(f' {key}="{text(value)}"' for key, value in pairs)
    return Html(f"<{name}{inside}>" + ("" if name in VOID else f"{join(children)}</{name}>"))


def table(header: Iterable[Any], rows: Iterable[Any], **attributes: Any) -> Html:
    """Make a table with a row of headings; what is a row or a cell already is kept."""
    head = tag("tr", *(_heading(cell) for cell in header))
    body = (row if isinstance(row, Html) else tag("tr", *(_cell(cell) for cell in row)) for row in rows)
    return tag("table", tag("thead", head), tag("tbody", *body), **attributes)


def _heading(value: Any) -> Html:
    return value if _is_cell(value) else tag("th", value, scope="col")


def _cell(value: Any) -> Html:
    return value if _is_cell(value) else tag("td", value)


def _is_cell(value: Any) -> bool:
    return isinstance(value, Html) and value.startswith(("<td", "<th"))
