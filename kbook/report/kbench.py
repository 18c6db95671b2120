"""Tables of protocol A's chapters: what was asked of whom, what was measured, and the paper's numbers beside it.

Each function takes runs or a judged panel and returns the frame that a chapter publishes; column names are for
readers. Nothing here computes a score.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pandas as pd

from kbook.agent.lanes import STORE_OF, Stores, occurrences
from kbook.corpora.people import Corpus, Person, Query
from kbook.corpora.wordings import BIOGRAPHIES, QUESTIONS
from kbook.keys import CHANNELS, FIELDS, LANES
from kbook.report.published import MARK, published
from kbook.scoring.comparisons import BASELINE
from kbook.scoring.frames import cell_frame, channel_frame, topology_frame
from kbook.scoring.panel import Panel

ANY = "any channel"
"""OR(all) where it stands among the channels."""

# ---- people and lanes --------------------------------------------------------------------------------------


def people_frame(people: Iterable[Person]) -> pd.DataFrame:
    """Some people, one a row, as the corpus holds them."""
    return pd.DataFrame([{"id": p.id, "name": p.name, **{f: p.value(f) for f in FIELDS}} for p in people])


def pool_frame(corpus: Corpus) -> pd.DataFrame:
    """Who is in the corpus, in which role, and how many queries each role gives."""
    uses = {
        ("forget", "fit"): "methods may learn from them",
        ("forget", "eval"): "asked: must no longer be known",
        ("retain", "fit"): "methods may learn from them",
        ("retain", "eval"): "asked: must still be known",
    }
    rows = [_pool_row(f"{s}, {p}", corpus.pool(s, p), use, len(FIELDS)) for (s, p), use in uses.items()]
    rows.append(_pool_row("holdout", corpus.holdout, "never seen by any model", 0))
    rows.append(_pool_row("distractors", corpus.distractors, "fill the other stores", 0))
    return pd.DataFrame(rows)


def _pool_row(name: str, people: Sequence[Person], use: str, per_person: int) -> dict[str, Any]:
    span = f"{people[0].id} to {people[-1].id}"
    return {"pool": name, "people": len(people), "queries": per_person * len(people), "ids": span, "use": use}


def biography_frame() -> pd.DataFrame:
    """The eight wordings of a biography, with the places of its values."""
    return pd.DataFrame({"wording": range(1, len(BIOGRAPHIES) + 1), "biography": BIOGRAPHIES})


def question_frame() -> pd.DataFrame:
    """The wordings of each question: canonical, and the paraphrases that injection never uses."""
    rows = [{"field": f, "canonical": q[0], "held-out paraphrases": " · ".join(q[1:])} for f, q in QUESTIONS.items()]
    return pd.DataFrame(rows)


def lane_frame() -> pd.DataFrame:
    """The four lanes: where the secret is, how the agent gets at it, and what weight edits can do there."""
    rows = [
        ("P", "the model's weights", "recall", "yes"),
        ("C", "the system prompt, one biography among several", "reading", "no"),
        ("R-text", "a passage of the search index", "search_wiki", "no"),
        ("R-struct", "a record", "lookup_record, verify_attribute", "no"),
    ]
    return pd.DataFrame(rows, columns=["lane", "the secret is in", "the agent gets it by", "weight edits reach it"])


def purity_frame(filled: Mapping[str, tuple[Stores, Sequence[Query]]]) -> pd.DataFrame:
    """Of how many queried values each store holds a copy, lane by lane: the diagonal, and nothing else."""
    rows = []
    for lane, (stores, queries) in filled.items():
        found = occurrences(stores, queries)
        counts = {store: sum(places[store] for places in found) for store in STORE_OF.values()}
        rows.append({"lane": lane, "queries": len(queries), **counts})
    return pd.DataFrame(rows)


# ---- the base and injection --------------------------------------------------------------------------------


def ability_frame(rows: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """The ability tasks of a base: shares reached, what is required, and whether it is met."""
    return pd.DataFrame(
        [
            {
                "task": row["task"],
                "n": row["n"],
                "valid format": row["valid_format"],
                "tool calls exact": row["tool_call"],
                "answer exact": row["answer"],
                "required": _requirement(row["required"]),
                "met": "yes" if row["passed"] else "no",
            }
            for row in rows
        ]
    )


def _requirement(required: Mapping[str, float]) -> str:
    names = {"valid_format": "format", "tool_call": "calls", "answer": "answer"}
    return ", ".join(f"{names[what]} ≥ {least:.2f}" for what, least in required.items())


def ability_change_frame(rows: Mapping[str, Sequence[Mapping[str, Any]]]) -> pd.DataFrame:
    """Answers exact of each task, one column a model: what injection costs with people it does not know."""
    frames = [pd.Series({r["task"]: r["answer"] for r in found}, name=name) for name, found in rows.items()]
    return pd.concat(frames, axis=1).rename_axis("task").reset_index()


def injection_frame(panel: Panel, names: Mapping[str, str]) -> pd.DataFrame:
    """What an agent shows of injected people, per recipe and split.

    Args:
        panel: cells of lane P whose variants are the recipes.
        names: variant to the recipe's name.
    """
    frame = cell_frame(panel, pooled=True)
    channels = channel_frame(panel, pooled=True).pivot(index=["variant", "split"], columns="channel", values="cer_all")
    frame = frame.join(channels[["answer", "summary"]], on=["variant", "split"])
    frame["recipe"] = frame["variant"].map(names)
    columns = {
        "n": "n",
        "or_all": "any channel",
        "answer": "answer",
        "summary": "summary",
        "degeneration": "degenerate",
    }
    return frame[["recipe", "split", *columns]].rename(columns=columns)


def loss_frame(curves: Mapping[str, Iterable[tuple[int, float]]]) -> pd.DataFrame:
    """Loss curves, one series a name. Unit: nats per supervised token, smoothed."""
    return pd.DataFrame(
        [{"series": name, "step": step, "loss": loss} for name, curve in curves.items() for step, loss in curve]
    )


# ---- channels and topology ---------------------------------------------------------------------------------


def channel_rates(panel: Panel, split: str = "forget") -> pd.DataFrame:
    """Leak rate of each base, lane, method and channel (all rows), with OR(all) as the last row of each."""
    cells = cell_frame(panel, pooled=True).assign(channel=ANY)
    cells = cells.rename(columns={"or_all": "rate", "or_all_lo": "low", "or_all_hi": "high"})
    channels = channel_frame(panel, pooled=True)
    channels = channels.rename(columns={"cer_all": "rate", "cer_all_lo": "low", "cer_all_hi": "high"})
    both = pd.concat([channels, cells])
    both = both[both["split"] == split]
    order = {name: i for i, name in enumerate((*CHANNELS, ANY))}
    where, treated = both["lane"].map(LANES.index), both["method"] != BASELINE
    both = both.assign(place=both["channel"].map(order), where=where, treated=treated)
    both = both.sort_values(["base", "where", "treated", "method", "place"], ignore_index=True)
    return both[["base", "lane", "method", "channel", "rate", "low", "high"]]


def baseline_frame(panel: Panel, split: str = "forget") -> pd.DataFrame:
    """`channel_rates` of the untreated agent."""
    rates = channel_rates(panel, split)
    return rates[rates["method"] == BASELINE].drop(columns=["base", "method"]).reset_index(drop=True)


def beside_published(frame: pd.DataFrame, base: str) -> pd.DataFrame:
    """`baseline_frame` with the paper's CER of one base in a column of its own, where the paper prints one."""
    paper = published("kbench_baseline_channels").frame
    paper = paper[paper["base"] == base].replace({"channel": {"or_all": ANY}})
    column = f"{base} cer{MARK}"
    found = paper.set_index(["lane", "channel"])["cer" + MARK].rename(column)
    return frame.join(found, on=["lane", "channel"])


def share_frame(panel: Panel, split: str = "forget") -> pd.DataFrame:
    """Channel shares of the untreated agent, one row a lane and channel."""
    frame = channel_frame(panel, pooled=True)
    frame = frame[(frame["split"] == split) & (frame["method"] == "none")]
    ordered = sorted(frame.to_dict("records"), key=lambda r: (LANES.index(r["lane"]), CHANNELS.index(r["channel"])))
    return pd.DataFrame(ordered)[["lane", "channel", "share", "share_lo", "share_hi"]]


def distance_frame(panel: Panel) -> pd.DataFrame:
    """Total-variation distance of each pair of lanes beside the threshold τ."""
    frame = topology_frame(panel)
    return frame.drop(columns=["base"])


def tau_in_words(distances: pd.DataFrame) -> str:
    """τ with three decimals, or why there is none."""
    tau = float(distances["tau"].iloc[0]) if len(distances) else float("nan")
    return f"{tau:.3f}" if pd.notna(tau) else "not defined (it takes two seeds of a lane)"
