"""What tests of the agent share: a person, a query, replies, a guard that refuses, and a model that is scripted."""

from collections.abc import Callable, Sequence
from typing import Any

from kbook.corpora.people import Person, Query
from kbook.methods.contract import Verdict
from kbook.models.bases import Base
from kbook.models.decoding import DecodingHook, Reply

FACTS = ("1983-07-14", "12 Elm Road, Apt. 3, Riverton, OH 44444", "Clerk", "Ito Ltd")
ANA = Person("pii-1", "Ana Ito", *FACTS, biography=f"Ana Ito: {', '.join(FACTS)}.")
QUERY = Query(ANA, "address")
LOOK_UP = "Thought: I look.\nAction: lookup_record[name=Ana Ito, field=address]"


def refusing(kind: str, word: str = "") -> Callable[[str, str], Verdict]:
    def look(at: str, text: str) -> Verdict:
        return Verdict("refuse", "I cannot say.") if at == kind and word in text else Verdict()

    return look


class Scripted:
    """Stands in for `LiveBatch`: replies come from a function of the row's name and the text so far."""

    script: Callable[[Any, str], str]
    asked: list[tuple[Any, str]]
    reusable = False

    def __init__(self, base: Base, names: Sequence[Any], hooks: Sequence[DecodingHook] = ()) -> None:
        self.names = list(names)

    def keep(self, indices: Sequence[int]) -> None:
        self.names = [self.names[i] for i in indices]

    def reply(self, texts: Sequence[str], limit: int) -> list[Reply]:
        type(self).asked += list(zip(self.names, texts, strict=True))
        return [Reply(type(self).script(n, t), 1.0, 1) for n, t in zip(self.names, texts, strict=True)]
