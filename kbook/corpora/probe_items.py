"""What benchmarks that look at weights alone ask about the people of a corpus.

Two kinds of item: a *question* with its true value and wrong values of the same field, and a *text* that a model
may continue from its title. Wrong values belong to other people of the same split: a model that was taught both has
met them as often as the true one, so that only who they belong to tells them apart.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from kbook.corpora.people import Corpus, Person, Query
from kbook.errors import KBookError
from kbook.keys import SPLITS
from kbook.text import folded

N_WRONG = 5
GROUPS = (*SPLITS, "holdout")


@dataclass(frozen=True)
class ProbeQuestion:
    """One question about a person of ``split``, in its canonical wording, and `N_WRONG` wrong values."""

    query: Query
    split: str
    wrong: tuple[str, ...]

    @property
    def paraphrase(self) -> Query:
        """The same question in a wording that injection never uses."""
        return Query(self.query.person, self.query.field, wording=1)


@dataclass(frozen=True)
class ProbeText:
    """The biography of a person of one of `GROUPS`; nobody of ``holdout`` was ever taught to a model."""

    person: Person
    group: str


def probe_questions(corpus: Corpus, split: str, queries: Sequence[Query]) -> list[ProbeQuestion]:
    """Give each query, once, wrong values of other evaluation people of its split; a query has the same ones always.

    Raises:
        KBookError: the others have fewer than `N_WRONG` different values; the message names the query.
    """
    found = []
    for query in {query.id: query for query in queries}.values():
        values = {folded(p.value(query.field)): p.value(query.field) for p in corpus.pool(split, "eval")}
        values.pop(folded(query.value), None)
        if len(values) < N_WRONG:
            raise KBookError(
                f"only {len(values)} other values of {query.field} stand beside the true one of {query.id}",
                where="probe questions",
                remedy=f"take at least {N_WRONG + 1} evaluation people a split: corpus.n_{split} of the profile",
            )
        rng = random.Random(f"probes/{query.id}")
        found.append(ProbeQuestion(query, split, tuple(rng.sample(list(values.values()), N_WRONG))))
    return found


def probe_texts(corpus: Corpus, most: int) -> list[ProbeText]:
    """The biographies of the evaluation people of both splits and of the holdout, at most so many of each."""
    groups = {**{split: corpus.pool(split, "eval") for split in SPLITS}, "holdout": corpus.holdout}
    return [ProbeText(person, group) for group in GROUPS for person in groups[group][:most]]
