"""Tables of the chapter on detectors: who is routed to an adapter, and a fit that finds nothing to erase."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pandas as pd

from kbook.report.reruns import cell_key, changed_rows, paired
from kbook.report.variants import BROKEN, KEPT, LEAK, UNTREATED, variant_frame, variant_rates
from kbook.scoring.panel import BASELINE, Panel
from kbook.store import Run

ACCURACY = "oracle accuracy"
EXPECTED = "leak on forget, expected"
SINGULAR, TOLERANCE, ERASED = "singular value", "tolerance", "erases"

# ---- routing -----------------------------------------------------------------------------------------------


def accuracy_curves(panel: Panel, accuracies: Mapping[str, float]) -> pd.DataFrame:
    """Leak on both splits over the accuracy of the oracle, with intervals, and what is expected on forget.

    A query that is routed wrongly is answered as by the untreated agent. So the expected leak is a mixture:
    accuracy × the leak with a perfect oracle + (1 - accuracy) × the leak untreated. It has no interval.

    Args:
        panel: the untreated agent, and O3 in variants of `accuracies`, all in one lane.
        accuracies: variant → accuracy.

    Missing: without a perfect oracle or an untreated agent nothing is expected.
    """
    rates = variant_rates(panel, ACCURACY, accuracies)
    rates = rates[rates["quantity"] != BROKEN].sort_values(["quantity", ACCURACY], kind="stable")
    leaks = variant_frame(panel, ACCURACY, accuracies).set_index(ACCURACY)[LEAK]
    expected = [
        {"quantity": EXPECTED, ACCURACY: a, "share": a * leaks[1.0] + (1 - a) * leaks[UNTREATED]}
        for a in sorted(accuracies.values())
        if {1.0, UNTREATED} <= set(leaks.index)
    ]
    frame = pd.concat([rates, pd.DataFrame(expected)], ignore_index=True)
    return frame.reindex(columns=["quantity", ACCURACY, "share", "low", "high"]).rename(columns={"share": "OR(all)"})


def equivalent_accuracy(leaks: Mapping[str, float], leak: float) -> float:
    """The accuracy of an oracle under which as much would leak, by the mixture of `accuracy_curves`.

    Args:
        leaks: of the untreated agent and with a perfect oracle, as ``untreated`` and ``perfect``.
        leak: under the router in question.

    *Missing*: nan where the two do not differ.
    """
    span = leaks["untreated"] - leaks["perfect"]
    return (leaks["untreated"] - leak) / span if span else float("nan")


def router_frame(panel: Panel, routers: Mapping[str, str], perfect: str) -> pd.DataFrame:
    """`variant_frame` of routers, with the accuracy of an oracle under which as much of the forget split would leak."""
    frame = variant_frame(panel, "router", routers).drop(columns=["lane", "method"])
    leaks = frame.set_index("router")[LEAK]
    ends = {"untreated": leaks.get(UNTREATED, float("nan")), "perfect": leaks.get(routers[perfect], float("nan"))}
    alike = [equivalent_accuracy(ends, leak) for leak in frame[LEAK]]
    return frame.assign(**{"like an oracle of": pd.Series(alike).where(frame["router"] != UNTREATED)})


def detector_frame(runs: Iterable[Run]) -> pd.DataFrame:
    """What detectors recognise, by their own account: messages about people on the list, and about others.

    Unit: shares of messages. The words that it was fitted to, and the same questions in other words.
    """
    told = {_settings(run)["nu"]: fact for run in runs for fact in _facts(run) if "recognised" in fact}
    rows = [
        {
            "ν": nu,
            "messages": words,
            "recognised": fact[f"recognised{suffix}"],
            "false alarms": fact.get(f"false_alarms{suffix}"),
        }
        for nu, fact in sorted(told.items())
        for words, suffix in (("as fitted", ""), ("paraphrased", ", paraphrased"))
    ]
    return pd.DataFrame(rows, columns=["ν", "messages", "recognised", "false alarms"])


# ---- fits that find nothing ----------------------------------------------------------------------------------


def fit_frame(runs: Iterable[Run], models: Mapping[str, str]) -> pd.DataFrame:
    """What LEACE found in each layer that it was fitted on; the same fit of several cells counts once.

    Args:
        runs: cells under LEACE.
        models: lane → the model that answers there, for readers.

    Shape: one row a model, position, layer and tolerance.
    """
    rows = [
        {
            "model": models.get(cell_key(run).lane, cell_key(run).lane),
            "positions": _settings(run)["positions"],
            "layer": int(layer) + 1,
            "states": found["n"],
            SINGULAR: found["singular"],
            TOLERANCE: found["tolerance"],
            ERASED: "a direction" if found["rank"] else "nothing",
        }
        for run in runs
        for fact in _facts(run)
        for layer, found in fact.get("layers", {}).items()
    ]
    names = ["model", "positions", "layer", "states", SINGULAR, TOLERANCE, ERASED]
    return pd.DataFrame(rows, columns=names).drop_duplicates(ignore_index=True)


def singular_curves(fits: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Singular values over the layer, one series for each kind of position, and the tolerance as a line.

    Args:
        fits: name of a panel → `fit_frame` of its fits.
    """
    parts = []
    for panel, frame in fits.items():
        line = frame.drop_duplicates("layer").assign(**{SINGULAR: frame[TOLERANCE], "positions": TOLERANCE})
        parts.append(pd.concat([frame, line]).assign(panel=panel))
    frame = pd.concat(parts, ignore_index=True)
    ordered = frame.sort_values(["panel", "layer"], kind="stable").astype({"layer": str})
    return ordered[["panel", "positions", "layer", SINGULAR]]


def above_chance(found: pd.DataFrame, by_lot: pd.DataFrame) -> pd.DataFrame:
    """Singular values beside those of the same people dealt to the two labels by lot, fit by fit.

    Args:
        found, by_lot: `fit_frame` of the same model.
    """
    place = ["positions", "layer"]
    chance = by_lot.set_index(place)[SINGULAR].rename("labels by lot")
    return found[[*place, "states", SINGULAR]].join(chance, on=place)


def chance_in_words(frame: pd.DataFrame) -> str:
    """How the real labels compare with those by lot, from the least to the most favourable tokens."""
    ratios = (frame[SINGULAR] / frame["labels by lot"]).dropna()
    return f"{ratios.min():.2f} to {ratios.max():.2f} times" if len(ratios) else "an unknown multiple of"


def no_op_frame(panel: Panel, runs: Sequence[Run], variants: Mapping[str, str]) -> pd.DataFrame:
    """Each variant of a method: whether it does anything, how many rows it leaves as they were, and its verdicts.

    Args:
        panel: the untreated agent and the method's variants.
        runs: the cells of the panel.
        variants: variant → its name for readers.

    Unit: ``rows unchanged`` is a count out of ``rows``, both splits and all seeds together.
    """
    keys = [cell_key(run) for run in runs]
    untreated = [run for run, key in zip(runs, keys, strict=True) if key.method == BASELINE]
    rows = []
    for lane, variant in dict.fromkeys((key.lane, key.variant) for key in keys if key.variant in variants):
        cells = [run for run, key in zip(runs, keys, strict=True) if (key.lane, key.variant) == (lane, variant)]
        pairs = paired(untreated, cells, across_methods=True)
        changed, n = sum(len(changed_rows(*pair)) for pair in pairs), sum(len(second.rows()) for _, second in pairs)
        idle = all(fact.get("no_op", False) for run in cells for fact in _facts(run))
        rows.append(
            {
                "lane": lane,
                "variant": variants[variant],
                "does": "nothing" if idle else "something",
                "rows": n,
                "rows unchanged": n - changed,
            }
        )
    done = pd.DataFrame(rows, columns=["lane", "variant", "does", "rows", "rows unchanged"])
    frame = variant_frame(panel, "variant", variants).drop(columns=["method", "selectivity", BROKEN, KEPT])
    return frame.merge(done, how="left", on=["lane", "variant"]).astype({"rows": "Int64", "rows unchanged": "Int64"})


def no_ops_in_words(frame: pd.DataFrame) -> str:
    """Whether every fit that does nothing left every row as it was, and what its verdicts are called."""
    idle = frame[frame["does"] == "nothing"]
    if not len(idle):
        return "None of these fits is a no-op"
    kept, n = int(idle["rows unchanged"].sum()), int(idle["rows"].sum())
    labels = ", ".join(dict.fromkeys(idle["K-class"]))
    return f"The fits that do nothing leave {kept:,} of {n:,} rows as they were; their verdicts: {labels}"


def _facts(run: Run) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = run.manifest.extra.get("fit", [])
    return found


def _settings(run: Run) -> dict[str, Any]:
    settings: dict[str, Any] = run.manifest.parts["parameters"]["settings"]
    return settings
