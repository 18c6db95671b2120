"""What a chapter publishes: a figure or table with its caption, its data and where its numbers come from.

An artifact travels inside the notebook, as one output of a type of its own: JupyterLab shows it at once, and
`kbook.report.pages` turns it into a numbered figure or table of the book.
"""

from __future__ import annotations

import base64
import html
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol

from kbook.keys import DataKey, parse_key

MIME = "application/vnd.kbook.artifact+json"
NUMBER_MIME = "application/vnd.kbook.number+json"

MEASURED, PUBLISHED, CONSTRUCTED, SCORED = KINDS = ("measured", "published", "constructed", "scored")


class RunLike(Protocol):
    """What provenance needs of a run of the store."""

    @property
    def key(self) -> Any: ...
    @property
    def digest(self) -> str: ...
    @property
    def manifest(self) -> Any: ...


@dataclass(frozen=True, order=True)
class RunRecord:
    """The part of a run's manifest that readers are shown; `ended` is ISO 8601, `seconds` of wall time."""

    key: str
    digest: str
    profile: str
    seconds: float
    ended: str
    commit: str

    @classmethod
    def of(cls, run: RunLike) -> RunRecord:
        """Read it from a run of the store."""
        known = run.manifest
        made = (known.profile, known.seconds, known.ended, commit_text(known.commit))
        return cls(str(run.key), run.digest, *made)


@dataclass(frozen=True)
class Given:
    """Transcripts that somebody gave to be scored; `source` says in words which."""

    source: str
    cite: str = ""


@dataclass(frozen=True)
class Provenance:
    """Where the numbers of an artifact come from.

    Args:
        kind: `measured` by runs of this book, `published` by a paper, `constructed` (a definition, a
            worked example, a corpus drawn from a seed: nothing was measured), or `scored` here from
            transcripts that were given.
        runs: the runs behind what was measured.
        sources: the places in papers behind columns named `… (published)`, or the transcripts, in words.
        cites: keys of these papers in the bibliography.
    """

    kind: str
    runs: tuple[RunRecord, ...] = ()
    sources: tuple[str, ...] = ()
    cites: tuple[str, ...] = ()

    def sentence(self) -> str:
        """Say it in one line of plain text."""
        paper = "; ".join(self.sources)
        if self.kind == PUBLISHED:
            return f"Published numbers, not measured here: {paper}"
        if self.kind == SCORED:
            return f"Scored here, from transcripts that were given: {paper}"
        if self.kind == CONSTRUCTED:
            return "Constructed here: a definition or example, not a measurement"
        ours = f"Measured here · {_profiles(self.runs)} · {_bases(self.runs)} · {_work(self.runs)}"
        return f"{ours} · what is marked published: {paper}" if paper else ours


@dataclass(frozen=True)
class Artifact:
    """One figure or table, ready to be shown.

    Args:
        key: `fig-<chapter>-<slug>` or `tab-<chapter>-<slug>`: label, file name and anchor in one.
        caption: one paragraph of MyST.
        provenance: where the numbers come from.
        csv: the data, as text.
        svg, alt: the picture and its description, for a figure.
        body: the table's MyST, for a table.
        preview: the table's HTML in JupyterLab.
        fold: title of the closed box in which it stands; "" for what is open at once.
    """

    key: str
    caption: str
    provenance: Provenance
    csv: str
    svg: str = ""
    alt: str = ""
    body: str = ""
    preview: str = field(default="", repr=False)
    fold: str = ""

    def payload(self) -> dict[str, Any]:
        """The artifact as JSON values."""
        return {**asdict(self), "preview": ""}

    @classmethod
    def of(cls, payload: dict[str, Any]) -> Artifact:
        """Read an artifact back from its payload."""
        known = payload["provenance"]
        runs = tuple(RunRecord(**run) for run in known["runs"])
        provenance = Provenance(known["kind"], runs, tuple(known["sources"]), tuple(known["cites"]))
        return cls(**{**payload, "provenance": provenance})

    def _repr_mimebundle_(self, **_: object) -> dict[str, Any]:
        """Show the artifact in JupyterLab, and carry it to the page of the book."""
        plain = f"{self.key}: {self.caption}"
        return {MIME: self.payload(), "text/html": self._html(), "text/plain": plain}

    def _html(self) -> str:
        """What JupyterLab shows: the picture or table, its caption, and the data one click away."""
        picture = f'<img alt="{html.escape(self.alt)}" src="{_data_uri("image/svg+xml", self.svg)}">'
        link = f'<a download="{self.key}.csv" href="{_data_uri("text/csv", self.csv)}">data (CSV)</a>'
        words = f"<strong>{self.key}</strong> {html.escape(self.caption)}"
        return (
            f"<figure>{picture if self.svg else self.preview}<figcaption>{words}<br>"
            f"<small>{html.escape(self.provenance.sentence())} · {link}</small></figcaption></figure>"
        )


def duration(seconds: float) -> str:
    """Write a time as a reader would say it: `43 s`, `12 min`, `1.4 h`."""
    if seconds < 90:
        return f"{seconds:.0f} s" if seconds >= 1 else "under 1 s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def minute(moment: str) -> str:
    """Cut an ISO 8601 time to its day and minute."""
    return moment[:16].replace("T", " ")


def commit_text(commit: Mapping[str, Any]) -> str:
    """Write a manifest's commit: ten characters, and whether tracked files differed from it."""
    return str(commit["id"])[:10] + (" with changes" if commit["dirty"] else "")


def several(words: Iterable[str], noun: str) -> str:
    """Write `base llama-tiny`, or `bases a, b` where there are several."""
    distinct = list(dict.fromkeys(words))
    return f"{noun}{'s' if len(distinct) > 1 else ''} {', '.join(distinct)}"


def _profiles(runs: tuple[RunRecord, ...]) -> str:
    return several((run.profile for run in runs), "profile")


def _bases(runs: tuple[RunRecord, ...]) -> str:
    """Which bases; of stored data, which have none, who made it."""
    keys = [parse_key(run.key) for run in runs]
    bases = [key.base for key in keys if not isinstance(key, DataKey)]
    makers = dict.fromkeys(key.variant for key in keys if isinstance(key, DataKey))
    parts = [several(bases, "base")] if bases else []
    return " · ".join([*parts, f"made by {', '.join(makers)}"] if makers else parts)


def _work(runs: tuple[RunRecord, ...]) -> str:
    """How many runs, when, and how long they took together."""
    days = sorted({run.ended[:10] for run in runs})
    when = days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}"
    count = f"1 run ({runs[0].key})" if len(runs) == 1 else f"{len(runs)} runs"
    return f"{count}, {when}, {duration(sum(run.seconds for run in runs))}"


def _data_uri(mime: str, text: str) -> str:
    return f"data:{mime};base64,{base64.b64encode(text.encode('utf-8', 'replace')).decode()}"
