"""Tables of the chapter on statistics: pairs, families, seeds, and what a study of a given size can find."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise, product

import numpy as np
import pandas as pd
from scipy.stats import fisher_exact

from kbook.report.published import MARK, published
from kbook.report.tables import in_lane_order
from kbook.scoring.frames import cell_frame, comparison_frame
from kbook.scoring.inference import exact_binomial
from kbook.scoring.panel import Panel, Verdict
from kbook.scoring.power import Simulation, correlated_pairs, detectable, largest_correlation, pairs, simulate
from kbook.scoring.verdicts import ALPHA

ALL_SEEDS = "all seeds"
SPREAD = "spread of K-Score"

_PLACE = ["lane", "method"]


# ---- pairs and families ------------------------------------------------------------------------------------


def pair_frame(panel: Panel, split: str = "forget") -> pd.DataFrame:
    """The four kinds of pair of each test, its exact p, and the p of a test that forgets who was paired with whom.

    Unit: counts of queries, probabilities. The unpaired test is Fisher's exact test on the two rates.
    """
    frame = comparison_frame(panel)
    frame = in_lane_order(frame[frame["split"] == split])
    leaks = {side: (frame["n"] * frame[f"or_{side}"]).round().astype(int) for side in ("none", "method")}
    both = leaks["none"] - frame["none_only"]
    columns = {
        "both leak": both,
        "only untreated": frame["none_only"],
        "only treated": frame["method_only"],
        "neither": frame["n"] - both - frame["none_only"] - frame["method_only"],
        "p, paired": frame["p"],
        "p, unpaired": [_unpaired(*row) for row in zip(leaks["none"], leaks["method"], frame["n"], strict=True)],
    }
    return frame[_PLACE].assign(**columns)


def example_frame(n: int = 100) -> pd.DataFrame:
    """Made-up studies of n queries in which the same two rates come from different pairs."""
    rows = []
    for both, down, up in ((50, 10, 0), (45, 15, 5), (40, 20, 10), (30, 30, 20)):
        pairs_of = {"both leak": both, "only untreated": down, "only treated": up, "neither": n - both - down - up}
        tests = {"p, paired": exact_binomial(down, up), "p, unpaired": _unpaired(both + down, both + up, n)}
        rows.append({**pairs_of, "OR(all) untreated": (both + down) / n, "OR(all) treated": (both + up) / n, **tests})
    return pd.DataFrame(rows)


def family_frame(panel: Panel, alpha: float = ALPHA) -> pd.DataFrame:
    """Every test by family and rank: its p, the line of Benjamini and Hochberg at its rank, and the adjusted p."""
    parts = []
    for split, family in comparison_frame(panel).groupby("split", sort=False):
        ranked = family.sort_values("p", kind="stable")
        rank = np.arange(1, len(ranked) + 1)
        columns = {"rank": rank, "p": ranked["p"], "line": alpha * rank / len(ranked), "adjusted p": ranked["p_adj"]}
        parts.append(ranked[_PLACE].assign(**columns).assign(found=ranked["p_adj"] < alpha).assign(family=split))
    found = pd.concat(parts, ignore_index=True)
    return found[["family", "rank", *_PLACE, "p", "line", "adjusted p", "found"]]


def _unpaired(leaks_none: int, leaks_method: int, n: int) -> float:
    table = [[leaks_none, n - leaks_none], [leaks_method, n - leaks_method]]
    return float(fisher_exact(table).pvalue)


# ---- seeds -------------------------------------------------------------------------------------------------


def seed_frame(panel: Panel, split: str = "forget") -> pd.DataFrame:
    """OR(all) of every lane and method with its interval, seed by seed and all together."""
    alone, together = cell_frame(panel), cell_frame(panel, pooled=True).assign(seed=ALL_SEEDS)
    frame = pd.concat([alone.assign(seed=alone["seed"].map("seed {}".format)), together])
    frame = frame[frame["split"] == split]
    names = {"or_all": "OR(all)", "or_all_lo": "low", "or_all_hi": "high", "n": "n"}
    return in_lane_order(frame)[[*_PLACE, "seed", *names]].rename(columns=names)


def narrowing(frame: pd.DataFrame) -> float:
    """How many times wider the interval of one seed is than that of all, the median over lanes and methods.

    Missing: places whose interval has no width (nobody leaks, or everybody) are left out; 1 where none is left.
    """
    width = frame["high"] - frame["low"]
    together = frame["seed"] == ALL_SEEDS
    wide = width[~together].groupby([frame["lane"], frame["method"]]).mean()
    narrow = width[together].groupby([frame["lane"], frame["method"]]).mean()
    ratios = (wide / narrow)[(wide > 0) & (narrow > 0)]
    return float(ratios.median()) if len(ratios) else 1.0


def seed_verdict_frame(panels: Mapping[str, Panel]) -> pd.DataFrame:
    """The K-class that each seed alone would have given, beside that of all; whether all are of the same kind."""
    labels = {name: {place: v.k_class for place, v in _measured(panel).items()} for name, panel in panels.items()}
    rows = []
    for place in dict.fromkeys(place for found in labels.values() for place in found):
        row = {name: found.get(place) for name, found in labels.items()}
        kinds = {label.kind if label else "" for label in row.values()}
        texts = {name: label.text if label else None for name, label in row.items()}
        rows.append(dict(zip(_PLACE, place, strict=True)) | texts | {"same kind": len(kinds) == 1})
    return pd.DataFrame(rows)


def spread_frame(panels: Mapping[str, Panel]) -> pd.DataFrame:
    """K-Score of every lane and method by seed, of all seeds, and the distance of its largest and smallest seed.

    Missing: with one seed there is no spread, nan.
    """
    values = {name: {place: _score(v) for place, v in _measured(panel).items()} for name, panel in panels.items()}
    scores = pd.DataFrame({name: pd.Series(found) for name, found in values.items()}).rename_axis(_PLACE)
    by_seed = scores.drop(columns=ALL_SEEDS)
    several = by_seed.notna().sum(axis=1) > 1
    return scores.assign(**{SPREAD: (by_seed.max(axis=1) - by_seed.min(axis=1)).where(several)}).reset_index()


def close_frame(spreads: pd.DataFrame) -> pd.DataFrame:
    """Neighbours by K-Score within a lane: their distance, the larger of their spreads, and whether it is exceeded."""
    rows = []
    for lane, group in spreads.dropna(subset=[ALL_SEEDS]).groupby("lane", sort=False):
        ranked = group.sort_values(ALL_SEEDS, ascending=False, kind="stable").to_dict("records")
        for better, worse in pairwise(ranked):
            gap, spread = better[ALL_SEEDS] - worse[ALL_SEEDS], np.fmax(better[SPREAD], worse[SPREAD])
            verdict = "unknown" if np.isnan(spread) else "yes" if gap > spread else "no"
            names = {"lane": lane, "better": better["method"], "worse": worse["method"]}
            rows.append(names | {"distance": gap, "larger spread": spread, "exceeds the spread": verdict})
    return pd.DataFrame(rows)


def spread_in_words(spreads: pd.DataFrame) -> str:
    """The median and the largest spread, or why there is none."""
    known = spreads[SPREAD].dropna()
    few = "not known here (it takes two seeds)"
    return f"{known.median():.3f} in the median and {known.max():.3f} at most" if len(known) else few


def published_gaps() -> pd.DataFrame:
    """Neighbours in the paper's leaderboard of eligible methods: how far the better is ahead of the next."""
    frame = published("kbench_table15_eligible_leaderboard").frame
    column = f"suppression{MARK}"
    ahead = frame[column] - frame.groupby("base", sort=False)[column].shift(-1)
    return frame[["base", "method", column]].assign(**{f"ahead of the next{MARK}": ahead})


def _measured(panel: Panel) -> dict[tuple[str, str], Verdict]:
    found = [verdict for verdict in panel.verdicts if verdict.status == "measured"]
    return {(verdict.subject.lane, verdict.subject.method): verdict for verdict in found}


def _score(verdict: Verdict) -> float:
    return verdict.k_score.value if verdict.k_score else float("nan")


# ---- power -------------------------------------------------------------------------------------------------

FALL, NEW, POWER = "true fall of OR(all)", "leaks that begin", "power"


def power_frame(sizes: Sequence[int], new: Sequence[float], largest: float, how: Simulation) -> pd.DataFrame:
    """Power over the true fall of the leak rate: one row a size, share of leaks that begin, and fall."""
    falls = np.linspace(0, largest, 21)
    parts = []
    for up, n in product(new, sizes):
        found = simulate(pairs(falls, up), n, how=how)
        names = {NEW: f"{up:.0%} begin to leak", "pairs": f"n = {n}"}
        parts.append(pd.DataFrame({**names, FALL: falls, POWER: found.value, "low": found.lo, "high": found.hi}))
    return pd.concat(parts, ignore_index=True)


def detectable_frame(sizes: Sequence[int], new: Sequence[float], gain: float, how: Simulation) -> pd.DataFrame:
    """The smallest fall that is found four times in five, and the power to find a given gain."""
    rows = [
        {
            "pairs": n,
            NEW: up,
            "found with power 0.8": detectable(n, up, how=how),
            f"power for {gain:g}": float(simulate(pairs(gain, up), n, how=how).value),
        }
        for n, up in product(sizes, new)
    ]
    return pd.DataFrame(rows)


def relative_frame(
    baselines: Sequence[float], fall: float, correlation: float, n: int, how: Simulation
) -> pd.DataFrame:
    """Power to find a relative fall of the leak rate from several baselines, at a correlation of the flags.

    Where the two rates do not allow the correlation, the largest that they allow is taken.
    """
    none = np.asarray(baselines, dtype=float)
    method = (1 - fall) * none
    allowed = np.minimum(correlation, largest_correlation(none, method))
    found = [simulate(correlated_pairs(*case), n, how=how) for case in zip(none, method, allowed, strict=True)]
    columns = {"OR(all) untreated": none, "OR(all) treated": method, "correlation": allowed}
    return pd.DataFrame(columns).assign(power=[float(rate.value) for rate in found])
