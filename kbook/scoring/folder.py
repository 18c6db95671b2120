"""Score a folder of transcripts in the official format, and print what comes out.

A cell is a file `PREFIX_LANE_METHOD_SPLIT_seedN.jsonl`. Its prefix stands for the base: cells of different
prefixes were made apart and are judged apart.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from kbook.errors import KBookError, unknown_name
from kbook.files import read_jsonl
from kbook.keys import CHANNELS, CellKey, OfficialName, parse_official
from kbook.scoring.cells import CellScores, score_rows
from kbook.scoring.inference import Interval
from kbook.scoring.panel import Panel, Verdict, judge
from kbook.scoring.summary import Summary
from kbook.scoring.transcripts import NOTES

PROTOCOL = "kbench"


def score_folder(path: Path, prefix: str | None = None, *, rule: str = "published") -> None:
    """Print a plain report of all cells of a folder and of the verdicts that follow from them.

    Args:
        path: folder of transcript files.
        prefix: judge only the files with this prefix.
        rule: name of the matcher.

    Raises:
        KBookError: as `read_folder`.
    """
    for name, cells in read_folder(path, prefix, rule=rule).items():
        print("\n".join(report_lines(name, judge(cells))))


def read_folder(
    path: Path, prefix: str | None = None, *, rule: str = "published", ids_only: bool = False
) -> dict[str, list[CellScores]]:
    """Read and score every cell of a folder: prefix → cells.

    The prefix is the base of a cell's key. Files whose names are no names of cells are not read.

    Missing: as `cells.score_rows`.
    Raises:
        KBookError: there is no cell (with this prefix), two files hold the same cell, or one is unreadable.
    Source: protocol A §5.
    """
    named = [(file, name) for file in sorted(path.glob("*.jsonl")) if (name := _official(file)) is not None]
    if not named:
        remedy = "Name the files PREFIX_LANE_METHOD_SPLIT_seedN.jsonl, as in v77app_R-text_eco_forget_seed0.jsonl"
        raise KBookError("holds no transcript file", str(path), remedy)
    prefixes = list(dict.fromkeys(name.prefix for _, name in named))
    if prefix is not None and prefix not in prefixes:
        raise unknown_name("prefix", prefix, prefixes, str(path))
    files: dict[str, dict[CellKey, Path]] = defaultdict(dict)
    for file, name in named:
        key = name.cell(PROTOCOL, name.prefix)
        if prefix in (None, name.prefix):
            if key in files[name.prefix]:
                what = f"the same cell as {files[name.prefix][key].name}"
                raise KBookError(what, str(file), "Keep one of the two files")
            files[name.prefix][key] = file
    return {
        group: [score_rows(read_jsonl(file), key, rule=rule, ids_only=ids_only) for key, file in cells.items()]
        for group, cells in files.items()
    }


def report_lines(prefix: str, panel: Panel) -> Iterator[str]:
    """The plain report of one panel, line by line."""
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
        if not topology.pairs:
            continue
        yield ""
        yield f"Distances between the baselines of {topology.base} (tau {topology.tau:.3f})"
        for pair in topology.pairs:
            exempt = " (exempt)" if pair.exempt else ""
            yield f"  {pair.first} - {pair.second}: {pair.distance:.3f}{exempt}"
    warnings = [*_cell_warnings(panel), *panel.warnings]
    if warnings:
        yield ""
        yield "Warnings"
        yield from (f"  {warning}" for warning in warnings)


def _official(file: Path) -> OfficialName | None:
    try:
        return parse_official(file.stem)
    except KBookError:
        return None


def _cell_warnings(panel: Panel) -> Iterator[str]:
    """Each kind of warning once, with how many rows of how many cells it concerns."""
    for code, text in NOTES.items():
        found = [(cell.key, w) for cell in panel.cells for w in cell.warnings if w.code == code]
        if found:
            n_rows, (key, first) = sum(warning.n_rows for _, warning in found), found[0]
            yield f"{text}: {n_rows} rows in {len(found)} cells, first {ascii(first.first)} in {key}"


def _rates(summary: Summary) -> str:
    totals = {"OR(all)": summary.or_all, "graded": summary.graded, "degenerate": summary.degeneration}
    return f"n {summary.n}  " + "  ".join(f"{name} {_interval(rate)}" for name, rate in totals.items())


def _channels(summary: Summary) -> str:
    return "CER  " + "  ".join(
        f"{name} {rate:.3f}" for name, rate in zip(CHANNELS, summary.cer_available.value, strict=True)
    )


def _interval(rate: Interval) -> str:
    return f"{rate.value:.3f} [{rate.lo:.3f}, {rate.hi:.3f}]"


def _verdict(verdict: Verdict) -> Iterator[str]:
    words = [verdict.status]
    words += [f"K-class {verdict.k_class.text}"] if verdict.k_class else []
    words += [f"selectivity {verdict.selectivity.text}"] if verdict.selectivity else []
    words += [f"K-Score {verdict.k_score.value:.3f}"] if verdict.k_score else []
    if verdict.status == "measured":
        words.append({True: "eligible", False: "not eligible", None: "eligibility unknown"}[verdict.eligible])
    words += [f"rank {verdict.rank}"] if verdict.rank else []
    yield f"  {verdict.subject}: " + ", ".join(words)
    yield from (f"    {reason}" for reason in verdict.reasons)
