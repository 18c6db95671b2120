"""The models of protocol A: a base, the base with facts injected, and what a method makes of that.

Each is a run of the store, built where it is missing; `Checkpoints.model_spec` names one without building it.
"""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import Any

from kbook.corpora.people import Corpus, make_corpus
from kbook.digests import Spec, digest_of
from kbook.errors import KBookError, unknown_name
from kbook.keys import FIELDS, ModelKey, base_segment
from kbook.methods.contract import FitContext, Intervention
from kbook.methods.registry import brought_digest, make_method, source_modules
from kbook.models.bases import Base, base_digest, load_base
from kbook.profiles import Profile, load_profile
from kbook.store import Run, Store

PROTOCOL = "kbench"
RECIPES = ("full", "lora")


class Checkpoints:
    """One profile and one base of protocol A.

    Args:
        profile: a name or a loaded profile.
        base: a base of the profile (its first by default), or any other name `load_base` takes.
        corpus: people to use instead of the generated ones (the official corpus, say).
        store: by default the project's run store.
        edit_seed: of the edits that answer in lane P; give cells of another one a variant of their own.
    """

    def __init__(
        self,
        profile: str | Profile = "laptop",
        *,
        base: str | None = None,
        corpus: Corpus | None = None,
        store: Store | None = None,
        edit_seed: int = 0,
    ) -> None:
        self.profile = load_profile(profile) if isinstance(profile, str) else profile
        self.base_name = base or self.profile.bases[0]
        self.store = store or Store(profile=self.profile.name)
        self.edit_seed = edit_seed
        self._corpus = corpus
        self._loaded: tuple[str, Base] | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Another process loads its own models."""
        return self.__dict__ | {"_loaded": None}

    @cached_property
    def corpus(self) -> Corpus:
        return self._corpus or make_corpus(self.profile.corpus)

    @cached_property
    def _corpus_digest(self) -> str:
        people = [p.__dict__ for p in (*self.corpus.members, *self.corpus.distractors)]
        return digest_of(people if self.corpus.fields == FIELDS else [people, self.corpus.fields])

    @cached_property
    def _base_digest(self) -> str:
        return base_digest(self.base_name, self._revision)

    @property
    def _revision(self) -> str | None:
        return self.profile.revisions.get(self.base_name)

    def base(self, run: Run | None = None) -> Base:
        """The plain base, or the model that a run holds (injected, unlearned). The last one stays loaded."""
        name = str(run.path) if run else self.base_name
        if self._loaded is None or self._loaded[0] != name:
            how: Any = {"revision": self._revision, "device": self.profile.device, "dtype": self.profile.dtype}
            self._loaded = (name, load_base(self.base_name, folder=run.path if run else None, **how))
        return self._loaded[1]

    def injected(self, recipe: str | None = None, seed: int = 0, *, account: bool = False) -> Run:
        """The base with the facts of all members in its weights, by ``full`` fine-tuning or ``lora``.

        Args:
            recipe: by default the profile's.
            seed: of the order of documents and of the adapters.
            account: the manifest will do (losses, seconds), which may have come with the book without the weights.
        """
        from kbook.models.tuning import inject

        key, spec = self._injection(recipe, seed)
        if account and (run := self.store.account(key, spec)):
            return run
        settings = getattr(self.profile.injection, recipe or self.profile.injection.recipe)
        return self.store.files(
            key, spec, lambda work: inject(self.base(), self.corpus.members, settings, seed, work), seed=seed
        )

    def _injection(self, recipe: str | None, seed: int) -> tuple[ModelKey, Spec]:
        recipe = recipe or self.profile.injection.recipe
        if recipe not in RECIPES:
            raise unknown_name("injection recipe", recipe, RECIPES)
        if self.corpus.fields != FIELDS:
            lacking = ", ".join(field for field in FIELDS if field not in self.corpus.fields)
            raise KBookError(f"people without {lacking} cannot be injected", "lane P", "choose another lane")
        settings = getattr(self.profile.injection, recipe)
        key = ModelKey(PROTOCOL, base_segment(self.base_name), f"inject-{recipe}", seed)
        spec = Spec(
            {"settings": settings, "dtype": self.profile.dtype},
            ("kbook.models.tuning", "kbook.corpora.injection"),
            {"corpus": self._corpus_digest},
            self._base_digest,
        )
        return key, spec

    def edited(
        self, method: str, recipe: str | None = None, seed: int = 0, *, account: bool = False, **changes: Any
    ) -> Run:
        """The injected model after a method that edits weights, fitted on the fitting pools.

        Args:
            method: a name, as in `cell`.
            recipe, account: as in `injected`.
            seed: of the order of documents, and of what the method draws.
            **changes: settings of the method.
        """
        key, spec = self._edit(method, recipe, seed, changes)
        if account and (run := self.store.account(key, spec)):
            return run

        def build(work: Path) -> dict[str, Any]:
            start = self.base(self.injected(recipe))
            return self.method(method, **changes).edit(FitContext.of(start, self.corpus, seed, work))

        return self.store.files(key, spec, build, seed=seed)

    def _edit(self, method: str, recipe: str | None, seed: int, changes: dict[str, Any]) -> tuple[ModelKey, Spec]:
        chosen, (start, injection) = self.method(method, **changes), self._injection(recipe, 0)
        key = ModelKey(PROTOCOL, base_segment(self.base_name), chosen.name, seed, start.recipe)
        spec = Spec(
            {"settings": chosen.edit_settings, "seed": seed, "dtype": self.profile.dtype},
            source_modules(method),
            {"corpus": self._corpus_digest, **brought_digest(method)},
            self._base_digest,
            {"start": injection},
        )
        return key, spec

    def model_spec(self, method: str = "none", recipe: str | None = None, **changes: Any) -> Spec:
        """What decides the model that answers in lane P, for the `made_from` of a run; builds nothing."""
        if self.method(method, **changes).edits_weights:
            return self._edit(method, recipe, self.edit_seed, changes)[1]
        return self._injection(recipe, 0)[1]

    def model(self, method: str = "none", recipe: str | None = None, **changes: Any) -> Run:
        """The model that answers in lane P under a method, built where it is missing."""
        edits = self.method(method, **changes).edits_weights
        return self.edited(method, recipe, self.edit_seed, **changes) if edits else self.injected(recipe)

    def method(self, name: str, **changes: Any) -> Intervention:
        """A method with the profile's settings, some of them changed."""
        return make_method(name, {**self.profile.methods.get(name, {}), **changes})
