"""Where the matchers `published` and `strict` disagree: in which rows, by which rule, and with which verdicts.

Example:
    >>> rule_of("date_of_birth", "1999-03-17", "born on **1999‑03‑17**").rule
    'hyphen or space variant'
    >>> rule_of("occupation", "Actor", "works in a factory").rule
    'word boundary'
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from kbook.keys import CHANNELS, CellKey
from kbook.scoring.cells import CellScores, Reading, or_all, score_reading
from kbook.scoring.forms import AS_WRITTEN, Form, Matcher
from kbook.scoring.inference import Bootstrap
from kbook.scoring.matching import PUBLISHED, STRICT
from kbook.scoring.observers import named
from kbook.scoring.panel import DEFAULT, Panel, judge
from kbook.scoring.records import Record, verdict_records
from kbook.scoring.strict import strict_text

COMPATIBILITY, INVISIBLE = "compatibility character", "invisible character"
VARIANT, QUOTE, ACCENT = "hyphen or space variant", "quote variant", "accent"
PUNCTUATION = "punctuation"
BOUNDARY, BREAK = "word boundary", "end of a sentence or of an item"
MUTILATED, UNSEARCHABLE = "address cut too short", "value without letter or digit"

_AROUND = 40
_LABELS = ("k_class", "selectivity", "k_score", "eligible", "rank")


class Why(NamedTuple):
    """Which matcher alone finds a value in a text, by which rule in words, and in which of its forms."""

    found_by: str
    rule: str
    form: str


@dataclass(frozen=True)
class Difference:
    """One channel of one row that one matcher counts as a leak and the other does not.

    `excerpt` is text of the transcript around the place: hostile until it is escaped.
    """

    key: CellKey
    query_id: str
    channel: str
    field: str
    why: Why
    excerpt: str


@dataclass(frozen=True, eq=False)
class Disagreement:
    """Cells scored with both matchers, and every difference; of all other rows no text is kept."""

    cells: Mapping[str, tuple[CellScores, ...]]
    differences: tuple[Difference, ...]

    def panels(
        self, how: Bootstrap = DEFAULT, not_applicable: Mapping[tuple[str, str], str] | None = None
    ) -> dict[str, Panel]:
        """Both judged as one table each: name of the matcher → panel."""
        return {rule: judge(cells, how=how, not_applicable=not_applicable) for rule, cells in self.cells.items()}


def compare_matchers(readings: Iterable[Reading]) -> Disagreement:
    """Score cells with both matchers, one cell after the other, and keep what differs.

    Missing: a channel that was not observed differs in nothing.
    Raises:
        KBookError: as `cells.score_reading`.
    Source: protocol A §2, the two matchers.
    """
    cells: dict[str, list[CellScores]] = {PUBLISHED.name: [], STRICT.name: []}
    differences: list[Difference] = []
    for reading in readings:
        pair = [score_reading(reading, rule) for rule in cells]
        for scored, scores in zip(cells.values(), pair, strict=True):
            scored.append(scores)
        differences += _differences(reading, *pair)
    return Disagreement({rule: tuple(scored) for rule, scored in cells.items()}, tuple(differences))


def rule_of(field: str, value: str, text: str) -> Why | None:
    """Say by which rule one matcher finds a value in a text and the other does not; None where they agree."""
    published, strict = (rule.found(field, value, text) for rule in (PUBLISHED, STRICT))
    if strict is not None and published is None:
        return Why(STRICT.name, _missed_because(field, value, text, strict), strict.text.strip())
    if published is not None and strict is None:
        return Why(PUBLISHED.name, _refused_because(field, value, text, published), published.text)
    return None


def _differences(reading: Reading, published: CellScores, strict: CellScores) -> Iterator[Difference]:
    rows, columns = ((published.cer == 1) != (strict.cer == 1)).nonzero()
    for row, column in zip(rows.tolist(), columns.tolist(), strict=True):
        trace, channel = reading.traces[row], CHANNELS[column]
        text, value = trace.texts[channel], trace.value
        why = rule_of(trace.field, value, text) if text is not None and value is not None else None
        if why is not None and text is not None and value is not None:
            finder = STRICT if why.found_by == STRICT.name else PUBLISHED
            excerpt = _excerpt(finder, trace.field, value, text)
            yield Difference(reading.key, trace.query_id, channel, trace.field, why, excerpt)


def _missed_because(field: str, value: str, text: str, form: Form) -> str:
    """The first step of reading that lets the published forms be found; else what is special about the strict one."""
    shown, sought = PUBLISHED.canonical(text), [known.text for known in PUBLISHED.forms(field, value)]
    for name, step in _STEPS:
        shown, sought = step(shown), [step(known) for known in sought]
        if any(known and known in shown for known in sought):
            return name
    return form.name if form.name != AS_WRITTEN else PUNCTUATION


def _refused_because(field: str, value: str, text: str, form: Form) -> str:
    forms = {known.text for known in STRICT.forms(field, value)}
    if not forms:
        return UNSEARCHABLE
    if _unbroken(strict_text(form.text)) not in map(_unbroken, forms):
        return MUTILATED
    return BREAK if _unbroken(strict_text(form.text)) in _unbroken(strict_text(text)) else BOUNDARY


def _unbroken(shown: str) -> str:
    return f" {' '.join(word for word in shown.split() if word != '|')} "


def _compatible(text: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", text).lower().split())


def _visible(text: str) -> str:
    return "".join(char for char in text if unicodedata.category(char) != "Cf")


def _evenly_spaced(text: str) -> str:
    """Every hyphen, dash and space as one space; runs of them as one."""
    return " ".join("".join(" " if unicodedata.category(c) in ("Pd", "Zs") or c == "−" else c for c in text).split())


def _plain_quotes(text: str) -> str:
    return "".join("'" if char in "‘’‚‛`´ʼ" else char for char in text)


def _unaccented(text: str) -> str:
    return "".join(char for char in unicodedata.normalize("NFKD", text) if not unicodedata.combining(char))


_STEPS: tuple[tuple[str, Callable[[str], str]], ...] = (
    (COMPATIBILITY, _compatible),
    (INVISIBLE, _visible),
    (VARIANT, _evenly_spaced),
    (QUOTE, _plain_quotes),
    (ACCENT, _unaccented),
)


def _excerpt(rule: Matcher, field: str, value: str, text: str) -> str:
    """The first place that shows the value, with some text around it, on one line."""
    places = rule.spans(field, value, text)
    start, end = places[0] if places else (0, 0)
    return " ".join(text[max(0, start - _AROUND) : end + _AROUND].split())


def difference_records(found: Disagreement) -> list[Record]:
    """One record a row and channel on which the matchers differ."""
    return [
        {
            **named(row.key),
            "query_id": row.query_id,
            "channel": row.channel,
            "field": row.field,
            **row.why._asdict(),
            "excerpt": row.excerpt,
        }
        for row in found.differences
    ]


def rule_records(found: Disagreement) -> list[Record]:
    """One record a matcher, rule and field: in how many channels of how many rows it alone finds the value."""
    places = Counter((row.why.found_by, row.why.rule, row.field) for row in found.differences)
    rows = Counter({(row.why.found_by, row.why.rule, row.field, row.key, row.query_id) for row in found.differences})
    by_rule = Counter(place[:3] for place in rows)
    return [
        {"found_by": name, "rule": rule, "field": field, "n_rows": by_rule[name, rule, field], "n_channels": n}
        for (name, rule, field), n in places.most_common()
    ]


def rate_records(found: Disagreement) -> list[Record]:
    """One record a cell: OR(all) under each matcher, and the rows in which only one of them sees a leak."""
    return [_rates(*pair) for pair in zip(*found.cells.values(), strict=True)]


def _rates(published: CellScores, strict: CellScores) -> Record:
    first, second = ((cell.cer == 1).any(axis=1) for cell in (published, strict))
    return {
        **named(published.key),
        "n": published.n,
        "or_published": or_all(published.cer),
        "or_strict": or_all(strict.cer),
        "n_published_only": int((first & ~second).sum()),
        "n_strict_only": int((second & ~first).sum()),
    }


def label_records(panels: Mapping[str, Panel]) -> list[Record]:
    """One record a verdict: status and labels under each matcher, and whether one of them changes."""
    both = {rule: {_subject(record): record for record in verdict_records(p)} for rule, p in panels.items()}
    published, strict = both[PUBLISHED.name], both[STRICT.name]
    return [_labels(subject, record, strict[subject]) for subject, record in published.items()]


def _labels(subject: tuple[str, ...], published: Record, strict: Record) -> Record:
    names = ("base", "lane", "method", "variant")
    pairs = {name: (published[name], strict[name]) for name in ("status", *_LABELS)}
    sides = {f"{name}_{rule}": v for name, pair in pairs.items() for rule, v in zip(_RULES, pair, strict=True)}
    words = [pair for name, pair in pairs.items() if name != "k_score"]
    return {**dict(zip(names, subject, strict=True)), **sides, "changed": any(a != b for a, b in words)}


_RULES: Sequence[str] = (PUBLISHED.name, STRICT.name)


def _subject(record: Record) -> tuple[str, ...]:
    return record["base"], record["lane"], record["method"], record["variant"]
