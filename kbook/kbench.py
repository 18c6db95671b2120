"""Protocol A from end to end: the one place where corpora, models, methods, agent and scoring are wired together.

    bench = KBench("laptop")
    grid = bench.grid(methods=["none", "star"], lanes=["P", "R-text"])
    panel = bench.judge(grid)

Nothing is computed twice: injected models, edited models and cells are runs of the store, found again by a digest of
everything that decides them. Models are loaded only when a run is missing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from kbook.agent.lanes import Stores, fill_stores, sample_queries
from kbook.checkpoints import PROTOCOL, Checkpoints
from kbook.corpora.people import Query
from kbook.corpora.protocol import question
from kbook.digests import Spec
from kbook.errors import KBookError, unknown_name
from kbook.keys import LANES, SPLITS, CellKey, ModelKey, base_segment
from kbook.methods.contract import FitContext, Intervention
from kbook.methods.registry import brought_digest, method_class, source_modules, why_not
from kbook.scoring.leakage import with_leakage
from kbook.store import Run
from kbook.workers import side_by_side, workers

if TYPE_CHECKING:
    from kbook.agent.react import Cell
    from kbook.scoring.panel import Panel

ABILITY_ROLLOUTS = 120


@dataclass(frozen=True)
class NotApplicable:
    """A cell that a method cannot fill, with the reason: neither a failure nor a gap in the data."""

    lane: str
    method: str
    reason: str


@dataclass(frozen=True)
class Grid:
    """Finished cells, and the combinations that do not apply."""

    runs: tuple[Run, ...]
    not_applicable: tuple[NotApplicable, ...]

    def __add__(self, other: Grid) -> Grid:
        return Grid(self.runs + other.runs, self.not_applicable + other.not_applicable)

    def of_seed(self, seed: int) -> Grid:
        """The cells of one seed alone."""
        return Grid(tuple(run for run in self.runs if run.key.seed == seed), self.not_applicable)


class KBench(Checkpoints):
    """One profile and one base of protocol A.

    Args:
        profile: a name or a loaded profile.
        base: a base of the profile (its first by default), or any other name `load_base` takes.
        corpus: people to use instead of the generated ones (the official corpus, say).
        store: by default the project's run store.
        edit_seed: of the edits that answer in lane P; give cells of another one a variant of their own.
    """

    # ---- cells --------------------------------------------------------------------------------------------

    def queries(self, split: str, seed: int, wording: int = 0) -> list[Query]:
        """The queries of a cell: the same for every lane and method, so that cells are paired."""
        return sample_queries(self.corpus, split, self.profile.cells.n, seed, wording)

    def stores(self, lane: str, split: str, seed: int, wording: int = 0) -> Stores:
        """The stores of a cell, filled and audited."""
        queries = self.queries(split, seed, wording)
        return fill_stores(lane, queries, self.corpus, self.profile.lanes, seed)

    def cell(
        self,
        lane: str,
        method: str,
        split: str,
        seed: int,
        *,
        wording: int = 0,
        recipe: str | None = None,
        variant: str = "",
        **changes: Any,
    ) -> Run:
        """The transcripts of one cell.

        Args:
            lane: where the secret is.
            method: a name of `kbook.methods.registry.METHODS` or ``path/to/file.py::Class``.
            split: forget or retain.
            seed: of queries, distractors and the method's noise.
            wording: of the questions; 0 is canonical.
            recipe: injection recipe of lane P.
            variant: names a cell that differs from the main one (another recipe, wording or setting).
            **changes: settings of the method.

        Raises:
            KBookError: unknown lane, split or method; a lane that the method cannot reach.
        """
        which: Any = {"wording": wording, "recipe": recipe, **changes}
        key, spec = self._cell(lane, method, split, seed, variant=variant, **which)
        if found := self.store.lookup(key, spec):
            return found
        with self.prepared(method, lane, split, seed, **which) as cell:
            return self._answer(key, spec, cell, self.queries(split, seed, wording))

    def _cell(
        self,
        lane: str,
        method: str,
        split: str,
        seed: int,
        *,
        wording: int = 0,
        recipe: str | None = None,
        variant: str = "",
        **changes: Any,
    ) -> tuple[CellKey, Spec]:
        """What a cell is called and what decides it; its errors are those of `cell`."""
        if split not in SPLITS:
            raise unknown_name("split", split, SPLITS)
        if reason := why_not(method_class(method), lane):
            raise KBookError(f"{method} cannot reach lane {lane}: {reason}", "cell", "choose another lane or method")
        chosen = self.method(method, **changes)
        made_from = {"model": self.model_spec(method, recipe, **changes)} if lane == "P" else {}
        key = CellKey(PROTOCOL, base_segment(self.base_name), lane, chosen.name, split, seed, variant)
        return key, self._cell_spec(lane, method, chosen, split, wording, made_from)

    def _answer(self, key: CellKey, spec: Spec, cell: Cell, queries: Sequence[Query]) -> Run:
        """Run a prepared cell into the store, batch by batch."""
        from kbook.agent.react import batches_of, run_batch
        from kbook.methods.activations import facts_of

        batches = batches_of(cell, queries, self.profile.cells.token_budget)
        prompt = cell.base.render(cell.system(queries[0]), question(queries[0].text))
        return self.store.rows(
            key,
            spec,
            batches,
            lambda batch: [with_leakage(t.row()) for t in run_batch(cell, batch)],
            seed=key.seed,
            extra={"first prompt": prompt, "fit": facts_of(cell.guard)},
        )

    def _cell_spec(
        self, lane: str, method: str, chosen: Intervention, split: str, wording: int, made_from: dict[str, Spec]
    ) -> Spec:
        profile = self.profile
        parameters = {
            "lanes": profile.lanes,
            "agent": profile.agent,
            "cells": {"n": profile.cells.n, "token_budget": profile.cells.token_budget},
            "split": split,
            "lane": lane,
            "wording": wording,
            "settings": chosen.settings,
            "dtype": profile.dtype,
        }
        inputs = {"corpus": self._corpus_digest, **brought_digest(method)}
        sources = ("kbook.agent.react", "kbook.agent.tools", "kbook.models.embedding", "kbook.scoring.leakage")
        return Spec(parameters, (*sources, *source_modules(method)), inputs, self._base_digest, made_from)

    @contextmanager
    def prepared(
        self,
        method: str,
        lane: str,
        split: str,
        seed: int,
        *,
        wording: int = 0,
        recipe: str | None = None,
        **changes: Any,
    ) -> Iterator[Cell]:
        """A cell ready to run (`kbook.agent.react`), its model loaded and its method fitted; nothing is stored."""
        chosen = self.method(method, **changes)
        model = self.model(method, recipe, **changes) if lane == "P" else None
        with TemporaryDirectory() as work:
            yield self._prepare(chosen, self.stores(lane, split, seed, wording), seed, model, Path(work))

    def _prepare(self, chosen: Intervention, stores: Stores, seed: int, model: Run | None, work: Path) -> Cell:
        from kbook.agent.react import Cell
        from kbook.agent.tools import PassageIndex, Toolbox
        from kbook.models.embedding import load_encoder

        base = self.base(model)
        guard = chosen.guard(FitContext.of(base, self.corpus, seed, work))
        index = PassageIndex(stores.passages, load_encoder(self.profile.lanes.encoder))
        toolbox = Toolbox(stores, index, self.profile.lanes)
        return Cell(base, guard, stores, toolbox, self.profile.agent, seed)

    def grid(
        self,
        methods: Sequence[str] | None = None,
        lanes: Sequence[str] = LANES,
        splits: Sequence[str] = SPLITS,
        **options: Any,
    ) -> Grid:
        """All cells of a grid; combinations that a method cannot reach are listed, not run.

        Args:
            methods: by default the panel of the profile.
            lanes, splits: the rest of the grid; seeds are the profile's.
            **options: passed to `cell`.
        """
        reached: list[tuple[str, str]] = []
        skipped: list[NotApplicable] = []
        for lane, method in product(lanes, methods or self.profile.panel):
            cls = method_class(method)
            if reason := why_not(cls, lane):
                skipped.append(NotApplicable(lane, cls.name, reason))
            else:
                reached.append((lane, method))
        places = list(product(splits, self.profile.cells.seeds))
        cells = [(*pair, *place) for pair, place in product(reached, places)]
        found = {cell: self.store.lookup(*self._cell(*cell, **options)) for cell in cells}
        self._fill(list(dict.fromkeys(cell[:2] for cell, run in found.items() if not run)), places, options)
        runs = [found[cell] or self.cell(*cell, **options) for cell in cells]
        return Grid(tuple(runs), tuple(skipped))

    def _fill(self, missing: Sequence[tuple[str, str]], places: Sequence[tuple[str, int]], options: Any) -> None:
        """Compute what is missing side by side; the cells of one lane and method are one call, for they share a fit."""
        most = workers(self.profile.device)
        if min(most, len(missing)) < 2:
            return
        if any(lane == "P" for lane, _ in missing):
            self.injected(options.get("recipe"))
        side_by_side(_fill, [(self, *pair, places, options) for pair in missing], most)

    def sweep(self, method: str, setting: str, variants: Mapping[str, float], **where: Any) -> Grid:
        """Cells of one method with one of its settings changed step by step.

        Args:
            method: a name, as in `cell`.
            setting: of the method, a number.
            variants: name of each variant → its value of the setting.
            **where: lanes, splits and options of `grid`.
        """
        steps: Any = [{"variant": variant, setting: value} for variant, value in variants.items()]
        return sum((self.grid([method], **step, **where) for step in steps), Grid((), ()))

    def judge(self, grid: Grid) -> Panel:
        """Score every cell of a grid and judge it as one table (`kbook.scoring.panel.judge`)."""
        from kbook.scoring.cells import score_rows
        from kbook.scoring.inference import Bootstrap
        from kbook.scoring.panel import judge

        scores = [score_rows(run.rows(), run.key) for run in grid.runs if isinstance(run.key, CellKey)]
        how = Bootstrap(self.profile.stats.bootstrap, self.profile.stats.seed)
        return judge(scores, how=how, not_applicable={(n.lane, n.method): n.reason for n in grid.not_applicable})

    # ---- looks at one thing -------------------------------------------------------------------------------

    def abilities(self, recipe: str | None = None) -> Run:
        """The ability tasks (`kbook.agent.abilities`), by the plain base or after an injection recipe."""
        from kbook.agent.abilities import measure
        from kbook.models.ability import as_records

        n = min(ABILITY_ROLLOUTS, self.profile.cells.n)
        key = ModelKey(PROTOCOL, base_segment(self.base_name), f"abilities-{recipe or 'base'}", 0)
        parameters = {"n": n, "token_budget": self.profile.cells.token_budget, "dtype": self.profile.dtype}
        made_from = {"model": self._injection(recipe, 0)[1]} if recipe else {}
        spec = Spec(parameters, ("kbook.agent.abilities",), base=self._base_digest, made_from=made_from)

        def work(_: int) -> list[dict[str, Any]]:
            base = self.base(self.injected(recipe) if recipe else None)
            measured = measure(base, n=n, token_budget=self.profile.cells.token_budget)
            return as_records(measured)

        return self.store.rows(key, spec, [0], work, seed=0)

    def follow(self, query: Query, lane: str) -> Run:
        """One query, untreated, through one lane: a worked example. The person stands where the lane says.

        Raises:
            KBookError: lane P (a person is injected with all others or not at all), or an impure store.
        """
        if lane == "P":
            raise KBookError("one person cannot be followed through lane P", "follow", "take C, R-text or R-struct")
        name = "-".join(query.person.name.casefold().split())
        key = CellKey(PROTOCOL, base_segment(self.base_name), lane, "none", "forget", 0, name)
        chosen = self.method("none")
        spec = self._cell_spec(lane, "none", chosen, "forget", query.wording, {})
        spec = replace(spec, parameters={**spec.parameters, "query": [query.person.__dict__, query.field]})
        if found := self.store.lookup(key, spec):
            return found
        corpus = replace(self.corpus, forget_eval=(query.person,), retain_eval=())
        with TemporaryDirectory() as work:
            stores = fill_stores(lane, [query], corpus, self.profile.lanes, 0)
            return self._answer(key, spec, self._prepare(chosen, stores, 0, None, Path(work)), [query])


def _fill(bench: KBench, lane: str, method: str, places: Sequence[tuple[str, int]], options: Mapping[str, Any]) -> None:
    for split, seed in places:
        bench.cell(lane, method, split, seed, **options)
