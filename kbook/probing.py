"""Weight-side benchmarks on the checkpoints of protocol A: the same models that answer as agents, asked directly.

    run = weight_probes(bench, "npo")                     # lane P after a method that edits weights
    clean = clean_probes(bench)                           # what a model gives that never met the forget people

In lane P the model is the injected or edited one. In the other lanes it is the plain base, by definition of the lane:
the secret is handed to it as text, and its weights hold nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from functools import cache
from typing import Any, NamedTuple

from kbook.checkpoints import PROTOCOL
from kbook.corpora.probe_items import ProbeQuestion, ProbeText, probe_questions, probe_texts
from kbook.digests import Spec, digest_of
from kbook.errors import KBookError, unknown_name
from kbook.kbench import KBench
from kbook.keys import LANES, SPLITS, ModelKey, base_segment, check_name
from kbook.methods.registry import method_class, why_not
from kbook.store import Run

ANSWER_TOKENS = 48
REFERENCES = ("retrained", "base")

_AT_ONCE = 96
"""Items of a batch, which are decoded together."""

_WITHOUT = "without-forget"

Item = ProbeQuestion | ProbeText
Place = tuple[str, str]
"""Lane and method."""


class Probed(NamedTuple):
    """The probes of a model, and those of the model that it is compared with."""

    run: Run
    clean: Run


def weight_probes(bench: KBench, method: str = "none", lane: str = "P", recipe: str | None = None) -> Run:
    """What the model of a lane gives to weight-side benchmarks (rows of `kbook.models.probes`).

    It is asked what the agent is asked in all its cells, each query once, and told the biographies of both splits and
    of the holdout. Lanes C, R-text and R-struct share one run, that of the plain base.

    Args:
        bench: profile, base, people and store.
        method: ``none``, or one that edits weights (lane P).
        lane: whose model.
        recipe: injection recipe of lane P.

    Raises:
        KBookError: unknown lane or method; a method that cannot reach the lane, or that leaves the weights alone.
    """
    check_name("lane", lane, LANES)
    chosen = bench.method(method)
    if reason := why_not(method_class(method), lane):
        raise KBookError(f"{method} cannot reach lane {lane}: {reason}", "weight probes", "choose another lane")
    if method != "none" and not chosen.edits_weights:
        remedy = "ask for none: a benchmark of weights sees the same model"
        raise KBookError(f"{method} acts while the agent runs and leaves the weights alone", "weight probes", remedy)
    if lane != "P":
        return _plain(bench)
    key = ModelKey(PROTOCOL, base_segment(bench.base_name), f"probes-{chosen.name}", 0, _injection(bench, recipe))
    return _probe(bench, key, bench.model_spec(method, recipe), lambda: bench.model(method, recipe))


def clean_probes(bench: KBench, lane: str = "P", reference: str = "retrained", recipe: str | None = None) -> Run:
    """What a model gives that never met the forget people: the reference of forget quality and PrivLeak.

    In lane P ``retrained`` is the base injected with all other people by the same recipe, as TOFU and MUSE define
    their reference; ``base`` is the plain base, which costs nothing but also lacks what the retain people taught
    (the form of an answer, the words of a biography). In the other lanes both are the plain base.

    Args:
        bench, lane, recipe: as in `weight_probes`.
        reference: one of `REFERENCES`.

    Raises:
        KBookError: unknown lane or reference.
    """
    check_name("lane", lane, LANES)
    if reference not in REFERENCES:
        raise unknown_name("reference", reference, REFERENCES)
    if lane != "P" or reference == "base":
        return _plain(bench)
    others = replace(bench.corpus, forget_fit=(), forget_eval=())
    retrained = KBench(bench.profile, base=bench.base_name, corpus=others, store=bench.store)
    variant = f"{_injection(bench, recipe)}-{_WITHOUT}"
    key = ModelKey(PROTOCOL, base_segment(bench.base_name), "probes-none", 0, variant)
    return _probe(bench, key, retrained.model_spec(recipe=recipe), lambda: retrained.model(recipe=recipe))


def probe_grid(bench: KBench, methods: Sequence[str] = (), reference: str = "retrained") -> dict[Place, Probed]:
    """Probes of every lane's model, untreated and under each method that can reach it, each with its clean model.

    Args:
        bench: as in `weight_probes`.
        methods: that edit weights.
        reference: as in `clean_probes`.
    """
    places = [(lane, method) for lane in LANES for method in ("none", *methods)]
    reached = [(lane, method) for lane, method in places if not why_not(method_class(method), lane)]
    return {
        (lane, method): Probed(weight_probes(bench, method, lane), clean_probes(bench, lane, reference))
        for lane, method in reached
    }


def _injection(bench: KBench, recipe: str | None) -> str:
    return f"inject-{recipe or bench.profile.injection.recipe}"


def _plain(bench: KBench) -> Run:
    return _probe(bench, ModelKey(PROTOCOL, base_segment(bench.base_name), "probes-base", 0), None, lambda: None)


def _items(bench: KBench) -> list[Item]:
    seeds = bench.profile.cells.seeds
    asked = {split: [q for seed in seeds for q in bench.queries(split, seed)] for split in SPLITS}
    questions = [q for split in SPLITS for q in probe_questions(bench.corpus, split, asked[split])]
    return [*questions, *probe_texts(bench.corpus, bench.profile.cells.n)]


def _probe(bench: KBench, key: ModelKey, made: Spec | None, model: Callable[[], Run | None]) -> Run:
    """Put all items to a model, batch by batch; it is built and loaded only if a batch is missing.

    Args:
        bench: whose people are asked about.
        key: of the probes.
        made: what decides the model, None for the plain base.
        model: the model's run.
    """
    items = _items(bench)
    limits = {"answer": ANSWER_TOKENS, "text": bench.profile.agent.summary_tokens, "together": _AT_ONCE}
    spec = Spec(
        {"limits": limits, "token_budget": bench.profile.cells.token_budget, "dtype": bench.profile.dtype},
        ("kbook.models.probes",),
        {"items": digest_of([asdict(item) for item in items])},
        bench.model_spec().base,
        {"model": made} if made else {},
    )
    loaded = cache(lambda: bench.base(model()))

    def rows(batch: Sequence[Item]) -> list[dict[str, Any]]:
        from kbook.models.probes import question_rows, text_rows

        questions = [item for item in batch if isinstance(item, ProbeQuestion)]
        texts = [item for item in batch if isinstance(item, ProbeText)]
        budget = bench.profile.cells.token_budget
        asked = question_rows(loaded(), questions, tokens=limits["answer"], budget=budget)
        return asked + text_rows(loaded(), texts, tokens=limits["text"], budget=budget)

    batches = [items[i : i + _AT_ONCE] for i in range(0, len(items), _AT_ONCE)]
    return bench.store.rows(key, spec, batches, rows, seed=key.seed)
