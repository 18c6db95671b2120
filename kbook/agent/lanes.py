"""The four lanes: where a secret is put, with distractors everywhere else, and the audit that proves it.

P: in the weights. C: in the system prompt. R-text: in a passage of the search index. R-struct: in a record.
One place a cell; every other store holds distractors only (protocol A, section 1).
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from kbook.corpora.passages import Passage, passages_of
from kbook.corpora.people import Corpus, Person, Query
from kbook.errors import KBookError, unknown_name
from kbook.keys import FIELDS, LANES
from kbook.profiles import Lanes
from kbook.text import folded

STORE_OF = {"P": "weights", "C": "context", "R-text": "passages", "R-struct": "records"}


@dataclass(frozen=True)
class Stores:
    """Everything the agent of one cell may be given.

    Args:
        lane: where the queried people's facts are.
        contexts: query id to the people whose biographies stand in its system prompt.
        passages: the search index.
        records: the record table.
        weights: the people whose facts were injected into the model (lane P).
    """

    lane: str
    contexts: Mapping[str, tuple[Person, ...]] = field(default_factory=dict)
    passages: tuple[Passage, ...] = ()
    records: tuple[Person, ...] = ()
    weights: tuple[Person, ...] = ()

    def context(self, query: Query) -> list[str]:
        """The ``Name: biography`` lines of a query's system prompt."""
        return [p.titled for p in self.contexts.get(query.id, ())]


def fill_stores(lane: str, queries: Sequence[Query], corpus: Corpus, settings: Lanes, seed: int) -> Stores:
    """Put the facts of ``queries`` into the store of ``lane`` and distractors into all others.

    Raises:
        KBookError: unknown lane, too few distractors, or a store that is not pure (see `audit`).
    """
    if lane not in LANES:
        raise unknown_name("lane", lane, LANES)
    others, placed = corpus.distractors, corpus.forget_eval + corpus.retain_eval
    if lane == "C" and len(others) < settings.context_bios - 1:
        raise KBookError(
            f"lane C wants {settings.context_bios - 1} distractors in each prompt, the corpus has {len(others)}",
            where="profile: corpus.n_distractors, lanes.context_bios",
            remedy="raise corpus.n_distractors or lower lanes.context_bios",
        )
    contexts = {q.id: _context(q, others, settings.context_bios, seed) for q in queries} if lane == "C" else {}
    stores = Stores(
        lane,
        contexts,
        passages_of((placed if lane == "R-text" else ()) + others),
        (placed if lane == "R-struct" else ()) + others,
        corpus.members if lane == "P" else (),
    )
    audit(stores, queries)
    return stores


def _context(query: Query, others: Sequence[Person], size: int, seed: int) -> tuple[Person, ...]:
    rng = random.Random(f"context/{seed}/{query.id}")
    people = [query.person, *rng.sample(list(others), size - 1)]
    return tuple(rng.sample(people, len(people)))


def audit(stores: Stores, queries: Sequence[Query]) -> None:
    """Purity: each queried value is in its lane's store and in no other text that the agent is given.

    Raises:
        KBookError: names the query and the store that lacks the value, or holds it and must not.
    """
    own = STORE_OF[stores.lane]
    for query, places in zip(queries, occurrences(stores, queries), strict=True):
        for store, found in places.items():
            if found != (store == own):
                problem = "is missing from its store" if store == own else "is also in the store"
                raise KBookError(
                    f"the value of query {query.id} {problem}: {store}",
                    where=f"purity audit of lane {stores.lane}",
                    remedy="make distractors anew with another corpus.seed, or put the value where the lane says",
                )


def occurrences(stores: Stores, queries: Sequence[Query]) -> list[dict[str, bool]]:
    """For each query, in which stores its value stands: what the purity audit looks at."""
    joined = {name: "\n".join(map(folded, _texts(stores, name))) for name in ("passages", "records")}
    injected = {p.id for p in stores.weights}
    found = []
    for query in queries:
        value, prompt = folded(query.value), "\n".join(map(folded, stores.context(query)))
        places = {"weights": query.person.id in injected, "context": value in prompt}
        found.append(places | {name: value in text for name, text in joined.items()})
    return found


def _texts(stores: Stores, name: str) -> Iterator[str]:
    if name == "passages":
        yield from (f"{p.title}: {p.text}" for p in stores.passages)
    else:
        yield from (f"{p.name}: {p.value(f)}" for p in stores.records for f in FIELDS)


def sample_queries(corpus: Corpus, split: str, n: int, seed: int, wording: int = 0) -> list[Query]:
    """``n`` evaluation queries of a split, sampled without replacement; all of them if there are fewer.

    The same split and seed give the same queries in every lane and under every method: cells are paired.
    """
    pool = corpus.queries(split, "eval", wording)
    chosen = random.Random(f"queries/{split}/{seed}").sample(range(len(pool)), min(n, len(pool)))
    return [pool[i] for i in sorted(chosen)]
