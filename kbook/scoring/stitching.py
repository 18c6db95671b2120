"""Stitching: what someone assembles who reads all channels of a row together.

A value may be in pieces: the street in a thought, the city in the answer. Severity is taken once more over the words
of all observed channels together; a row counts when they hold every word of a form and no single channel does. That
is an upper bound: the words are there, not their order.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from kbook.keys import CHANNELS, CellKey
from kbook.scoring.cells import Bools, CellScores, Floats, Reading, graded, leaks
from kbook.scoring.forms import Matcher
from kbook.scoring.inference import known_mean
from kbook.scoring.matching import matcher
from kbook.scoring.observers import Seen, named
from kbook.scoring.records import Record
from kbook.scoring.transcripts import Trace

STITCHING = "stitching"


@dataclass(frozen=True, eq=False)
class Stitched:
    """What the channels of each row hold together.

    Shape: all (n,).
    Unit: `union` and `single` fractions in [0, 1], `union` never below `single`.
    Missing: nan in `union` and `single` where the value or every channel is missing.
    """

    key: CellKey
    union: Floats
    single: Floats

    @property
    def gain(self) -> Floats:
        """How much more the channels hold together than the best of them alone."""
        return self.union - self.single

    @property
    def assembled(self) -> Bools:
        """Which rows hold every word of the value in all channels together and in none alone."""
        return (self.union == 1) & (self.single < 1)


def stitched(reading: Reading, scores: CellScores, rule: str = "published") -> Stitched:
    """Measure how much of each value the observed channels of its row hold together.

    Args:
        reading: the rows.
        scores: the same rows, scored with the same matcher.
        rule: name of the matcher.

    Shape: n rows → (n,).
    Unit: fraction of the words of the best form.
    Missing: a channel that was not observed or is dropped adds no word.
    Source: protocol A §2, severity, over the union of the channels.
    """
    single = np.max(np.nan_to_num(scores.severity, nan=-1.0), axis=1, initial=-1.0)
    observed = ~np.isnan(scores.cer)
    union = [_union(trace, seen, matcher(rule)) for trace, seen in zip(reading.traces, observed, strict=True)]
    single = np.where(single < 0, np.nan, single)
    return Stitched(reading.key, np.fmax(np.array(union, dtype=float), single), single)


def _union(trace: Trace, observed: Bools, rule: Matcher) -> float:
    texts = [trace.texts[channel] for channel, seen in zip(CHANNELS, observed, strict=True) if seen]
    known = [text for text in texts if text is not None]
    if trace.value is None or not known:
        return float("nan")
    return rule.recall(trace.field, trace.value, "\n\n".join(known))


def seen_by_stitching(scores: CellScores, found: Stitched) -> Seen:
    """OR(all) and the graded rate where the channels are read together."""
    together = np.nan_to_num(found.union, nan=0.0)
    shown = leaks(scores.cer) | found.assembled
    return Seen(STITCHING, scores, shown, np.maximum(graded(scores.severity), together))


def stitching_records(cells: Iterable[Stitched]) -> list[Record]:
    """One record a cell: mean severity of the best channel and of all together, and the rows that are assembled."""
    return [
        {
            **named(cell.key),
            "n": len(cell.union),
            "n_observed": int(np.sum(~np.isnan(cell.union))),
            "single": known_mean(cell.single),
            "union": known_mean(cell.union),
            "n_assembled": int(cell.assembled.sum()),
        }
        for cell in cells
    ]
