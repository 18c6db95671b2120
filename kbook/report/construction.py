"""Tables and figures of the chapter on the construction: what came, what stayed, why, and what the checks caught."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import pandas as pd

from kbook.construction.audit import audit_rows
from kbook.construction.judged import Funnel
from kbook.corpora.languages import language
from kbook.corpora.units import LAYERS, ROLES, SETTINGS, Release, Unit
from kbook.report.published import Published

STAGES = {
    "candidates": "units extracted",
    "pairs": "pairs of units compared",
    "holdout": "units left over",
    "questions": "families of questions",
    "translations": "translations",
    "release": "units put together",
}
KEPT, UNNEEDED, BY_RULE, BY_BACK, BY_REVIEW, SILENT = (
    "kept",
    "not needed",
    "by a rule",
    "by back-translation",
    "by review",
    "no reply",
)
FLAGGED, MISSED = "flagged", "missed"
CATCHERS = (BY_RULE, FLAGGED, BY_BACK, BY_REVIEW, MISSED)
_FATES = {"": KEPT, "beyond the quota": UNNEEDED, "not drawn": UNNEEDED, "no usable reply": SILENT}
_PREFIXES = {"back-translation: ": BY_BACK, "review: ": BY_REVIEW}
_COLUMNS = {"common-goal": "common goal", "conditioned": "language-conditioned"}
_PUBLISHED = {"common-goal": "common_goal", "conditioned": "language_conditioned"}


def fate(reason: str) -> str:
    """Who decided, by the reason of a row."""
    by_prefix = (who for prefix, who in _PREFIXES.items() if reason.startswith(prefix))
    return _FATES.get(reason) or next(by_prefix, BY_RULE)


def funnel_frame(funnel: Funnel) -> pd.DataFrame:
    """One row a stage and fate, both settings together: how many things, and their share of the stage.

    Shape: ``stage`` names the stage with the number of things that it looked at.
    """
    counts: dict[str, Counter[str]] = {}
    for row in funnel.rows:
        counts.setdefault(row["stage"], Counter())[fate(row["reason"])] += 1
    order = (KEPT, UNNEEDED, BY_RULE, BY_BACK, BY_REVIEW, SILENT)
    rows = [
        {
            "stage": f"{STAGES[stage]} ({found.total():,})",
            "fate": what,
            "n": found[what],
            "share": found[what] / found.total(),
        }
        for stage, found in counts.items()
        for what in order
        if any(each[what] for each in counts.values())
    ]
    return pd.DataFrame(rows)


def reason_frame(funnel: Funnel) -> pd.DataFrame:
    """Every reason for which something was refused or flagged, with its number in each setting."""
    counts: dict[tuple[str, str], Counter[str]] = {}
    for step in funnel.steps:
        flags = {f"flagged: {flag}": n for flag, n in step.flags.items()}
        for reason, n in {**step.reasons, **flags}.items():
            counts.setdefault((STAGES[step.stage], reason), Counter())[step.setting] += n
    order = list(STAGES.values())
    rows = sorted(counts.items(), key=lambda each: (order.index(each[0][0]), -each[1].total()))
    columns = [{_COLUMNS[setting]: found[setting] for setting in SETTINGS} for _, found in rows]
    return _table(
        [{"stage": s, "reason": r, **c} for ((s, r), _), c in zip(rows, columns, strict=True)],
        {"stage": "none", "reason": "nothing was refused", **dict.fromkeys(_COLUMNS.values(), 0)},
    )


def control_frame(funnel: Funnel) -> pd.DataFrame:
    """Planted faults by stage and kind: how many, and by what each of them was caught, or that it was missed.

    A flagged thing is caught: the stages after it do not use it.
    """
    order = list(STAGES)
    rows = []
    for each in sorted(funnel.planted, key=lambda each: (order.index(each.stage), each.fault)):
        by: Counter[str] = Counter({FLAGGED: each.n_flagged, MISSED: each.n_missed})
        for reason, n in each.reasons.items():
            by[fate(reason)] += n
        counts = {who: by[who] for who in CATCHERS}
        rows.append({"stage": STAGES[each.stage], "fault": each.fault, "planted": each.n_planted, **counts})
    return _table(rows, {"stage": "none", "fault": "none planted", "planted": 0, **dict.fromkeys(CATCHERS, 0)})


def statistics_frame(release: Release, funnel: Funnel | None, paper: Published) -> pd.DataFrame:
    """What each stage made, ours beside the paper's, in columns of their own.

    Missing: how many units were extracted is known only of a construction that was run here.
    """
    counts = {name: dict(zip(SETTINGS, numbers, strict=True)) for name, numbers in _counts(release, funnel).items()}
    rows = []
    for record in paper.frame.to_dict("records"):
        ours = counts.get(record["data_product"], {})
        numbers = {_COLUMNS[setting]: ours.get(setting) for setting in SETTINGS}
        product = record["data_product"].replace("Wikipedia pages", "articles")
        rows.append({"product": product, **numbers, **_theirs(record)})
    return pd.DataFrame(rows).astype(dict.fromkeys(_COLUMNS.values(), "Int64"))


def _theirs(record: Mapping[str, Any]) -> dict[str, Any]:
    return {f"{_COLUMNS[s]} (published)": record[f"{_PUBLISHED[s]} (published)"] for s in SETTINGS}


def _counts(release: Release, funnel: Funnel | None) -> dict[str, list[int | None]]:
    def each(count: Any) -> list[int | None]:
        return [count(setting) for setting in SETTINGS]

    def asked(role: str, *languages: str) -> list[int | None]:
        return each(lambda s: sum(len(release.qas(role, s, code)) for code in languages or release.languages))

    forget, retain, holdout = (asked(role) for role in ROLES)
    english: list[list[int | None]] = [[None for _ in SETTINGS] for _ in ROLES]
    if "en" in release.languages:
        english = [asked(role, "en") for role in ROLES]
    return {
        "curated target-neighbour topic pairs": each(lambda s: len(release.of_setting(s))),
        "canonical Wikipedia pages": each(lambda s: 2 * len(release.of_setting(s))),
        "extracted knowledge units": each(lambda s: funnel.n_kept("candidates", s) if funnel else None),
        "selected relation-matched knowledge-unit pairs": each(lambda s: len(release.units("forget", s))),
        "sampled holdout knowledge units": each(lambda s: len(release.units("holdout", s))),
        "canonical English QAs (core + variants)": _sums(*english[:2]),
        "canonical English holdout QAs (core only)": english[2],
        "multilingual forget QAs": forget,
        "multilingual retain QAs": retain,
        "multilingual holdout QAs": holdout,
        "all multilingual QAs": _sums(forget, retain, holdout),
    }


def _sums(*columns: list[int | None]) -> list[int | None]:
    return [
        None if None in numbers else sum(n for n in numbers if n is not None) for numbers in zip(*columns, strict=True)
    ]


def unit_frame(unit: Unit, layer: str = "core") -> pd.DataFrame:
    """The questions of a unit in every language: the core question, or the first surface variant."""
    place = LAYERS.index(layer)
    rows = [
        {"language": language(code).name, "question": qas[place].question, "answer": qas[place].answer}
        for code, qas in unit.qas.items()
    ]
    return pd.DataFrame(rows)


def pair_frame(release: Release, setting: str, most: int = 8) -> pd.DataFrame:
    """The first pairs of units of a setting: relation, and the facts on both sides."""
    found = [(topics, pair) for topics in release.of_setting(setting) for pair in topics.pairs[:2]]
    rows = [
        {
            "topic pair": topics.id,
            "relation": pair.relation.replace("_", " "),
            "to forget": pair.forget.card.statement,
            "to retain": pair.retain.card.statement,
        }
        for topics, pair in found[:most]
    ]
    return pd.DataFrame(rows)


def topic_frame(release: Release) -> pd.DataFrame:
    """One row a topic pair of the conditioned setting: its source language, topics and rationale."""
    rows = [
        {
            "source": language(pair.source).name if pair.source else "all",
            "target": pair.target_topic,
            "neighbour": pair.neighbour_topic,
            "rationale": pair.rationale or "none on record",
        }
        for pair in release.of_setting("conditioned")
    ]
    return _table(rows, dict.fromkeys(("source", "target", "neighbour", "rationale"), "none"))


def _table(rows: list[dict[str, Any]], none: dict[str, Any]) -> pd.DataFrame:
    """A frame of the rows, or of the one row that says that there are none."""
    return pd.DataFrame(rows or [none])


def audit_frame(release: Release, rounds: int = 20, per_round: int = 100, seed: int = 0) -> pd.DataFrame:
    """The sheet of the human audit (`kbook.construction.audit.audit_rows`) as a frame, ready for `tables.to_csv`."""
    return pd.DataFrame(audit_rows(release, rounds, per_round, seed))


def round_frame(sheet: pd.DataFrame) -> pd.DataFrame:
    """What each round of a sheet covers: rows, languages, and rows by role and layer."""
    rows = []
    for number, part in sheet.groupby("round"):
        roles = {f"{role} units": int((part["role of the unit"] == role).sum()) for role in ROLES}
        core = int((part["layer"] == "core").sum())
        size = {"questions": len(part), "languages": part["language"].nunique()}
        rows.append({"round": number, **size, **roles, "core questions": core})
    return pd.DataFrame(rows)


def differing(release: Release, other: Release) -> tuple[int, int]:
    """Compare the questions of the facts that two releases share, whatever their ids.

    Returns:
        how many questions both have, and how many of them have another question or answer.
    """
    ours, theirs = _texts(release), _texts(other)
    shared = ours.keys() & theirs.keys()
    return len(shared), sum(ours[place] != theirs[place] for place in shared)


def _texts(release: Release) -> dict[tuple[str, str, int], tuple[str, str]]:
    units = [unit for setting in SETTINGS for role in ROLES for unit in release.units(role, setting)]
    return {
        (unit.card.statement, code, place): (qa.question, qa.answer)
        for unit in units
        for code, qas in unit.qas.items()
        for place, qa in enumerate(qas)
    }
