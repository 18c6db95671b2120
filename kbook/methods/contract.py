"""The one contract of all unlearning methods, and their registry.

A method is a class derived from `Intervention`. It says where it acts and which lanes it can reach, takes its
settings as a pydantic model, and is *fitted* once: either into a `Guard`, which acts while an agent runs, or into
an edited copy of the model's weights. Fitted state is frozen and has a digest.

Bring your own: ``path/to/file.py::ClassName`` wherever a method name is expected.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
from abc import ABC
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from kbook.corpora.people import Corpus, Person
from kbook.digests import digest_of
from kbook.errors import KBookError, unknown_name
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


# One module a family; the registry is the list of names and where each class lives.
METHODS: dict[str, str] = {
    "none": "kbook.methods.contract:NoIntervention",
    "noise": "kbook.methods.noise:Noise",
    "eco": "kbook.methods.eco:ECO",
    "star": "kbook.methods.star:StarHard",
    "star_full": "kbook.methods.star:StarFull",
    "npo": "kbook.methods.preference:NPO",
}


def method_class(name: str) -> type[Intervention]:
    """The class behind a method name, or behind ``path/to/file.py::ClassName``.

    Raises:
        KBookError: unknown name; a file or class that does not exist or does not keep the contract.
    """
    if "::" in name:
        return _brought(name)
    if name not in METHODS:
        raise unknown_name("method", name, METHODS)
    module, _, attribute = METHODS[name].partition(":")
    found: type[Intervention] = getattr(importlib.import_module(module), attribute)
    return found


def make_method(name: str, settings: dict[str, Any] | None = None) -> Intervention:
    """A method with checked settings.

    Raises:
        KBookError: as `method_class`, or settings that the method does not know or that are out of range.
    """
    cls = method_class(name)
    try:
        return cls(cls.Parameters(**(settings or {})))
    except ValidationError as error:
        first = error.errors()[0]
        raise KBookError(
            f"setting {'.'.join(map(str, first['loc']))!r} of method {cls.name}: {first['msg']}",
            where="methods",
            remedy=f"settings of {cls.name}: {', '.join(cls.Parameters.model_fields) or 'none'}",
        ) from None


def why_not(cls: type[Intervention], lane: str) -> str | None:
    """None if the method can reach the lane, else the reason that it cannot."""
    if lane not in LANES:
        raise unknown_name("lane", lane, LANES)
    return None if lane in cls.lanes else cls.reason


def _brought(name: str) -> type[Intervention]:
    path, _, attribute = name.partition("::")
    file = Path(path).expanduser()
    remedy = "give path/to/file.py::ClassName, the class derived from kbook.methods.contract.Intervention"
    if not file.is_file():
        raise KBookError(f"there is no file {path}", "method", remedy)
    spec = importlib.util.spec_from_file_location(f"kbook_brought_{file.stem}", file)
    if spec is None or spec.loader is None:
        raise KBookError("the file is not a Python module", path, remedy)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    cls = getattr(module, attribute, None)
    if not (inspect.isclass(cls) and issubclass(cls, Intervention)):
        raise KBookError(f"{attribute!r} is not an Intervention", path, remedy)
    missing = [a for a in ("name", "title", "family", "source") if not hasattr(cls, a)]
    if missing:
        raise KBookError(f"class {attribute} lacks {', '.join(missing)}", path, remedy)
    return cls
