"""Tables of the chapter on people in a format that others made: who they are, and what the paper found."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import pandas as pd

from kbook.corpora.people import Corpus, Person
from kbook.keys import FIELDS
from kbook.report.folders import channels_of
from kbook.report.published import Published, published
from kbook.report.rates import arranged
from kbook.scoring.panel import Panel

LANE = "R-struct"


def line_frame(lines: Iterable[Mapping[str, str]]) -> pd.DataFrame:
    """Lines of a file in LUME's format, in the order of a person's parts."""
    return pd.DataFrame(sorted(lines, key=lambda line: line["id"]))[["id", "input", "output"]]


def person_frame(people: Iterable[Person], corpus: Corpus) -> pd.DataFrame:
    """Some people as the corpus holds them, and for each field whether it is asked for."""
    known = [field for field in FIELDS if any(person.value(field) for person in corpus.members)]
    asked = {field: f"{field} (asked for)" if field in corpus.fields else field for field in known}
    return pd.DataFrame([{"name": p.name, **{asked[f]: p.value(f) for f in known}} for p in people])


def channel_frame(panel: Panel, methods: Sequence[str]) -> pd.DataFrame:
    """CER of each channel on the forget split, the untreated agent first, then the methods as given."""
    return arranged(channels_of(panel).assign(base=""), methods).drop(columns=["base", "lane"])


def published_figures() -> Published:
    """What the paper's text says of LUME."""
    paper = published("kbench_text_figures")
    named = paper.frame["quantity"].str.startswith("LUME")
    return Published(paper.name, paper.frame[named].reset_index(drop=True), paper.source, paper.cite)
