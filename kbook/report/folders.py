"""Tables of the chapter that scores a folder of transcripts, whoever made it.

A folder may lack anything: retain cells, a baseline, raw text. So each table says when it has nothing to show, and is
cut to what a reader can take in.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pandas as pd

from kbook.keys import CHANNELS
from kbook.paths import data_folder
from kbook.report import budgets, statistics
from kbook.report.artifacts import Given
from kbook.report.tables import MAX_ROWS, in_lane_order
from kbook.scoring.disagreement import difference_records, label_records, rule_records
from kbook.scoring.folder import Scored, find_cells, score_folder
from kbook.scoring.frames import cell_frame, channel_frame, gate_frame, record_frame, verdict_frame
from kbook.scoring.inference import Bootstrap
from kbook.scoring.panel import Panel
from kbook.scoring.second_look import SecondLook
from kbook.scoring.sources import Source

NOTHING = "nothing to show"

_PLACE = ["lane", "method"]
_YES_NO = {True: "yes", False: "no"}


@dataclass(frozen=True, eq=False)
class Folder:
    """One table of a folder, scored: the cells of one prefix."""

    scored: Scored
    prefix: str

    @property
    def panel(self) -> Panel:
        """The judged table."""
        return self.scored.panels[self.prefix]

    @property
    def cells(self) -> tuple[Source, ...]:
        """The cells of the table, and where they lie."""
        return self.scored.found.of(self.prefix)

    @cached_property
    def again(self) -> SecondLook:
        """The same cells through other eyes."""
        return self.scored.second_look(self.prefix)

    @property
    def given(self) -> Given:
        """Where the transcripts come from: no path of this machine, but a digest of what was read."""
        digests = [hashlib.sha256(cell.content()).digest() for cell in self.cells]
        digest = hashlib.sha256(b"".join(digests)).hexdigest()
        name = f"table {self.prefix} of {Path(self.scored.where).resolve().name}"
        return Given(f"{name}, {len(digests)} cells, sha256 {digest[:12]}, matcher {self.scored.rule}")


def open_folder(folder: str, prefix: str, rule: str, how: Bootstrap) -> Folder:
    """Score one table of a folder.

    Args:
        folder: where the transcripts lie; "" for the book's own example.
        prefix: of the table; "" for the first.
        rule: name of the matcher.
        how: the bootstrap.

    Raises:
        KBookError: as `kbook.scoring.folder.score_folder`.
    """
    path = Path(folder).expanduser() if folder else data_folder() / "examples" / "transcripts"
    chosen = prefix or find_cells(path).prefixes[0]
    return Folder(score_folder(path, chosen, rule=rule, how=how), chosen)


# ---- what is there -----------------------------------------------------------------------------------------


def file_frame(folder: Folder) -> pd.DataFrame:
    """The cells of the table: how many queries each holds, and whether a sidecar says how it was made."""
    scores = {cell.key: cell for cell in folder.panel.cells}
    rows = [
        {
            "lane": cell.key.lane,
            "method": cell.key.method,
            "split": cell.key.split,
            "seed": str(cell.key.seed),
            "queries": scores[cell.key].n,
            "degenerate": int(scores[cell.key].degenerate.sum()),
            "sidecar": _YES_NO[cell.config is not None],
        }
        for cell in folder.cells
    ]
    return fit(in_lane_order(pd.DataFrame(rows)))


def warning_frame(folder: Folder) -> pd.DataFrame:
    """What a reader of the scores must know of the files, the table and its rows."""
    rows = [
        {"warning": notice.code.replace("_", " "), "about": notice.where or "rows", "in words": notice.text}
        for notice in folder.scored.warnings(folder.prefix)
    ]
    return fit(pd.DataFrame(rows))


# ---- scores ------------------------------------------------------------------------------------------------


def rate_frame(folder: Folder) -> pd.DataFrame:
    """OR(all) with its interval, graded rate and degeneration of every lane, method and split, seeds pooled."""
    frame = cell_frame(folder.panel, pooled=True)
    names = {"n": "n", "or_all": "OR(all)", "or_all_lo": "low", "or_all_hi": "high"}
    names |= {"graded": "graded", "degeneration": "degenerate"}
    return fit(in_lane_order(frame[[*_PLACE, "split", *names]].rename(columns=names)))


def channel_table(folder: Folder, split: str = "forget") -> pd.DataFrame:
    """`channels_of` the folder's table."""
    return channels_of(folder.panel, split)


def channels_of(panel: Panel, split: str = "forget") -> pd.DataFrame:
    """CER of each channel over the rows in which it was observed, seeds pooled; a dash where it never was."""
    frame = channel_frame(panel, pooled=True)
    frame = frame[frame["split"] == split]
    wide = frame.pivot(index=_PLACE, columns="channel", values="cer_available")
    return fit(in_lane_order(wide.reindex(columns=list(CHANNELS)).rename_axis(columns=None).reset_index()))


def verdict_table(folder: Folder) -> pd.DataFrame:
    """Every verdict; what could not be judged has a status in place of a label."""
    frame = verdict_frame(folder.panel)
    names = {"k_class": "K-class", "selectivity": "selectivity", "k_score": "K-Score"}
    shown = frame[[*_PLACE, "status", *names]].rename(columns=names)
    provisional = frame["provisional"].map(_YES_NO).where(frame["seeds"] != "")
    return fit(shown.assign(eligible=frame["eligible"].map(_YES_NO), provisional=provisional))


def reason_table(folder: Folder) -> pd.DataFrame:
    """Why each verdict was given, in words."""
    return fit(verdict_frame(folder.panel)[[*_PLACE, "reasons"]])


def gate_table(folder: Folder) -> pd.DataFrame:
    """`gates_of` the folder's table."""
    return gates_of(folder.panel)


def gates_of(panel: Panel) -> pd.DataFrame:
    """Every gate with its figure, its threshold and what it was measured on."""
    frame = gate_frame(panel)
    if frame.empty:
        return fit(frame)
    names = {"kind": "gate of", "id": "gate", "value": "value", "threshold": "threshold", "n": "n"}
    shown = frame[[*_PLACE, *names]].rename(columns=names).assign(passed=frame["passed"].map(_YES_NO))
    return fit(shown.assign(gate=shown["gate"].str.replace("_", " ")))


def family_table(folder: Folder) -> pd.DataFrame:
    """The tests of the table by family, as in the chapter on statistics."""
    return fit(statistics.family_frame(folder.panel) if folder.panel.tests else pd.DataFrame())


def p_formats(frame: pd.DataFrame) -> dict[str, str]:
    """How the probabilities of `family_table` are written, as far as it has any."""
    return {column: ".2g" for column in ("p", "adjusted p") if column in frame}


def budget_table(folder: Folder) -> pd.DataFrame:
    """The verdict of each observer, as in the chapter on budgets."""
    return fit(budgets.class_frame(folder.panel))


# ---- the two matchers --------------------------------------------------------------------------------------


def matcher_frame(folder: Folder, split: str = "forget") -> pd.DataFrame:
    """OR(all) of every lane and method under both matchers, seeds pooled, with intervals."""
    parts = [cell_frame(panel, pooled=True).assign(matcher=rule) for rule, panel in folder.again.panels.items()]
    frame = pd.concat(parts, ignore_index=True)
    names = {"or_all": "OR(all)", "or_all_lo": "low", "or_all_hi": "high"}
    shown = frame[frame["split"] == split].sort_values("method", kind="stable")
    return in_lane_order(shown[[*_PLACE, "matcher", *names]].rename(columns=names))


def rule_frame(folder: Folder) -> pd.DataFrame:
    """By which rule one matcher finds what the other does not, and how often."""
    names = {"found_by": "found by", "rule": "because of", "n_rows": "rows", "n_channels": "channels"}
    return fit(record_frame(rule_records(folder.again.differences)).rename(columns=names))


def place_frame(folder: Folder, most: int = 12) -> pd.DataFrame:
    """The first places on which the matchers differ, with the text around them."""
    frame = record_frame(difference_records(folder.again.differences))
    if frame.empty:
        return fit(frame)
    names = {"query_id": "query", "channel": "channel", "excerpt": "text"}
    shown = frame[[*_PLACE, *names]].rename(columns=names)
    shown.insert(4, "found by", frame["found_by"] + ": " + frame["rule"])
    return shown.head(most)


def label_frame(folder: Folder) -> pd.DataFrame:
    """K-class and K-Score under both matchers, and whether any label of the verdict changes."""
    frame = record_frame(label_records(folder.again.panels))
    frame = frame[frame["status_published"] == "measured"]
    if frame.empty:
        return fit(frame)
    sides = ("published", "strict")
    labels = {f"{name}_{rule}": f"{word}, {rule}" for name, word in _LABELS.items() for rule in sides}
    return fit(frame[[*_PLACE, *labels, "changed"]].rename(columns=labels))


_LABELS = {"k_class": "K-class", "k_score": "K-Score"}


def count_of(frame: pd.DataFrame, flag: str) -> int:
    """How many rows of a table are flagged; none where it has nothing to show."""
    return int(frame[flag].sum()) if flag in frame else 0


def fit(frame: pd.DataFrame) -> pd.DataFrame:
    """Cut a frame to what fits a page; one line that says so where there is nothing."""
    return frame.head(MAX_ROWS) if len(frame) else pd.DataFrame({"result": [NOTHING]})
