"""How settings are chosen: each method is tried with a few, on the fitting pools alone, and one rule chooses for all.

The fitting pools are cut in two. A candidate is fitted on the larger part; the agent then answers, in lane P, about
the people of the other part, whom the candidate has not seen. Nobody of the evaluation pools takes part, so that what
is chosen is not chosen for the people it is reported on. The rule is `kbook.scoring.selection.choose`.

    for name in bench.profile.sweeps:
        print(run_sweep(bench, name).chosen.label)
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from kbook.checkpoints import PROTOCOL
from kbook.corpora.people import Corpus, Person
from kbook.digests import Spec, digest_of
from kbook.errors import KBookError, unknown_name
from kbook.kbench import KBench
from kbook.keys import SPLITS, CellKey, ModelKey, base_segment
from kbook.methods.registry import make_method
from kbook.scoring.cells import graded_rate, mean, or_all, score_rows
from kbook.scoring.selection import Candidate, Sweep, in_words
from kbook.store import Run, Store
from kbook.workers import side_by_side, workers

LANE, SEED = "P", 0
TRAINED = 0.75
"""Share of each fitting pool that candidates are fitted on: 150 of K-Bench's 200 people."""

_LONGEST = 90


def run_sweep(bench: KBench, method: str, grid: Mapping[str, Sequence[Any]] | None = None) -> Sweep:
    """Try every candidate of a method, or read it from the store.

    Args:
        bench: profile, base and corpus.
        method: a name, as in `KBench.cell`.
        grid: setting → values; by default the profile's section ``sweeps``.

    Raises:
        KBookError: the profile has no sweep of the method, a setting or value that the method does not take, or a
            fitting pool that cannot be cut in two.
    """
    tried = candidates(bench, method, grid)
    untreated = try_settings(bench, "none", {})
    missing = [settings for settings in tried if not bench.store.lookup(*_place(bench, method, settings))]
    side_by_side(try_settings, [(bench, method, settings) for settings in missing], workers(bench.profile.device))
    runs = [try_settings(bench, method, settings) for settings in tried]
    profiled = bench.method(method)
    current = profiled.settings.model_dump(mode="json")
    first, *others = [Candidate.of(run.rows()[0]) for run in (untreated, *runs)]
    in_profile = {name: current[name] for name in tried[0]}
    return Sweep(profiled.name, first, tuple(others), in_profile, (untreated, *runs))


def candidates(bench: KBench, method: str, grid: Mapping[str, Sequence[Any]] | None = None) -> list[dict[str, Any]]:
    """All combinations of a method's grid, in its order; each is checked before anything is computed.

    Raises:
        KBookError: as `run_sweep`.
    """
    if grid is None:
        make_method(method)
        known = bench.profile.sweeps
        if method not in known:
            raise unknown_name("sweep", method, known, f"profile {bench.profile.name}: sweeps")
        grid = known[method]
    combinations = [dict(zip(grid, values, strict=True)) for values in product(*grid.values())]
    if not combinations or not grid:
        raise KBookError("the grid is empty", f"sweep of {method}", "name a setting and its values")
    checked = [bench.method(method, **settings).settings.model_dump(mode="json") for settings in combinations]
    return [{name: values[name] for name in grid} for values in checked]


def try_settings(bench: KBench, method: str, settings: Mapping[str, Any]) -> Run:
    """Fit one candidate and ask the agent; one record, kept in the store."""
    key, spec = _place(bench, method, settings)

    def work(_: int) -> list[dict[str, Any]]:
        with TemporaryDirectory() as folder:
            return [_record(Halves(bench, Path(folder)), method, settings)]

    return bench.store.rows(key, spec, [0], work, seed=SEED)


def _place(bench: KBench, method: str, settings: Mapping[str, Any]) -> tuple[ModelKey, Spec]:
    name = bench.method(method, **settings).name
    key = ModelKey(PROTOCOL, base_segment(bench.base_name), f"sweep-{name}", SEED, _variant(settings))
    return key, Halves(bench).spec(method, settings)


class Halves(KBench):
    """A bench whose people are the fitting pools of another, cut in two, and whose injected model is the other's.

    Args:
        whole: the other bench.
        folder: of a store for edited models and transcripts, which nobody needs once they are scored.
    """

    def __init__(self, whole: KBench, folder: Path | None = None) -> None:
        store = Store(folder, whole.profile.name) if folder else whole.store
        super().__init__(whole.profile, base=whole.base_name, corpus=halved(whole.corpus), store=store)
        self._whole = whole

    @property
    def _base_digest(self) -> str:  # the same base, read once
        return self._whole._base_digest

    def injected(self, *which: Any, **options: Any) -> Run:
        return self._whole.injected(*which, **options)

    def _injection(self, *which: Any) -> tuple[ModelKey, Spec]:
        return self._whole._injection(*which)

    def spec(self, method: str, settings: Mapping[str, Any]) -> Spec:
        """What decides a candidate: its two cells, and how they are scored."""
        chosen, model = self.method(method, **settings), {"model": self.model_spec(method, **settings)}
        cells = {split: self._cell_spec(LANE, method, chosen, split, 0, model) for split in SPLITS}
        return Spec({"settings": dict(settings), "seed": SEED}, ("kbook.scoring.cells",), made_from=cells)


def halved(corpus: Corpus) -> Corpus:
    """The fitting pools alone, each cut in two: to fit on, and (in the place of evaluation) to select by.

    Raises:
        KBookError: a fitting pool has fewer than two people, or shares somebody with an evaluation pool.
    """
    parts: dict[str, Any] = {}
    for split in SPLITS:
        people = corpus.pool(split, "fit")
        if len(people) < 2:
            remedy = f"raise corpus.n_fit_{split} of the profile"
            raise KBookError(f"the {split} fitting pool of {len(people)} cannot be cut in two", "sweep", remedy)
        cut = min(max(1, round(TRAINED * len(people))), len(people) - 1)
        parts |= {f"{split}_fit": people[:cut], f"{split}_eval": people[cut:]}
    halves = replace(corpus, **parts, holdout=())
    _refuse_evaluated(halves.members, corpus)
    return halves


def _refuse_evaluated(people: Sequence[Person], corpus: Corpus) -> None:
    evaluated = {p.id for p in (*corpus.forget_eval, *corpus.retain_eval)}
    if both := sorted(evaluated & {p.id for p in people}):
        raise KBookError(
            f"settings would be chosen on people whom results are reported for: {', '.join(both[:8])}",
            where="sweep",
            remedy="give each person to one pool",
        )


def _record(bench: Halves, method: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    cells = {split: bench.cell(LANE, method, split, SEED, **settings) for split in SPLITS}
    facts = cells["forget"].manifest.extra["fit"]
    if bench.method(method, **settings).edits_weights:
        facts = _facts(bench.edited(method, **settings).manifest.extra)
    return {"settings": dict(settings), **{split: _rates(cell) for split, cell in cells.items()}, "facts": facts}


def _rates(cell: Run) -> dict[str, Any]:
    assert isinstance(cell.key, CellKey)
    scores = score_rows(cell.rows(), cell.key)
    rates = {
        "graded": graded_rate(scores.severity),
        "or_all": or_all(scores.cer),
        "degenerate": mean(scores.degenerate),
    }
    return {name: round(float(rate), 6) for name, rate in rates.items()} | {"n": scores.n}


def _facts(extra: Mapping[str, Any]) -> dict[str, Any]:
    """What a reader of a sweep must know of a fit; how long it took is no part of what is the same in every run."""
    kept = {name: extra[name] for name in ("steps", "stopped", "nll") if name in extra}
    return kept | ({"loss": extra["losses"][-1][1]} if extra.get("losses") else {})


def _variant(settings: Mapping[str, Any]) -> str:
    """The settings as a segment of a key."""
    text = re.sub(r"[^A-Za-z0-9._]+", "-", in_words(settings)).strip("-")
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}-{digest_of(dict(settings))[:8]}"
