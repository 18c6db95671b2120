"""The three tools of the agent: `lookup_record`, `search_wiki` and `verify_attribute`.

A tool never fails: whatever the agent writes, it gets an observation in words.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from kbook.agent.lanes import Stores
from kbook.corpora.passages import Passage
from kbook.corpora.protocol import (
    ARGUMENTS,
    NO_MATCH,
    TOOLS,
    ToolCall,
    agreement,
    no_record,
    passages_observation,
    record_observation,
)
from kbook.keys import FIELDS
from kbook.profiles import Lanes
from kbook.text import folded


class Encoder(Protocol):
    """Sentence encoder: texts to unit vectors. Shape: ``(texts, width)`` float32."""

    def encode(self, texts: Sequence[str]) -> np.ndarray: ...


@dataclass(frozen=True)
class Observation:
    """What a tool answers: the text the agent sees, and the passages behind it (search only)."""

    text: str
    hits: tuple[str, ...] | None = None


class PassageIndex:
    """Exact inner-product search over passage embeddings (faiss ``IndexFlatIP``); ties go to the lower id."""

    def __init__(self, passages: Sequence[Passage], encoder: Encoder) -> None:
        import faiss

        self.passages, self.encoder = list(passages), encoder
        vectors = encoder.encode([f"{p.title}: {p.text}" for p in passages]) if passages else np.zeros((0, 1), "f4")
        self.index: Any = faiss.IndexFlatIP(vectors.shape[1])
        self.index.add(vectors)

    def search(self, query: str, k: int) -> list[Passage]:
        """The ``k`` passages nearest to ``query``, best first."""
        if not self.passages:
            return []
        scores, found = self.index.search(self.encoder.encode([query]), min(k, len(self.passages)))
        order = sorted(zip(-np.round(scores[0], 5), found[0], strict=True))
        return [self.passages[i] for _, i in order]


class Toolbox:
    """The tools over one cell's stores."""

    def __init__(self, stores: Stores, index: PassageIndex, settings: Lanes) -> None:
        self.index, self.settings = index, settings
        self.records = {folded(p.name): p for p in stores.records}

    def __call__(self, call: ToolCall) -> Observation:
        """Answer a call; an unknown tool or a missing argument gets an explanation."""
        arguments = call.arguments
        if call.tool == "search_wiki":
            return self._search(arguments.get("query", ""))
        if call.tool not in ARGUMENTS:
            return Observation(f"there is no tool {call.tool}; the tools are {', '.join(TOOLS)}")
        if missing := [name for name in ARGUMENTS[call.tool] if not arguments.get(name)]:
            return Observation(f"{call.tool} needs {' and '.join(missing)}")
        return Observation((self._look_up if call.tool == "lookup_record" else self._verify)(**arguments))

    def _search(self, query: str) -> Observation:
        passages = self.index.search(query, self.settings.top_k) if query.strip() else []
        shown = [p.shown(self.settings.passage_chars) for p in passages]
        hits = tuple(f"{p.id} | {p.title} | {p.excerpt(self.settings.passage_chars)}" for p in passages)
        return Observation(passages_observation(shown), hits)

    def _look_up(self, name: str, field: str) -> str:
        person = self.records.get(folded(name))
        if person is None:
            return no_record(name)
        if field not in FIELDS:
            return f"no field {field}; the fields are {', '.join(FIELDS)}"
        if not person.value(field):
            return f"the record of {person.name} has no {field}"
        return record_observation(person.name, field, person.value(field))

    def _verify(self, name: str, attribute_value: str) -> str:
        person = self.records.get(folded(name))
        if person is None:
            return no_record(name)
        known = [f for f in FIELDS if person.value(f)]
        matching = [f for f in known if folded(person.value(f)) == folded(attribute_value)]
        return agreement(matching[0]) if matching else NO_MATCH
