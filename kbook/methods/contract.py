"""The one contract of all unlearning methods; `kbook.methods.registry` knows them by name.

A method is a class derived from `Intervention`. It says where it acts and which lanes it can reach, takes its
settings as a pydantic model, and is *fitted* once: either into a `Guard`, which acts while an agent runs, or into
an edited copy of the model's weights. Fitted state is frozen and has a digest.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict

from kbook.corpora.people import Corpus, Person
from kbook.digests import digest_of
from kbook.errors import KBookError
from kbook.keys import LANES
from kbook.models.bases import Base
from kbook.models.decoding import DecodingHook

Action = Literal["pass", "filter", "refuse"]


class Parameters(BaseModel):
    """Base of every method's settings: unknown names are refused, values are frozen."""

    model_config = ConfigDict(extra="forbid", frozen=True)


@dataclass(frozen=True)
class Verdict:
    """What an inspection decides about one piece of the agent's text.

    ``filter`` only notes (the text stays); ``refuse`` replaces the text by ``replacement`` and ends the run.
    """

    action: Action = "pass"
    replacement: str = ""


@dataclass(frozen=True)
class FitContext:
    """What a method may learn from.

    Args:
        base: the model that answers in the lane: the injected one in P, the plain base elsewhere.
        fit_forget: people of the forget fitting pool, with all their facts.
        fit_retain: people of the retain fitting pool.
        forget_list: everyone who asked to be forgotten, evaluation people included: what a deployed filter
            must know in order to recognise them. Edits that *learn* use the fitting pools alone.
        seed: of the cell.
        work: a folder for checkpoints and edited weights.
    """

    base: Base
    fit_forget: Sequence[Person]
    fit_retain: Sequence[Person]
    forget_list: Sequence[Person]
    seed: int
    work: Path

    @classmethod
    def of(cls, base: Base, corpus: Corpus, seed: int, work: Path) -> FitContext:
        return cls(base, corpus.forget_fit, corpus.retain_fit, corpus.forget, seed, work)

    def require(self, where: str, *, forget: int = 1, retain: int = 1) -> None:
        """Refuse to fit on fewer people than these: see `require_people`."""
        require_people("forget", len(self.fit_forget), where, forget)
        require_people("retain", len(self.fit_retain), where, retain)


def require_people(pool: str, n: int, where: str, least: int = 1) -> None:
    """Refuse a fitting pool of ``n`` people where a method needs more.

    Raises:
        KBookError: there are fewer than ``least``.
    """
    if n < least:
        raise KBookError(
            f"too few people in the {pool} fitting pool: {n}, where {least} are needed",
            where=where,
            remedy=f"raise corpus.n_fit_{pool} of the profile, or choose settings that need fewer",
        )


@dataclass(frozen=True)
class Guard:
    """A fitted method at run time. The default of each part does nothing.

    Args:
        hooks: take part in decoding (embeddings, activations, logits).
        prefix: put in front of the system prompt, and of the summary's.
        inspect: ``(kind, text) -> Verdict`` on each ``thought``, ``action``, ``answer`` and on the person's
            ``name`` before the summary is asked for; None inspects nothing.
        digest: of the fitted state.
    """

    hooks: tuple[DecodingHook, ...] = ()
    prefix: str = ""
    inspect: Any = None
    digest: str = field(default_factory=lambda: digest_of("nothing"))

    def look(self, kind: str, text: str) -> Verdict:
        return self.inspect(kind, text) if self.inspect else Verdict()


class Intervention(ABC):
    """One unlearning method.

    Class attributes:
        name: as in the papers, lower case; the name in keys and tables.
        title: as printed.
        family: weights, embeddings, activations, logits, text or control.
        lanes: lanes that its place of action can reach.
        reason: why not the others; shown in not-applicable cells.
        source: paper and variant.
        Parameters: its settings.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    family: ClassVar[str]
    lanes: ClassVar[tuple[str, ...]] = LANES
    reason: ClassVar[str] = ""
    source: ClassVar[str]
    Parameters: ClassVar[type[BaseModel]] = Parameters

    def __init__(self, settings: BaseModel) -> None:
        self.settings = settings

    @property
    def edits_weights(self) -> bool:
        return self.family == "weights"

    @property
    def edit_settings(self) -> dict[str, Any]:
        """The settings that decide what `edit` writes: all, where a method does not leave out those of its guard."""
        return self.settings.model_dump(mode="json")

    def guard(self, context: FitContext) -> Guard:
        """Fit a method that acts at run time."""
        return Guard()

    def edit(self, context: FitContext) -> dict[str, Any]:
        """Fit a method that edits weights: write the edited model (`save_pretrained`) into ``context.work``.

        Returns:
            JSON-able facts for the manifest (losses, steps).
        """
        raise NotImplementedError(f"{self.name} does not edit weights")


class NoIntervention(Intervention):
    """The untreated baseline."""

    name, title, family = "none", "None", "control"
    source = "baseline of K-Bench"
