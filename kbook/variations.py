"""The same cells once more, with one thing changed that should not matter, or should: batches, threads, seed, labels.

A rerun answers the same queries with the same method; it has a variant of its own, so that it is computed and not
read again.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from kbook.corpora.people import Corpus
from kbook.kbench import Grid, KBench
from kbook.keys import CellKey
from kbook.store import Run

AGAIN = "the same again"


def reruns(bench: KBench, token_budgets: Sequence[int], thread_counts: Sequence[int], **where: Any) -> dict[str, Grid]:
    """The cells of a grid unchanged, in other batches, and with other numbers of threads.

    Args:
        bench: profile and base of the first run.
        token_budgets: padded prompt tokens that decode together, in place of the profile's.
        thread_counts: threads of torch while the agent answers.
        **where: methods, lanes and splits, as in `KBench.grid`.

    Returns:
        What is different, in words, to the cells.
    """
    from kbook.models.threads import threads

    found = {AGAIN: bench.grid(variant="again", **where)}
    for budget in token_budgets:
        profile = bench.profile.with_(cells={"token_budget": budget})
        found[f"batches of {budget} tokens"] = like(bench, profile=profile).grid(variant=f"budget-{budget}", **where)
    for n in thread_counts:
        with threads(n):
            found["1 thread" if n == 1 else f"{n} threads"] = bench.grid(variant=f"threads-{n}", **where)
    return found


def refits(bench: KBench, seeds: Sequence[int], methods: Sequence[str]) -> dict[str, Grid]:
    """Cells of lane P whose edits were trained again with other seeds: another order of documents, other draws."""
    names = {seed: f"edit-seed-{seed}" for seed in seeds}
    return {
        f"trained with seed {seed}": like(bench, edit_seed=seed).grid(methods, ["P"], variant=name)
        for seed, name in names.items()
    }


def fits(
    bench: KBench, method: str, positions: Sequence[str], depths: Sequence[float], lanes: Sequence[str]
) -> tuple[Run, ...]:
    """Cells of one query under a method that is fitted on states: for what their fits tell, not for their rows."""
    tiny = like(bench, profile=bench.profile.with_(cells={"n": 1, "seeds": bench.profile.cells.seeds[:1]}))
    where: Any = {"lanes": lanes, "splits": ["forget"]}
    grids = [
        tiny.sweep(method, "depth", {f"{place}-{depth:g}": depth for depth in depths}, positions=place, **where)
        for place in positions
    ]
    return sum(grids, Grid((), ())).runs


def unnamed(grid: Grid) -> Grid:
    """The same cells without their variant: in a table of their own they are what others are compared with."""
    runs = [replace(run, key=replace(run.key, variant="")) for run in grid.runs if isinstance(run.key, CellKey)]
    return Grid(tuple(runs), grid.not_applicable)


def relabelled(bench: KBench, seed: int = 0) -> KBench:
    """The same people, but whom a method may fit as forget or retain people is drawn by lot.

    What a fit finds then is what any two groups of so many people differ in. The people injected are the same, but
    not those on the list: use it for fits, and in lanes that read no list.
    """
    return like(bench, corpus=dealt(bench.corpus, seed))


def dealt(corpus: Corpus, seed: int) -> Corpus:
    """A corpus whose fitting people are dealt anew to the two fitting pools, each as large as before."""
    people = [*corpus.forget_fit, *corpus.retain_fit]
    random.Random(f"dealt/{seed}").shuffle(people)
    n = len(corpus.forget_fit)
    return replace(corpus, forget_fit=tuple(people[:n]), retain_fit=tuple(people[n:]))


def like(bench: KBench, **changes: Any) -> KBench:
    """A `KBench` with other arguments, and the rest as they were: base, corpus and store."""
    same = {"base": bench.base_name, "corpus": bench.corpus, "store": bench.store, "edit_seed": bench.edit_seed}
    return KBench(**{"profile": bench.profile, **same, **changes})
