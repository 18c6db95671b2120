"""What a table of cells lacks: empty cells, rows without a partner, seeds and lanes that were not measured."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence

from kbook.scoring.cells import CellScores, Pool
from kbook.scoring.comparisons import BASELINE, Comparison, Group, baseline_of
from kbook.scoring.notices import Notice
from kbook.scoring.transcripts import NOTES


def gaps(
    cells: Sequence[CellScores],
    pools: Mapping[Group, Pool],
    tests: Sequence[Comparison],
    not_applicable: Collection[tuple[str, str]] = (),
) -> tuple[Notice, ...]:
    """List what is missing, so that no rate is taken for more than it rests on.

    Args:
        cells, pools, tests: of one table.
        not_applicable: (lane, method) pairs that are no gaps.
    """
    empty = [Notice("cell_empty", str(cell.key), "the cell has no rows") for cell in cells if not cell.n]
    return (*empty, *_seeds(pools), *_unpaired(pools, tests), *_lanes(pools, not_applicable))


def retain_gap(group: Group, pools: Mapping[Group, Pool]) -> str:
    """Say why a subject cannot be compared on retain, given its retain group."""
    owner = "the baseline" if group.subject.method == BASELINE else group.subject.method
    lack = f"there is no retain cell of {owner}"
    if group in pools:
        paired = baseline_of(group, pools) is not None
        lack = "no retain rows in common with the baseline" if paired else "there is no retain cell of the baseline"
    return f"{lack}, hence no Δ_sel and no K-Score"


def row_notes(cells: Sequence[CellScores]) -> Iterator[Notice]:
    """Each kind of note on rows once, with how many rows of how many cells it concerns."""
    for code, text in NOTES.items():
        found = [(cell.key, warning) for cell in cells for warning in cell.warnings if warning.code == code]
        if found:
            n_rows, (key, first) = sum(warning.n_rows for _, warning in found), found[0]
            yield Notice(code, "", f"{text}: {n_rows} rows in {len(found)} cells, first {ascii(first.first)} in {key}")


def _seeds(pools: Mapping[Group, Pool]) -> Iterator[Notice]:
    """Name the groups that lack a seed which another group of the same base, lane and variant has."""
    expected: dict[tuple[str, str, str], set[int]] = defaultdict(set)
    for group, rows in pools.items():
        expected[_place(group)] |= set(rows.seeds)
    for group, rows in pools.items():
        missing = expected[_place(group)] - set(rows.seeds)
        if missing and rows.n:
            text = f"an incomplete pool of seeds: {_listed(rows.seeds)}, without {_listed(missing)}"
            yield Notice("seeds_missing", str(group), text)


def _unpaired(pools: Mapping[Group, Pool], tests: Sequence[Comparison]) -> Iterator[Notice]:
    for test in tests:
        group = Group(test.subject, test.split)
        for side, which in (("method", group), ("baseline", baseline_of(group, pools))):
            alone = pools[which].n - test.test.n if which else 0
            if alone:
                seeds = f"seeds compared: {_listed(test.method.seeds)}"
                text = f"{alone} rows of the {side} have no partner and are left out ({seeds})"
                yield Notice("rows_unpaired", str(group), text)


def _lanes(pools: Mapping[Group, Pool], not_applicable: Collection[tuple[str, str]]) -> Iterator[Notice]:
    """Name the lanes with a baseline in which a method that was measured elsewhere has no cell."""
    plain = [group.subject for group in pools if not group.subject.variant]
    lanes = {(subject.base, subject.lane) for subject in plain if subject.method == BASELINE}
    for base, method in dict.fromkeys((subject.base, subject.method) for subject in plain):
        measured = {subject.lane for subject in plain if (subject.base, subject.method) == (base, method)}
        for lane in sorted(lane for owner, lane in lanes if owner == base and lane not in measured):
            if (lane, method) not in not_applicable:
                text = "no cell of this method in this lane, and no reason why it does not apply"
                yield Notice("lane_not_measured", f"{base} {lane} {method}", text)


def _place(group: Group) -> tuple[str, str, str]:
    return group.subject.base, group.subject.lane, group.subject.variant


def _listed(seeds: Collection[int]) -> str:
    return ", ".join(map(str, sorted(seeds)))
