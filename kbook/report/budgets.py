"""Tables of the chapter on observers: who sees how much, and for whom a verdict is another.

The observers of the budgets A1 to A5 read some of the six channels. Two more stand beside them: one who counts the
values of other people too (third party), and one who reads all channels together (stitching).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from kbook.report.published import MARK, published
from kbook.report.tables import in_lane_order
from kbook.scoring.budgets import BUDGETS, observe
from kbook.scoring.cells import Reading
from kbook.scoring.comparisons import pool_seeds
from kbook.scoring.frames import record_frame
from kbook.scoring.inference import Bootstrap
from kbook.scoring.observers import Seen, beside_records, observer_records, verdicts_beside
from kbook.scoring.panel import BASELINE, Panel
from kbook.scoring.stitching import STITCHING, Stitched, seen_by_stitching, stitched
from kbook.scoring.summary import summarise
from kbook.scoring.third_party import (
    THIRD_PARTY,
    Disclosures,
    Registry,
    disclosure_records,
    seen_by_third_party,
    third_party,
)

_PUBLISHED = ("a1_answer", "a2_plus_summary", "a3_plus_cot", "a4_plus_tools", "a5_all")
_PLACE = ["lane", "method"]


# ---- budgets -----------------------------------------------------------------------------------------------


def reader_frame() -> pd.DataFrame:
    """The seven observers, and what each of them counts."""
    rows = [(budget, ", ".join(channels), "the value that was asked for") for budget, channels in BUDGETS.items()]
    rows.append((THIRD_PARTY, "all six", "also a value of another forget person"))
    rows.append((STITCHING, "all six, read together", "also a value whose words are spread over several channels"))
    return pd.DataFrame(rows, columns=["observer", "reads", "counts"])


def rate_frame(panel: Panel, how: Bootstrap) -> pd.DataFrame:
    """Leak rate of the untreated agent for each lane and budget, forget split, with its interval."""
    rows = []
    for group, seeds in pool_seeds(panel.cells).items():
        if group.subject.method == BASELINE and group.split == "forget":
            for budget in BUDGETS:
                rate, low, high = map(float, summarise(observe(seeds, budget), how).or_all)
                place = {"lane": group.subject.lane, "observer": budget}
                rows.append({**place, "leak rate": rate, "low": low, "high": high})
    return in_lane_order(pd.DataFrame(rows))


def published_rates() -> pd.DataFrame:
    """The paper's rates of the untreated agent by base, lane and budget."""
    frame = published("kbench_figure5_attacker_budget").frame
    rows = [
        {"base": row["base"], "lane": row["lane"], "observer": budget, f"leak rate{MARK}": row[f"{column}{MARK}"]}
        for row in frame.to_dict("records")
        for budget, column in zip(BUDGETS, _PUBLISHED, strict=True)
    ]
    return pd.DataFrame(rows)


def published_flips() -> pd.DataFrame:
    """The paper's count of verdicts that differ between A1 and A5, by base and lane."""
    frame = published("kbench_figure5_attacker_budget").frame
    columns = {f"eligible_cells{MARK}": f"eligible methods{MARK}", f"verdict_flips{MARK}": f"verdicts flipped{MARK}"}
    return frame[["base", "lane", *columns]].rename(columns=columns)


def class_frame(panel: Panel) -> pd.DataFrame:
    """The K-class that each observer would give to each method, and whether A1 and A5 give different kinds."""
    labels = {(seen.subject, seen.budget): seen.k_class.text for seen in panel.budgets}
    rows = []
    for verdict in panel.verdicts:
        if verdict.status == "measured":
            by_budget = {budget: labels[verdict.subject, budget] for budget in BUDGETS}
            place = {"lane": verdict.subject.lane, "method": verdict.subject.method}
            rows.append({**place, **by_budget, "flips": verdict.flipped, "eligible": verdict.eligible})
    return pd.DataFrame(rows)


def flip_frame(classes: pd.DataFrame) -> pd.DataFrame:
    """How many verdicts of each lane flip, among the eligible methods (the paper's count) and among all."""
    rows = []
    for lane, group in classes.groupby("lane", sort=False):
        eligible = group[group["eligible"].fillna(False).astype(bool)]
        counts = {"methods": len(group), "flipped": int(group["flips"].sum())}
        rows.append(
            {"lane": lane, "eligible methods": len(eligible), "eligible and flipped": int(eligible["flips"].sum())}
            | counts
        )
    return pd.DataFrame(rows)


# ---- two more observers ------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Watched:
    """What the two further observers find in the cells of a panel."""

    disclosures: tuple[Disclosures, ...]
    stitched: tuple[Stitched, ...]
    seen: Mapping[str, tuple[Seen, ...]]


def watch(panel: Panel, readings: Sequence[Reading], registry: Registry) -> Watched:
    """Let both observers read every cell.

    Args:
        panel: the judged cells.
        readings: the rows of the same cells.
        registry: the values of other people to look for.
    """
    scores = {cell.key: cell for cell in panel.cells}
    disclosures = tuple(third_party(reading, registry) for reading in readings)
    together = tuple(stitched(reading, scores[reading.key]) for reading in readings)
    seen = {
        THIRD_PARTY: tuple(seen_by_third_party(scores[found.key], found) for found in disclosures),
        STITCHING: tuple(seen_by_stitching(scores[found.key], found) for found in together),
    }
    return Watched(disclosures, together, seen)


def observer_frame(watched: Watched, split: str = "forget") -> pd.DataFrame:
    """OR(all) of every lane and method beside what the two further observers see, seeds pooled."""
    frame = record_frame([record for seen in watched.seen.values() for record in observer_records(seen)])
    frame = frame[frame["split"] == split]
    rates = frame.assign(or_all=frame["or_all"] * frame["n"], or_seen=frame["or_seen"] * frame["n"])
    sums = rates.groupby([*_PLACE, "observer"], sort=False)[["n", "or_all", "or_seen"]].sum()
    wide = sums["or_seen"].div(sums["n"]).unstack()[list(watched.seen)]
    both = (sums["or_all"] / sums["n"]).groupby(level=_PLACE, sort=False).first().rename("OR(all)")
    n = sums["n"].groupby(level=_PLACE, sort=False).first()
    columns = {name: f"with {name}" for name in watched.seen}
    return in_lane_order(pd.concat([n, both, wide], axis=1).rename(columns=columns).reset_index())


def disclosure_frame(watched: Watched, chance: Sequence[Disclosures]) -> pd.DataFrame:
    """In how many rows each lane's untreated agent shows another person's value, by channel, beside chance.

    Args:
        watched: of a panel.
        chance: the same cells searched for as many dates that belong to nobody.
    """
    counts = {"shows another person's value": watched.disclosures, "shows a date of nobody": chance}
    parts = []
    for name, cells in counts.items():
        frame = record_frame(disclosure_records(cells)).rename(columns={"n": "queries", "n_rows": name})
        untreated = frame[frame["method"] == BASELINE]
        parts.append(untreated.groupby(["lane", "channel"], sort=False)[["queries", name]].sum())
    joined = parts[0].join(parts[1].drop(columns="queries")).reset_index()
    return in_lane_order(joined.replace({"channel": {"any": "any channel"}}))


def beside_frame(watched: Watched, panel: Panel, split: str = "forget") -> pd.DataFrame:
    """The verdict on each method (K-class, or selectivity on retain) beside those of the further observers."""
    parts = []
    for name, seen in watched.seen.items():
        frame = record_frame(beside_records(verdicts_beside(panel, seen)))
        frame = frame[frame["split"] == split].set_index(_PLACE)
        parts += [frame["label_or_all"].rename("OR(all)"), frame["label"].rename(f"with {name}")]
    found = pd.concat(parts, axis=1)
    found = found.loc[:, ~found.columns.duplicated()]
    return in_lane_order(found.assign(changes=found.nunique(axis=1) > 1).reset_index())
