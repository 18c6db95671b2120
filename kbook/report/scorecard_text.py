"""The plain report of a scored folder: cells with their rates, verdicts with their reasons, warnings."""

from __future__ import annotations

from collections.abc import Iterator

from kbook.keys import CHANNELS
from kbook.report.text import visible
from kbook.scoring.folder import Scored
from kbook.scoring.inference import Interval
from kbook.scoring.panel import Panel, Verdict
from kbook.scoring.summary import Summary


def report_lines(scored: Scored) -> Iterator[str]:
    """The report of all tables of a folder, line by line; what could hide or reorder text is made visible."""
    yield from (visible(line) for line in _lines(scored))


def _lines(scored: Scored) -> Iterator[str]:
    for prefix, panel in scored.panels.items():
        yield from _table(prefix, panel)
        warnings = scored.warnings(prefix)
        yield from _section("Warnings", [f"[{warning.code}] {warning}" for warning in warnings])
        yield ""
    yield from _section("Files", [f"[{notice.code}] {notice}" for notice in scored.found.notices])


def _table(prefix: str, panel: Panel) -> Iterator[str]:
    yield f"{prefix}: {len(panel.cells)} cells"
    yield ""
    yield "Cells (rate [95% interval]; CER over the rows in which a channel was observed)"
    width = max(len(str(cell.key)) for cell in panel.cells)
    for cell, summary in zip(panel.cells, panel.summaries, strict=True):
        yield f"  {str(cell.key):{width}}  {_rates(summary)}"
        yield f"  {'':{width}}  {_channels(summary)}"
    yield ""
    yield "Verdicts"
    for verdict in panel.verdicts:
        yield from _verdict(verdict)
    for topology in panel.topologies:
        pairs = [f"{p.first} - {p.second}: {p.distance:.3f}{' (exempt)' if p.exempt else ''}" for p in topology.pairs]
        yield from _section(f"Distances between the baselines of {topology.base} (tau {topology.tau:.3f})", pairs)


def _section(title: str, lines: list[str]) -> Iterator[str]:
    """A titled list after an empty line; nothing where there is nothing to list."""
    if lines:
        yield ""
        yield title
        yield from (f"  {line}" for line in lines)


def _rates(summary: Summary) -> str:
    totals = {"OR(all)": summary.or_all, "graded": summary.graded, "degenerate": summary.degeneration}
    return f"n {summary.n}  " + "  ".join(f"{name} {_interval(rate)}" for name, rate in totals.items())


def _channels(summary: Summary) -> str:
    return "CER  " + "  ".join(
        f"{name} {rate:.3f}" for name, rate in zip(CHANNELS, summary.cer_available.value, strict=True)
    )


def _k_score(value: float) -> str:
    return f"K-Score {value:.3f}" if value == value else "no K-Score"


def _interval(rate: Interval) -> str:
    return f"{rate.value:.3f} [{rate.lo:.3f}, {rate.hi:.3f}]"


def _verdict(verdict: Verdict) -> Iterator[str]:
    words = [verdict.status]
    words += [f"K-class {verdict.k_class.text}"] if verdict.k_class else []
    words += [f"selectivity {verdict.selectivity.text}"] if verdict.selectivity else []
    words += [_k_score(verdict.k_score.value)] if verdict.k_score else []
    if verdict.status == "measured":
        words.append({True: "eligible", False: "not eligible", None: "eligibility unknown"}[verdict.eligible])
    words += [f"rank {verdict.rank}"] if verdict.rank else []
    words += ["provisional"] if verdict.provisional else []
    yield f"  {verdict.subject}: " + ", ".join(words)
    yield from (f"    {reason}" for reason in verdict.reasons)
