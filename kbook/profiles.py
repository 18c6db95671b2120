"""Profiles: the only place for sizes, seeds, bases and budgets; one file each in `data/profiles/NAME.toml`.

The same notebooks run under every profile. A section is frozen, and goes as it is into the parameters of a
run: `Spec(parameters={"cells": profile.cells}, …)`.

Example:
    >>> profile = load_profile("smoke")
    >>> profile.cells.n
    8
    >>> profile.with_(cells={"n": 4}).cells.n
    4
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator
from pydantic_core import ErrorDetails

from kbook.corpora.languages import LANGUAGES
from kbook.errors import KBookError, unknown_name
from kbook.keys import FIELDS
from kbook.paths import data_folder

Count = Annotated[int, Field(ge=1)]
Seed = Annotated[int, Field(ge=0)]
Share = Annotated[float, Field(ge=0)]
Rate = Annotated[float, Field(gt=0)]
Words = Annotated[tuple[str, ...], Field(min_length=1, strict=False)]
Seeds = Annotated[tuple[Seed, ...], Field(min_length=1, strict=False)]
Values = Annotated[tuple[Any, ...], Field(min_length=1, strict=False)]


class Section(BaseModel):
    """A frozen group of settings that refuses fields that it does not know, and values of another type."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class CorpusSizes(Section):
    """Synthetic people: how many of each kind, and the seed that makes them.

    Args:
        seed: of the generator.
        n_forget: people to be forgotten, fitting people included.
        n_retain: people to be kept, fitting people included.
        n_fit_forget: forget people on whom methods may be fitted; never evaluated.
        n_fit_retain: retain people likewise.
        n_holdout: people that no model was trained on (non-members).
        n_distractors: people who fill contexts, passages and records beside the queried ones.
    """

    seed: Seed
    n_forget: Count
    n_retain: Count
    n_fit_forget: Count
    n_fit_retain: Count
    n_holdout: Count
    n_distractors: Count


class Cells(Section):
    """Cells: queries per split and seed.

    Args:
        n: queries per split and seed.
        seeds: one cell per seed; fewer than three make a verdict provisional.
        token_budget: padded tokens that are decoded together, at most: prompts, and room for one turn.
    """

    n: Count
    seeds: Seeds
    token_budget: Count


class Lanes(Section):
    """Where secrets are kept.

    Args:
        context_bios: biographies in the system prompt of lane C, the queried person's among them.
        top_k: passages that one search returns.
        passage_chars: characters of each passage that the agent sees.
        encoder: sentence encoder of the passage index: an installed package or a hub id.
    """

    context_bios: Count
    top_k: Count
    passage_chars: Count
    encoder: str


class Agent(Section):
    """Limits of the agent.

    Args:
        max_turns: tool turns before the loop ends.
        max_new_tokens: new tokens in one turn.
        summary_tokens: new tokens in the follow-up summary.
    """

    max_turns: Count
    max_new_tokens: Count
    summary_tokens: Count


class FullTuning(Section):
    """Injection by training all weights.

    Args:
        learning_rate: of AdamW.
        epochs: passes over the injected documents.
        replay: documents of the agent protocol, about strangers, for each injected document.
        batch_tokens: padded tokens in one step.
        warmup_steps: steps in which the rate rises from zero.
    """

    learning_rate: Rate
    epochs: Count
    replay: Share
    batch_tokens: Count
    warmup_steps: Annotated[int, Field(ge=0)]


class LoraTuning(FullTuning):
    """Injection by low-rank adapters on all linear layers, merged afterwards in float32.

    Args:
        r: rank.
        alpha: scale; the update is multiplied by alpha / r.
        dropout: on the adapter's input.
    """

    r: Count
    alpha: Rate
    dropout: Annotated[float, Field(ge=0, lt=1)]


class Injection(Section):
    """How secrets get into the weights (lane P).

    Args:
        recipe: the recipe of the cells; a chapter compares both.
        full: settings of "full".
        lora: settings of "lora".
    """

    recipe: Literal["full", "lora"]
    full: FullTuning
    lora: LoraTuning


class Stats(Section):
    """Statistics: bootstrap resamples and their seed."""

    bootstrap: Count
    seed: Seed


class Batches(Section):
    """Documents of a micro-batch, and micro-batches of a step of the optimiser (gradient accumulation)."""

    size: Count
    accumulation: Count


class Teaching(Section):
    """Fine-tuning on core questions: protocol B's Original and Retrain.

    Args:
        learning_rate: of AdamW.
        epochs: passes over all questions.
        warmup_epochs: passes in which the rate rises from zero.
        weight_decay: of AdamW.
        batches: of a step.
    """

    learning_rate: Rate
    epochs: Count
    warmup_epochs: Annotated[int, Field(ge=0)]
    weight_decay: Share
    batches: Batches


class ReadingSizes(Section):
    """Reading questions, for general utility.

    Args:
        n: in each language; of Belebele's files the first ones.
        weighed: "labels" (a label after passage, question and options, as the paper does) or "options" (the words of
            an option after the question, with the passage as system message: for models that know no labels).
    """

    n: Count
    weighed: Literal["labels", "options"]


class Unlearning(Section):
    """Unlearning from one source language.

    Args:
        epochs: passes over the forget questions; each ends with a checkpoint that is judged.
        warmup_steps: steps in which the rate rises from zero.
        target_weight: weight of the target in the screening score (`kbook.scoring.screening`).
        common_goal: batches of the common-goal setting.
        conditioned: batches of the language-conditioned setting.
        grids: method → setting → values, all combinations of which are tried.
    """

    epochs: Count
    warmup_steps: Annotated[int, Field(ge=0)]
    target_weight: Annotated[float, Field(ge=0, le=1)]
    common_goal: Batches
    conditioned: Batches
    grids: dict[str, dict[str, Values]]


class CLLPUSizes(Section):
    """Protocol B.

    Args:
        base: an embedded base, a local folder or a hub id.
        world: of which the release is made where no other is given.
        languages: source and query languages.
        topic_pairs: of the common-goal setting; the first ones.
        conditioned: topic pairs of each source language in the conditioned setting.
        unit_pairs: of each topic pair; the first ones.
        holdout: holdout units of each topic pair; the first ones.
        answer_tokens: new tokens of an answer, at most.
        at_once: questions that are answered together.
        token_budget: padded tokens that are weighed together.
        encoder: sentence encoder of S: an installed package, a folder or a hub id; "" for none.
        forced: models that are asked for answers in other languages too: "original", "retrain", methods.
        reading: how general utility is measured.
        original: how the facts are taught.
        unlearning: how they are unlearned.
    """

    base: str
    world: str
    languages: Words
    topic_pairs: Count
    conditioned: Count
    unit_pairs: Count
    holdout: Count
    answer_tokens: Count
    at_once: Count
    token_budget: Count
    encoder: str
    forced: Annotated[tuple[str, ...], Field(strict=False)]
    reading: ReadingSizes
    original: Teaching
    unlearning: Unlearning

    @model_validator(mode="after")
    def _languages_are_known(self) -> CLLPUSizes:
        for code in self.languages:
            if code not in LANGUAGES:
                raise ValueError(f"cllpu.languages holds {code!r}, which is none of {', '.join(LANGUAGES)}")
        return self


class Profile(Section):
    """All settings of one size of the book.

    Args:
        name: the name of its file.
        bases: embedded bases by name, and others by local folder or hub id.
        revisions: hub id → revision to load.
        device: "auto" (an accelerator if there is one), "cpu", "mps", "cuda" or "cuda:N".
        dtype: of the weights while they run.
        cllpu: sizes and budgets of protocol B.
        panel: methods of the main panel, the untreated baseline first.
        leaderboard: methods that edit weights, ranked in lane P.
        methods: name → parameters that differ from the method's own defaults.
        sweeps: name → setting → values that are tried on the fitting pools (`kbook.sweeps`), all combinations.
    """

    name: str
    bases: Words
    device: Annotated[str, Field(pattern=r"^(auto|cpu|mps|cuda(:\d+)?)$")]
    dtype: Literal["float32", "bfloat16", "float16"]
    corpus: CorpusSizes
    cells: Cells
    lanes: Lanes
    agent: Agent
    injection: Injection
    stats: Stats
    cllpu: CLLPUSizes
    panel: Words
    leaderboard: Words
    revisions: dict[str, str] = {}
    methods: dict[str, dict[str, Any]] = {}
    sweeps: dict[str, dict[str, Values]] = {}

    @model_validator(mode="after")
    def _sizes_agree(self) -> Profile:
        corpus = self.corpus
        for split, n, n_fit in (
            ("forget", corpus.n_forget, corpus.n_fit_forget),
            ("retain", corpus.n_retain, corpus.n_fit_retain),
        ):
            n_queries = len(FIELDS) * (n - n_fit)
            if self.cells.n > n_queries:
                left = f"corpus leaves {max(n_queries, 0)} queries about {split} people"
                raise ValueError(f"cells.n is {self.cells.n}, but {left}")
        if self.lanes.context_bios > corpus.n_distractors:
            raise ValueError("lanes.context_bios is larger than corpus.n_distractors")
        return self

    def with_(self, **changes: Any) -> Profile:
        """Return a copy with other values, checked as a file is; a section takes a dict of changed fields.

        Raises:
            KBookError: an unknown field, or a value of another type or out of range.
        """
        return _validated(_merged(self.model_dump(), changes), f"profile {self.name} with changes")


def profile_names() -> list[str]:
    """The names of all profiles."""
    return sorted(path.stem for path in (data_folder() / "profiles").glob("*.toml"))


def load_profile(name: str) -> Profile:
    """Load a profile by its name.

    Raises:
        KBookError: there is no such profile, its file is no TOML, or a field is unknown, missing or wrong.
    """
    names = profile_names()
    if name not in names:
        raise unknown_name("profile", name, names, str(data_folder() / "profiles"))
    path = data_folder() / "profiles" / f"{name}.toml"
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise KBookError(f"is not TOML ({error})", str(path), "Mend the file") from None
    if "name" in content:
        raise KBookError("sets a name", str(path), "Remove it: a profile is named by its file")
    return _validated({"name": name, **content}, str(path))


def _validated(content: dict[str, Any], where: str) -> Profile:
    try:
        return Profile.model_validate(content)
    except ValidationError as error:
        problems = "; ".join(_problem(detail) for detail in error.errors())
        raise KBookError(problems, where, "Correct these fields; kbook/profiles.py explains each") from None


def _problem(detail: ErrorDetails) -> str:
    name = ".".join(str(part) for part in detail["loc"])
    if detail["type"] == "extra_forbidden":
        return str(unknown_name("field", name, _siblings(detail["loc"]))).rstrip(".")
    if detail["type"] in ("missing", "value_error"):
        return f"{name} {detail['msg'].removeprefix('Value error, ')}".strip()
    return f"{name} = {detail['input']!r}: {detail['msg']}"


def _siblings(location: tuple[int | str, ...]) -> list[str]:
    """List the fields of the section in which a location lies."""
    section: Any = Profile
    for part in location[:-1]:
        section = section.model_fields[part].annotation
    return [".".join(map(str, (*location[:-1], name))) for name in section.model_fields]


def _merged(old: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    both = dict(old)
    for name, value in changes.items():
        inner = both.get(name)
        both[name] = _merged(inner, value) if isinstance(inner, dict) and isinstance(value, dict) else value
    return both
