"""A scored folder as one HTML page that stands alone: no script, nothing fetched, every text escaped."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kbook.report.excerpts import Excerpt, Seen, excerpts
from kbook.report.markup import Html, join, tag
from kbook.report.scorecard_beside import matchers, observers
from kbook.report.scorecard_parts import ABSENT, Record, listed
from kbook.report.scorecard_sections import budgets, cells, gates, topology, verdicts
from kbook.report.scorecard_style import STYLE
from kbook.scoring.folder import Scored

GENERATOR = "kbook score"
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"
_OPEN = 4

_GLOSSARY = {
    "OR(all)": "share of queries that leak the value through at least one channel",
    "graded rate": "mean over the queries of the worst severity: how much of the value the most telling channel shows",
    "CER": "complete extraction rate of one channel, over the rows in which it was observed (the paper's); over all"
    " rows in the full table",
    "degenerate": "traces without a healthy final answer; a rate of 0.5 is a collapse, whatever it hides",
    "K-class": "what a method did to the leak on forget: K-REF, it fell (by the factor shown); K-SUP, it changed its"
    " channel and not its size; measured failure, it stayed",
    "selectivity": "what a method did to retain, which it should leave alone",
    "K-Score": "suppressed on forget × kept on retain × kept in health; comparable within one lane only",
    "provisional": "fewer than three seeds",
}


def page(scored: Scored, card: Record) -> str:
    """Write the report of all tables of a folder.

    Args:
        scored: the folder; only its texts are taken from here.
        card: its figures, as `scorecard` gives them.

    Missing: what is not known is a dash; a table without leaks has no excerpts.
    """
    body = [_header(card), *(_table(scored, card, prefix) for prefix in scored.panels), _footer(card)]
    head = join(
        [
            tag("meta", charset="utf-8"),
            Html(f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'),
            tag("meta", name="generator", content=GENERATOR),
            tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
            tag("title", f"Leak report of {card['source']['path']}"),
            Html(f"<style>{STYLE}</style>"),
        ],
        "\n",
    )
    return f"<!doctype html>\n{tag('html', tag('head', head), tag('body', join(body, chr(10))), lang='en')}\n"


def _header(card: Record) -> Html:
    how = card["settings"]["bootstrap"]
    told = (
        f"{card['source']['layout']} · matcher {card['settings']['matcher']} · {100 * how['level']:.0f} % percentile "
        f"intervals from {how['resamples']} resamples · {card['made_by']}"
    )
    links = [tag("a", entry["prefix"], href=f"#table-{n}") for n, entry in enumerate(card["tables"], 1)]
    notices = [warning for warning in card["warnings"] if warning["prefix"] is None]
    return tag(
        "header",
        tag("h1", "What the agent shows"),
        tag("p", tag("span", card["source"]["path"], class_="code"), class_="lead"),
        tag("p", told, class_="lead"),
        tag("nav", "Tables: ", *links) if len(links) > 1 else "",
        join([tag("h3", "About the files"), _warnings(notices)]) if notices else "",
    )


def _table(scored: Scored, card: Record, prefix: str) -> Html:
    own = {name: _of(card[name], prefix) for name in _LISTS}
    made = next(entry for entry in card["tables"] if entry["prefix"] == prefix)
    place = f"table-{1 + card['tables'].index(made)}"
    sections = {
        "Warnings": _warnings(own["warnings"]),
        "Verdicts": verdicts(own["verdicts"], own["tests"]),
        "Gates": gates(own["gates"]),
        "Cells": cells(own["cells"], own["pooled"]),
        "Topology": join(topology(entry) for entry in own["topology"]),
        "Observer budgets": budgets(own["budgets"]),
        "Observers who see more": observers(_of(card["observers"]["verdicts"], prefix)),
        "The two matchers": matchers(*(_of(card["disagreements"][name], prefix) for name in _DIFFERENCES)),
        "Excerpts of leaking rows": _excerpts(excerpts(scored, prefix)),
    }
    named = {title: (f"{place}-{n}", content) for n, (title, content) in enumerate(sections.items()) if content}
    links = tag("nav", *(tag("a", title, href=f"#{anchor}") for title, (anchor, _) in named.items()))
    shown = [join([tag("h3", title, id=anchor), content]) for title, (anchor, content) in named.items()]
    return tag("section", tag("h2", prefix, id=place), tag("p", _made_of(made), class_="lead"), links, *shown)


_DIFFERENCES = ("cells", "rules", "verdicts", "rows")
_LISTS = ("cells", "pooled", "tests", "verdicts", "topology", "budgets", "gates", "warnings")


def _of(records: list[Record], prefix: str) -> list[Record]:
    return [record for record in records if record["prefix"] == prefix]


def _made_of(made: Record) -> str:
    bases = ", ".join(made["bases"]) or "base not known"
    named = (
        bases,
        f"{made['n_cells']} cells",
        *(f"{key} {listed(made[key])}" for key in ("lanes", "methods", "seeds")),
    )
    return " · ".join(named)


def _warnings(warnings: list[Record]) -> Html:
    items = [tag("li", tag("span", w["code"], class_="name"), " ", _matter(w)) for w in warnings]
    return tag("ul", *items, class_="warnings") if items else Html()


def _matter(warning: Record) -> str:
    return f"{warning['where']}: {warning['text']}" if warning["where"] else str(warning["text"])


def _excerpts(found: list[Excerpt]) -> Html:
    if not found:
        return Html()
    note = "A few leaking forget rows of each method and lane, first those whose answer shows nothing. Texts are cut "
    note += "around the value; nothing in them is markup."
    shown = [_excerpt(excerpt, n < _OPEN) for n, excerpt in enumerate(found)]
    return join([tag("p", note, class_="note"), *shown])


def _excerpt(excerpt: Excerpt, is_open: bool) -> Html:
    key = excerpt.key
    leaking = [tag("span", seen.channel, class_="channel") for seen in excerpt.channels if seen.shows]
    where = f"{key.lane} · {key.method}{f' ({key.variant})' if key.variant else ''} · seed {key.seed} · {excerpt.query}"
    hidden = " – the answer does not show it" if excerpt.hidden else ""
    head = tag("summary", tag("b", where), " shown in ", join(leaking, " "), hidden)
    field = excerpt.field.replace("_", " ") or "value"
    value = tag("p", f"{field}: ", tag("mark", excerpt.value, class_="said")) if excerpt.value else ""
    health = "" if excerpt.health == "ok" else tag("p", f"degenerate: {excerpt.health}", class_="no")
    rows = [tag("tr", *_seen(seen)) for seen in excerpt.channels]
    inside = (head, value, health, tag("table", tag("tbody", *rows)))
    return tag("details", *inside, class_="excerpt", open="" if is_open else None)


def _seen(seen: Seen) -> list[Html]:
    states = {True: tag("span", "shows it", class_="no"), False: "does not", None: "not observed"}
    said = join(_pieces(seen)) if seen.text else tag("span", _silence(seen), class_="quiet")
    name = tag("td", tag("span", seen.channel, class_="channel"))
    return [name, tag("td", states[seen.shows], class_="quiet"), tag("td", said, class_="said")]


def _silence(seen: Seen) -> str:
    return "recorded as a leak; no text was kept" if seen.shows else ABSENT


def _pieces(seen: Seen) -> Iterator[Any]:
    """The text with its marks, and dots where it was cut."""
    last = 0
    yield "… " if seen.cut[0] else ""
    for start, end in seen.spans:
        yield seen.text[last:start]
        yield tag("mark", seen.text[start:end])
        last = end
    yield seen.text[last:]
    yield " …" if seen.cut[1] else ""


def _footer(card: Record) -> Html:
    terms = [part for name, told in _GLOSSARY.items() for part in (tag("dt", name), tag("dd", told))]
    made = f"Made by {card['made_by']}. The same figures as one JSON object: --json FILE."
    return tag("footer", tag("h3", "How to read this"), tag("dl", *terms), tag("p", made, class_="note"))
