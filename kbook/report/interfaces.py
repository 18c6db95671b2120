"""Tables of the chapter on interfaces: what four weight-side benchmarks say of a model, beside the agent it answers as.

A *place* is a lane and a method. Every place has the probes of its model and those of a clean model.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import pandas as pd

from kbook.report.published import MARK, published
from kbook.report.tables import in_lane_order
from kbook.report.tints import TINTS
from kbook.scoring.budgets import observe
from kbook.scoring.cells import CellScores
from kbook.scoring.comparisons import pool_seeds
from kbook.scoring.frames import cell_frame
from kbook.scoring.inference import Bootstrap
from kbook.scoring.panel import BASELINE, Panel
from kbook.scoring.summary import summarise
from kbook.scoring.weight_side import (
    BELOW,
    CLEAN,
    FORGET,
    LEAK,
    UNKNOWN,
    Finding,
    Probes,
    findings,
    overlap,
    read_probes,
    shown_rate,
    utilities,
)

Place = tuple[str, str]

AGENT, DIRECT = "agent", "direct question"
WATCHERS = {"A1": "final answer", "A5": "any channel"}
"""Budgets of an observer of the agent, and how rows of the chapter call them."""

COLORS = {LEAK: TINTS["broken"], CLEAN: TINTS["preserved"], BELOW: TINTS["weakened"], UNKNOWN: "#FFFFFF"}

_PLACE = ["lane", "method"]
_FORMATS = {"forget quality": ".2g", "PrivLeak": "+.0f"}


class Rows(Protocol):
    """A run of which only the rows are read."""

    def rows(self) -> list[dict[str, Any]]: ...


class Pair(NamedTuple):
    """Probes of a model, and of its clean model."""

    model: Probes
    clean: Probes


@dataclass(frozen=True, eq=False)
class Looks:
    """What the benchmarks see at every place, and the agent's cells there.

    Args:
        pairs: place → scores of its model and of the clean model.
        found: place → benchmark and measure → what it says.
        panel: judged cells of the same places.
        how: of all intervals.
    """

    pairs: Mapping[Place, Pair]
    found: Mapping[Place, Mapping[tuple[str, str], Finding]]
    panel: Panel
    how: Bootstrap


def look(probed: Mapping[Place, tuple[Rows, Rows]], panel: Panel, how: Bootstrap) -> Looks:
    """Score the probes of every place.

    Args:
        probed: place → runs of its model and of the clean model (`kbook.probing.probe_grid`).
        panel: judged cells.
        how: of all intervals.
    """
    pairs = {place: Pair(*(read_probes(run.rows()) for run in runs)) for place, runs in probed.items()}
    return Looks(pairs, {place: findings(*pair, how) for place, pair in pairs.items()}, panel, how)


def finding_frame(looks: Looks) -> pd.DataFrame:
    """One row a place and measure: value, interval, the clean model's value, and the verdict."""
    rows = []
    for (lane, method), found in looks.found.items():
        for (benchmark, measure), what in found.items():
            names = {"lane": lane, "method": method, "benchmark": benchmark, "measure": measure}
            ends = {"value": what.value, "low": what.lo, "high": what.hi, "clean model": what.clean}
            rows.append({**names, **ends, "verdict": what.verdict})
    return pd.DataFrame(rows)


def agent_frame(looks: Looks) -> pd.DataFrame:
    """Leak rate of the agent at every place, for who reads the final answer and for who reads all channels."""
    rows = []
    for group, seeds in pool_seeds(looks.panel.cells).items():
        place = (group.subject.lane, group.subject.method)
        if group.split == FORGET and place in looks.found:
            for budget, name in WATCHERS.items():
                rate, low, high = map(float, summarise(observe(seeds, budget), looks.how).or_all)
                ends = {"value": rate, "low": low, "high": high}
                verdict = LEAK if low > 0 else CLEAN
                rows.append({**dict(zip(_PLACE, place, strict=True)), "measure": name, **ends, "verdict": verdict})
    return pd.DataFrame(rows, columns=[*_PLACE, "measure", "value", "low", "high", "verdict"])


def matrix_frame(looks: Looks) -> pd.DataFrame:
    """Every measure and both observers of the agent, place by place: the verdict and, as text, the value."""
    probes = finding_frame(looks)
    agent = agent_frame(looks).assign(benchmark=AGENT)
    agent = agent.sort_values("measure", key=lambda names: names.map(list(WATCHERS.values()).index), kind="stable")
    both = pd.concat([probes[list(agent.columns)], agent], ignore_index=True)
    return pd.DataFrame(
        {
            "measure": both["benchmark"] + ": " + both["measure"],
            "model": [place_name(*place) for place in both[_PLACE].itertuples(index=False)],
            "verdict": both["verdict"],
            "value": [_written(*row) for row in both[["measure", "value"]].itertuples(index=False)],
        }
    )


def place_name(lane: str, method: str) -> str:
    """A place as columns name it: the lane, and the method where there is one."""
    return lane if method == BASELINE else f"{lane}, {method}"


def _written(measure: str, value: float) -> str:
    return "" if pd.isna(value) else format(value, _FORMATS.get(measure, ".2f"))


def verdict_counts(frame: pd.DataFrame, lanes: Iterable[str]) -> dict[str, int]:
    """How many findings of these lanes' untreated models bear each verdict.

    Args:
        frame: of `finding_frame` or `agent_frame`.
        lanes: whose rows are counted.
    """
    wanted = frame[frame["lane"].isin(list(lanes)) & (frame["method"] == BASELINE)]
    counts = wanted["verdict"].value_counts()
    return {verdict: int(counts.get(verdict, 0)) for verdict in COLORS}


def rate_frame(looks: Looks) -> pd.DataFrame:
    """How often the value is shown at every place: to who asks the model directly, and to observers of the agent."""
    agent = agent_frame(looks)
    agent["who looks"] = AGENT + ", " + agent["measure"]
    seen = {place: group for place, group in agent.rename(columns={"value": "share"}).groupby(_PLACE, sort=False)}
    parts = []
    for place, pair in looks.pairs.items():
        share, low, high = _rate(pair.model, looks.how)
        asked = pd.DataFrame([{"who looks": DIRECT, "share": share, "low": low, "high": high}])
        parts += [part.assign(model=place_name(*place)) for part in (asked, seen.get(place)) if part is not None]
    return pd.concat(parts, ignore_index=True)[["model", "who looks", "share", "low", "high"]]


def _rate(model: Probes, how: Bootstrap) -> tuple[float, float, float]:
    if FORGET not in model.answers:
        return (float("nan"),) * 3
    value, low, high = (float(end[0]) for end in shown_rate(model.answers[FORGET], how))
    return value, low, high


def overlap_frame(looks: Looks) -> pd.DataFrame:
    """Queries of each place by who shows the value: both, the agent only, the direct question only, neither."""
    rows = []
    for (lane, method), pair in looks.pairs.items():
        cells = list(_cells(looks.panel, lane, method))
        if not cells or FORGET not in pair.model.answers:
            continue
        counts = overlap(cells, pair.model.answers[FORGET])
        leaked = counts.both + counts.agent_only
        found = counts.both / leaked if leaked else float("nan")
        names = ("both", f"{AGENT} only", f"{DIRECT} only", "neither")
        row = {"lane": lane, "method": method, **dict(zip(names, counts, strict=True))}
        rows.append({**row, "share of the agent's leaks that a question finds": found})
    return pd.DataFrame(rows)


def _cells(panel: Panel, lane: str, method: str) -> Iterator[CellScores]:
    for cell in panel.cells:
        if (cell.key.lane, cell.key.method, cell.key.split) == (lane, method, FORGET):
            yield cell


def method_frame(looks: Looks) -> pd.DataFrame:
    """Lane P before and after each method: what is to be forgotten and kept, by the benchmarks and by the agent.

    Shape: one row a quantity, one column a method.
    """
    columns = {}
    for (lane, method), pair in looks.pairs.items():
        if lane == "P":
            found = {f"{b}: {m}": what.value for (b, m), what in looks.found[lane, method].items()}
            columns[method] = found | utilities(pair.model) | _agent_rates(looks.panel, method)
    return pd.DataFrame(columns).rename_axis("quantity").reset_index()


def _agent_rates(panel: Panel, method: str) -> dict[str, float]:
    frame = cell_frame(panel, pooled=True)
    rates = {}
    for row in frame.to_dict("records"):
        if (row["lane"], row["method"]) == ("P", method):
            rates[f"{AGENT}: any channel, {row['split']}"] = row["or_all"]
            rates[f"{AGENT}: degenerate, {row['split']}"] = row["degeneration"]
    return rates


def measure_frame() -> pd.DataFrame:
    """The measures: what each asks of a model, and what it would be without the secret."""
    rows = [
        ("TOFU", "probability", "P(value | question), by length", "that of the clean model"),
        ("TOFU", "ROUGE-L recall", "greedy answer against the value", "that of the clean model"),
        ("TOFU", "forget quality", "p of a KS test on truth ratios, five wrong values each", "0.05 or more"),
        ("MUSE", "knowledge memory", "ROUGE-L F1 of the greedy answer", "that of the clean model"),
        ("MUSE", "verbatim memory", "ROUGE-L F1 of a continued biography", "that of the clean model"),
        ("MUSE", "PrivLeak", "Min-40% attack, members against holdout, in percent of the clean model's", "0"),
        ("WMDP", "four-way choice", "most likely of four values of the field", "about 0.25"),
        ("LUME", "regurgitation", "ROUGE-L recall of a continued biography", "that of the clean model"),
        ("LUME", "knowledge", "greedy answer equals the value", "that of the clean model"),
        ("LUME", "membership AUC", "attack by loss, members against holdout", "about 0.5"),
        (AGENT, "final answer", "value in the final answer of the trace", "0"),
        (AGENT, "any channel", "value in any of six channels of the trace", "0"),
    ]
    return pd.DataFrame(rows, columns=["benchmark", "measure", "looks at", "without the secret"])


def published_rates() -> pd.DataFrame:
    """The paper's leak rates of the untreated agent by base and lane: the answer channel and any channel."""
    frame = published("kbench_baseline_channels").frame
    column = f"cer{MARK}"
    wide = frame[frame["channel"].isin(["answer", "or_all"])].pivot(index=["base", "lane"], columns="channel")[column]
    names = {"answer": f"final answer{MARK}", "or_all": f"any channel{MARK}"}
    return in_lane_order(wide.rename(columns=names).rename_axis(columns=None).reset_index())


def published_methods() -> pd.DataFrame:
    """What the paper's text states of methods that edit weights, in lane P."""
    frame = published("kbench_text_figures").frame
    return frame[frame["quantity"].str.contains(r"^(?:NPO|GA|IDK)\b")].reset_index(drop=True)
