"""The models of protocol B: Original and Retrain, and what a method makes of Original from one source language.

Original and Retrain are stored as weights. Of an unlearned model only the judged checkpoints of the sweep are stored;
its weights stay in memory until another is asked for, and are made again from the chosen settings where they are
needed later.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from kbook.construction.release import load_release
from kbook.corpora.units import QA, SETTINGS, Release
from kbook.digests import Spec
from kbook.errors import KBookError, unknown_name
from kbook.keys import CellKey, ModelKey, base_segment
from kbook.methods.registry import make_method, source_modules
from kbook.methods.weights import TrainedMethod
from kbook.models.bases import Base, base_digest, load_base
from kbook.profiles import Batches, CLLPUSizes, Profile, load_profile
from kbook.scoring.screening import Point, best, screened
from kbook.store import Run, Store

PROTOCOL = "cllpu"
METHODS = ("ga", "gd", "npo", "simnpo", "baldro_npo", "baldro_simnpo")
"""The six of the paper, in its order."""
BASE, ORIGINAL, RETRAIN = "base", "original", "retrain"
REFERENCES: Mapping[str, tuple[str, ...]] = {"common-goal": (ORIGINAL, RETRAIN), "conditioned": (ORIGINAL,)}
"""Models that no source language made: no model without the target is an ideal of the conditioned setting."""
SEED = 0


@dataclass(frozen=True)
class Held:
    """The weights of a judged checkpoint of one model, kept off the accelerator."""

    key: CellKey
    point: Point
    weights: Mapping[str, Any]


class CLLPUModels:
    """One profile and one base of protocol B.

    Args:
        profile: a name or a loaded profile.
        release_folder: the ``data`` folder of the official release; "" for the release of the profile's world.
        base: an embedded base, a local folder or a hub id; "" for the profile's.
        release: a release to use instead.
        store: by default the project's run store.
    """

    def __init__(
        self,
        profile: str | Profile = "laptop",
        release_folder: str = "",
        base: str = "",
        *,
        release: Release | None = None,
        store: Store | None = None,
    ) -> None:
        self.profile = load_profile(profile) if isinstance(profile, str) else profile
        self.release_folder = release_folder
        self.base_name = base or self.sizes.base
        self.store = store or Store(profile=self.profile.name)
        self._release = release
        self._loaded: tuple[str, Base] | None = None
        self._held: Held | None = None
        self._runs: dict[str, Run] = {}

    def __getstate__(self) -> dict[str, Any]:
        """Another process loads its own models."""
        return self.__dict__ | {"_loaded": None, "_held": None}

    @property
    def runs(self) -> list[Run]:
        """The runs that were read so far: what stands behind the frames."""
        return list(self._runs.values())

    def _read(self, run: Run) -> Run:
        self._runs[f"{run.key}/{run.digest}"] = run
        return run

    @property
    def sizes(self) -> CLLPUSizes:
        """The sizes of protocol B in this profile."""
        return self.profile.cllpu

    @property
    def languages(self) -> tuple[str, ...]:
        """Source languages, which are also the languages of the questions."""
        return self.release.languages

    @property
    def methods(self) -> tuple[str, ...]:
        """The methods of which the profile has a grid, in the paper's order."""
        return tuple(name for name in METHODS if name in self.sizes.unlearning.grids)

    @cached_property
    def release(self) -> Release:
        """The release, cut to the sizes of the profile."""
        whole = self._release or load_release(self.release_folder, world=self.sizes.world, store=self.store)
        names = ("topic_pairs", "conditioned", "unit_pairs", "holdout")
        return whole.cut(self.sizes.languages, **{name: getattr(self.sizes, name) for name in names})

    @cached_property
    def _base_digest(self) -> str:
        return base_digest(self.base_name, self._revision)

    @property
    def _revision(self) -> str | None:
        return self.profile.revisions.get(self.base_name)

    def base(self, run: Run | None = None) -> Base:
        """The plain base, or the model that a run holds. The last one stays loaded."""
        name = str(run.path) if run else self.base_name
        if self._loaded is None or self._loaded[0] != name:
            how: Any = {"revision": self._revision, "device": self.profile.device, "dtype": self.profile.dtype}
            self._loaded = (name, load_base(self.base_name, folder=run.path if run else None, **how))
        return self._loaded[1]

    # ---- Original and Retrain -----------------------------------------------------------------------------

    def lessons(self, name: str) -> list[QA]:
        """The core questions that a reference model is taught, in all languages: of both settings, each once."""
        roles = ("forget", "retain") if name == ORIGINAL else ("retain",)
        return [
            qa
            for setting in SETTINGS
            for code in self.languages
            for role in roles
            for qa in self.release.qas(role, setting, code, "core")
        ]

    def taught(self, name: str = ORIGINAL, *, account: bool = False) -> Run:
        """Original, or Retrain, which never met what is to be forgotten.

        Args:
            name: "original" or "retrain".
            account: the manifest will do (losses, seconds), which may have come with the book without the weights.
        """
        key, spec = ModelKey(PROTOCOL, base_segment(self.base_name), name, SEED), self.taught_spec(name)
        if account and (run := self.store.account(key, spec)):
            return self._read(run)

        def build(work: Path) -> dict[str, Any]:
            from kbook.models.questions import exchange
            from kbook.models.teaching import teach

            base, lessons = self.base(), self.lessons(name)
            documents = [exchange(base, qa.question, qa.answer) for qa in lessons]
            return {"documents": len(lessons), **teach(base, documents, self.sizes.original, work, SEED)}

        return self._read(self.store.files(key, spec, build, seed=SEED))

    def taught_spec(self, name: str = ORIGINAL) -> Spec:
        """What decides a reference model."""
        if name not in (ORIGINAL, RETRAIN):
            raise unknown_name("reference model", name, (ORIGINAL, RETRAIN))
        return Spec(
            {"model": name, "settings": self.sizes.original, "dtype": self.profile.dtype},
            ("kbook.models.teaching", "kbook.models.questions"),
            {"release": self.release.digest},
            self._base_digest,
        )

    # ---- unlearned models ---------------------------------------------------------------------------------

    def grid(self, method: str) -> list[dict[str, Any]]:
        """The settings of a method that are tried: all combinations of the profile's grid.

        Raises:
            KBookError: the profile has no grid of this method.
        """
        grids = self.sizes.unlearning.grids
        if method not in grids:
            raise unknown_name("method with a grid", method, grids, "cllpu.unlearning.grids")
        return [dict(zip(grids[method], values, strict=True)) for values in product(*grids[method].values())]

    def sweep_of(self, setting: str, method: str, source: str) -> Run:
        """All judged checkpoints of one model: for each settings of the grid a row for each epoch.

        A row is a `kbook.scoring.screening.Point`, and ``stopped``, which says why training ended early ("" if not).
        """
        key, spec = self._sweep_key(setting, method, source), self.sweep_spec(setting, method, source)

        def work(settings: dict[str, Any]) -> list[dict[str, Any]]:
            points, facts = self._try(key, settings)
            return [{**point.record(), "stopped": facts["stopped"]} for point in points]

        return self._read(self.store.rows(key, spec, self.grid(method), work, seed=SEED))

    def sweep_spec(self, setting: str, method: str, source: str) -> Spec:
        """What decides the sweep of one model."""
        unlearning = self.sizes.unlearning
        parameters = {
            "setting": setting,
            "source": source,
            "grid": self.grid(method),
            "epochs": unlearning.epochs,
            "warmup_steps": unlearning.warmup_steps,
            "target_weight": unlearning.target_weight,
            "batches": self._batches(setting),
            "answer_tokens": self.sizes.answer_tokens,
            "at_once": self.sizes.at_once,
            "dtype": self.profile.dtype,
        }
        sources = ("kbook.methods.unlearning", "kbook.models.questions", "kbook.scoring.screening")
        return Spec(
            parameters,
            (*sources, *source_modules(method)),
            {"release": self.release.digest},
            self._base_digest,
            {"original": self.taught_spec()},
        )

    def chosen(self, setting: str, method: str, source: str) -> Point:
        """The checkpoint that the screening rule chooses.

        Raises:
            KBookError: no setting of the grid came to the end of an epoch.
        """
        run = self.sweep_of(setting, method, source)
        names = Point.__dataclass_fields__
        points = [Point(**{name: row[name] for name in names}) for row in run.rows()]
        if not points:
            remedy = f"lower the rates of cllpu.unlearning.grids.{method}"
            raise KBookError("no checkpoint: every run broke in its first epoch", str(run.key), remedy)
        return best(points)

    def model(self, setting: str, method: str, source: str = "") -> Base:
        """The plain base, a reference model, or the chosen checkpoint of an unlearned one, ready to be asked."""
        if method in (BASE, ORIGINAL, RETRAIN):
            return self.base(self.taught(method) if method != BASE else None)
        key, point = self._sweep_key(setting, method, source), self.chosen(setting, method, source)
        if self._held is None or (self._held.key, self._held.point) != (key, point):
            self._held = None
            self._try(key, dict(point.settings), point)
        if self._held is None:
            raise KBookError("the chosen checkpoint was not met again", str(key), "Remove the run of its sweep")
        start = self.base(self.taught())
        model = copy.deepcopy(start.model)
        model.load_state_dict(self._held.weights)
        return replace(start, name=f"{method}/{source}", model=model.eval())

    def _try(self, key: CellKey, settings: dict[str, Any], wanted: Point | None = None) -> tuple[list[Point], Any]:
        """Train by one combination of settings and judge every epoch; hold the best so far, or the wanted one."""
        from kbook.methods.unlearning import unlearn
        from kbook.models.questions import exchange

        setting, source, unlearning = key.lane, key.split, self.sizes.unlearning
        start = self.base(self.taught())
        pools = {role: self.release.qas(role, setting, source, "core", source) for role in ("forget", "retain")}
        forget, retain = ([exchange(start, qa.question, qa.answer) for qa in pool] for pool in pools.values())
        schedule = {"epochs": unlearning.epochs, "warmup_steps": unlearning.warmup_steps}
        points: list[Point] = []

        def judge(model: Any, epoch: int) -> None:
            target, neighbour = self._said(replace(start, model=model), pools)
            points.append(screened(settings, epoch, target, neighbour, unlearning.target_weight))
            self._hold(key, points[-1], model, wanted)

        how = self._batches(setting)
        with TemporaryDirectory() as work:
            method = _trained(key.method, {**schedule, **settings})
            size: Any = {"size": how.size, "accumulation": how.accumulation, "seed": SEED}
            return points, unlearn(method, start, forget, retain, Path(work), judge, **size)

    def _said(self, base: Base, pools: Mapping[str, Sequence[QA]]) -> list[list[tuple[str, str]]]:
        """Expected and given answers of each pool, answered together."""
        from kbook.models.questions import ask, prompt

        qas = [qa for pool in pools.values() for qa in pool]
        prompts = [prompt(base, qa.question) for qa in qas]
        said = iter(ask(base, prompts, tokens=self.sizes.answer_tokens, at_once=self.sizes.at_once))
        return [[(qa.answer, next(said)) for qa in pool] for pool in pools.values()]

    def _hold(self, key: CellKey, point: Point, model: Any, wanted: Point | None) -> None:
        held = self._held if self._held and self._held.key == key else None
        better = held is None or point.score > held.point.score
        if better if wanted is None else (point.settings, point.epoch) == (wanted.settings, wanted.epoch):
            weights = {name: tensor.detach().to("cpu", copy=True) for name, tensor in model.state_dict().items()}
            self._held = Held(key, wanted or point, weights)

    def _sweep_key(self, setting: str, method: str, source: str) -> CellKey:
        return CellKey(PROTOCOL, base_segment(self.base_name), setting, method, source, SEED, "sweep")

    def _batches(self, setting: str) -> Batches:
        unlearning = self.sizes.unlearning
        return unlearning.common_goal if setting == "common-goal" else unlearning.conditioned


def _trained(name: str, settings: dict[str, Any]) -> TrainedMethod:
    """A method that trains weights.

    Raises:
        KBookError: it is of another kind.
    """
    method = make_method(name, settings)
    if not isinstance(method, TrainedMethod):
        raise KBookError(f"{name} does not train weights", "cllpu.unlearning.grids", f"take some of {METHODS}")
    return method
