"""Does a text show a value? Matchers, each chosen by its name.

`published` follows the rule behind the published numbers, so that rates can be compared with the paper; `strict`
finds what a careful reader would. Every table can be made with either.
"""

from __future__ import annotations

from kbook.errors import unknown_name
from kbook.scoring.forms import Matcher
from kbook.scoring.published_rule import PUBLISHED
from kbook.scoring.strict import STRICT

MATCHERS = {rule.name: rule for rule in (PUBLISHED, STRICT)}


def matcher(name: str) -> Matcher:
    """Look a matcher up by its name.

    Raises:
        KBookError: no matcher has this name.
    """
    if name not in MATCHERS:
        raise unknown_name("matcher", name, MATCHERS)
    return MATCHERS[name]
