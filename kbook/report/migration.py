"""Tables of the chapter on migration: channel by channel, what a late guard changes, and where the leak is then."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from kbook.keys import CHANNELS, CellKey
from kbook.report import channels, traces
from kbook.report.kbench import ANY, channel_rates
from kbook.report.published import MARK, published
from kbook.scoring.cells import Bools, Floats, Pool, cer_available, leaks
from kbook.scoring.comparisons import BASELINE, Comparison
from kbook.scoring.frames import channel_frame
from kbook.scoring.inference import Bootstrap, channel_shares, interval, resampled_sums, tv_distance
from kbook.scoring.panel import Panel
from kbook.store import Run

UNTREATED = "untreated"
HIDDEN, OBSERVED, ALIKE = "answer clean, leak elsewhere", "in an observation", "answer shares words"

CHANGED = "dominant changed"

_ANSWER = CHANNELS.index("answer")
_OBSERVATIONS = ("Observation", "Search result")


# ---- rates and shares --------------------------------------------------------------------------------------


def rate_frame(panel: Panel, method: str) -> pd.DataFrame:
    """Leak rate of each base, agent (untreated, and under the method) and channel, forget split, with its interval."""
    return _of_agents(channel_rates(panel), method)[["base", "channel", "agent", "rate", "low", "high"]]


def share_frame(panel: Panel, method: str) -> pd.DataFrame:
    """Share of each channel in the leak of each base and agent, forget split; nothing leaks, no share."""
    frame = channel_frame(panel, pooled=True)
    frame = _of_agents(frame[frame["split"] == "forget"], method)
    names = frame["base"] + ", " + frame["agent"]
    return frame.assign(agent=names)[["agent", "channel", "share", "share_lo", "share_hi"]]


def change_frame(panel: Panel, method: str, how: Bootstrap) -> pd.DataFrame:
    """Leak rates of the same queries untreated and under the method, and their change with its paired interval.

    Missing: a channel that was not observed shows nothing.
    """
    rows = []
    for test in _tests(panel, method):
        none, treated = _shown(test.none), _shown(test.method)
        moved = treated - none
        change = interval(moved.mean(axis=0), resampled_sums(moved, how) / len(moved), how.level)
        rates = zip((*CHANNELS, ANY), none.mean(axis=0), treated.mean(axis=0), *change, strict=True)
        names = ("channel", UNTREATED, method, "change", "low", "high")
        rows += [{"base": test.subject.base, **dict(zip(names, row, strict=True))} for row in rates]
    return pd.DataFrame(rows)


def fate_frame(panel: Panel, method: str) -> pd.DataFrame:
    """What became of the queries whose answer showed the secret untreated: counts of queries by base.

    Missing: a channel that was not observed shows nothing.
    """
    rows = []
    for test in _tests(panel, method):
        before, after, anywhere = _answers(test.none), _answers(test.method), leaks(test.method.cer)
        gone = before & ~after
        flags = {
            "answer showed it": before,
            "answer shows it no longer": gone,
            "another channel still does": gone & anywhere,
            "no channel does": gone & ~anywhere,
            "of these degenerate": gone & ~anywhere & test.method.degenerate,
        }
        counts = {name: int(found.sum()) for name, found in flags.items()}
        rows.append({"base": test.subject.base, "queries": test.none.n, **counts})
    return pd.DataFrame(rows)


def shift_frame(panel: Panel, method: str) -> pd.DataFrame:
    """How the size and the topology of the leak changed, by base, and the verdict.

    Missing: without a leak there is no distance; without two seeds that leak none between seeds.
    """
    within = {found.base: found.within for found in panel.topologies}
    verdicts = {verdict.subject: verdict for verdict in panel.verdicts}
    rows = []
    for test in _tests(panel, method):
        subject, verdict = test.subject, verdicts[test.subject]
        main = verdict.dominant_none, verdict.dominant_method
        shares = [channel_shares(cer_available(pool.cer)) for pool in (test.none, test.method)]
        rows.append(
            {
                "base": subject.base,
                f"OR(all) {UNTREATED}": test.test.or_none,
                f"OR(all) {method}": test.test.or_method,
                "adjusted p": test.p_adj,
                "dominant channel": " → ".join(channel or "none" for channel in main),
                CHANGED: main[0] != main[1],
                "distance": float(tv_distance(*shares)),
                "between seeds": within.get(subject.base, {}).get(subject.lane, float("nan")),
                "K-class": verdict.k_class.text if verdict.k_class else verdict.status,
            }
        )
    return pd.DataFrame(rows)


def published_frame() -> pd.DataFrame:
    """The paper's rates on the record lane, untreated and under StaR, and their difference."""
    frame = published("kbench_figure6_star_migration").frame.replace({"channel": {"or_all": ANY}})
    none, star = frame[f"none{MARK}"], frame[f"star{MARK}"]
    columns = {f"{UNTREATED}{MARK}": none, f"star{MARK}": star, f"change{MARK}": star - none}
    return frame[["base", "channel"]].assign(**columns)


def _tests(panel: Panel, method: str) -> list[Comparison]:
    return [test for test in panel.tests if test.split == "forget" and test.subject.method == method]


def _of_agents(frame: pd.DataFrame, method: str) -> pd.DataFrame:
    """The rows of the untreated agent and of the method, base by base, the untreated first."""
    frame = frame[frame["method"].isin([BASELINE, method])]
    frame = frame.assign(agent=frame["method"].replace(BASELINE, UNTREATED), treated=frame["method"] != BASELINE)
    return frame.sort_values(["base", "treated"], kind="stable", ignore_index=True)


def _shown(pool: Pool) -> Floats:
    """Shape: (n, 7) of zeros and ones: the six channels, and whether any of them shows the value."""
    return np.column_stack([np.nan_to_num(pool.cer), leaks(pool.cer)])


def _answers(pool: Pool) -> Bools:
    return np.asarray(pool.cer[:, _ANSWER] == 1)


# ---- traces ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Hidden:
    """A trace whose healthy final answer does not show the value while another channel does.

    `observed` says whether a tool's observation shows it; `likeness` is the share of the value's words that stand in
    the answer.
    """

    run: Run
    row: dict[str, Any]
    observed: bool
    likeness: float


def hidden(runs: Iterable[Run]) -> list[Hidden]:
    """All such traces of some runs, in their order."""
    return [_hidden(run, row) for run, row in channels.hidden_leaks(runs)]


def hidden_frame(runs: Sequence[Run]) -> pd.DataFrame:
    """Counts of such traces by base and agent, the untreated agent as the control."""
    rows = []
    for run, key in ((run, run.key) for run in runs if isinstance(run.key, CellKey)):
        found = hidden([run])
        counts = {
            "traces": len(run.rows()),
            HIDDEN: len(found),
            OBSERVED: sum(each.observed for each in found),
            ALIKE: sum(each.likeness > 0 for each in found),
        }
        rows.append({"base": key.base, "agent": UNTREATED if key.method == BASELINE else key.method, **counts})
    return pd.DataFrame(rows).groupby(["base", "agent"], sort=False).sum().reset_index()


def worked_trace(runs: Sequence[Run]) -> tuple[Run, dict[str, Any], str]:
    """The trace that shows migration best, and what it is in words: one whose answer is nearest to the value.

    Missing: where no answer is clean while an observation shows the value, the first trace, and the words say so.
    """
    found = [each for each in hidden(runs) if each.observed]
    if not found:
        words = "no trace was found whose answer is clean while an observation shows the value; this is the first trace"
        return runs[0], runs[0].rows()[0], words
    best = max(found, key=lambda each: each.likeness)
    share = f"shares {best.likeness:.0%} of its words with" if best.likeness else "has no word in common with"
    return best.run, best.row, f"the final answer is not the value but {share} it, and an observation shows it whole"


def _hidden(run: Run, row: dict[str, Any]) -> Hidden:
    observed = any(step.shows for step in traces.read_steps(row) if step.label in _OBSERVATIONS)
    return Hidden(run, row, observed, channels.likeness(row))
