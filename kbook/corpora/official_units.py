"""Reader and writer of the official CLLPU release: files by language and setting, one schema for every chapter.

A folder with ``qa_variants.LANGUAGE.json`` (matched units) and ``holdout_qa.LANGUAGE.json`` (holdout units) for each
language; the conditioned setting has ``.culture_specific`` before ``.json``. Files of failed back-translations
(``….failed_backtranslation.json``) lie beside them and are left out. Nothing of the release is shipped.

A matched file: ``topic_pairs[]`` → ``pair_id``, ``topic_type``, ``target_topic``, ``neighbor_topic``,
``knowledge_card_pairs[]`` → ``knowledge_pair_id``, ``relation_type``, ``target.card``, ``neighbor.card``,
``target_qa_variants[]``, ``neighbor_qa_variants[]``. A holdout file: ``holdout_cards[]`` → the fields of a card,
``source_card_id``, ``source_pair_id``, ``qa_variants[]``. The file's ``target`` is to be forgotten, its ``neighbor``
retained; what the questions of a holdout file say of their role is not read.

Source: github.com/CLLPU/CLLPU-bench, data/README.md and the files beside it (June 2026).
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from kbook.corpora.languages import LANGUAGES
from kbook.corpora.units import (
    QA,
    SETTINGS,
    Card,
    Release,
    TopicPair,
    Unit,
    UnitPair,
    check_distinct,
    check_family,
    check_pools,
    source_of,
)
from kbook.errors import KBookError
from kbook.files import write_atomic

_INFIX = {"common-goal": "", "conditioned": ".culture_specific"}
_SIDES = {"target": "forget", "neighbor": "retain"}
_CARD = {
    "relation": "relation_type",
    "slot": "semantic_slot",
    "statement": "fact_statement",
    "answer": "answer",
    "answer_type": "answer_type",
    "span": "source_span",
}
_MADE_BY = ("model", "prompt_version", "generated_at")
_PASSED = {"translation_status": "accepted", "backtranslation_status": "passed"}


@dataclass(frozen=True)
class Counts:
    """How many topic pairs, matched pairs and holdout units a setting must have, and pairs by source language."""

    topic_pairs: int
    unit_pairs: int
    holdout: int
    by_source: Mapping[str, int]


OFFICIAL: Mapping[str, Counts] = {
    "common-goal": Counts(50, 500, 500, {}),
    "conditioned": Counts(30, 300, 300, {language: 30 for language in LANGUAGES} | {"ar": 33, "bn": 27}),
}
"""Counts of the official release. Source: the paper's Table 4, and the ids of the release for the source languages."""


def file_name(family: str, language: str, setting: str) -> str:
    """Name a file: ``family`` is ``qa_variants`` or ``holdout_qa``.

    Example:
        >>> file_name("holdout_qa", "sw", "conditioned")
        'holdout_qa.sw.culture_specific.json'
    """
    return f"{family}.{language}{_INFIX[setting]}.json"


def read_release(
    folder: Path | str,
    *,
    settings: Sequence[str] = SETTINGS,
    languages: Sequence[str] = LANGUAGES,
    counts: Mapping[str, Counts] | None = OFFICIAL,
) -> Release:
    """Read a release in the official format.

    Args:
        folder: the ``data`` folder of the release, or one that `write_release` filled.
        settings: settings to read; each needs all its files.
        languages: languages to read.
        counts: what each setting must have; None for a release of another size.
    Raises:
        KBookError: a file is missing or no JSON; a field is missing, empty or of another type; other counts; an id
            twice; a unit in a pair and among the holdout units; roles, layers or languages mixed up; a question that
            did not pass its back-translation; units that one language has and another lacks. Names file and id.
    """
    folder = Path(folder)
    pairs: list[TopicPair] = []
    for setting in settings:
        found = _read_setting(folder, setting, languages)
        if counts is not None:
            _check_counts(found, counts[setting], folder / file_name("qa_variants", languages[0], setting))
        pairs += found
    first = _load(folder / file_name("qa_variants", languages[0], settings[0]))
    head = {**{name: first.get(name) for name in _MADE_BY}, **_object({"provenance": {}} | first, "provenance", "")}
    return Release(tuple(pairs), {name: text for name, text in head.items() if isinstance(text, str)})


def write_release(release: Release, folder: Path) -> list[Path]:
    """Write a release in the official format, so that `read_release` gives it back; returns the files."""
    written = []
    for setting in SETTINGS:
        pairs = release.of_setting(setting)
        for language in release.languages if pairs else ():
            families = {"qa_variants": _matched(pairs, language), "holdout_qa": _holdout(pairs, language)}
            for family, content in families.items():
                head = {"language": language, "provenance": dict(release.provenance)}
                path = folder / file_name(family, language, setting)
                write_atomic(path, json.dumps({**head, **content}, ensure_ascii=False, indent=1).encode() + b"\n")
                written.append(path)
    return written


# ---- reading ----------------------------------------------------------------------------------------------------


def _read_setting(folder: Path, setting: str, languages: Sequence[str]) -> list[TopicPair]:
    """Topic pairs of one setting, their questions gathered over the files of all languages."""
    whole: list[TopicPair] = []
    for language in languages:
        matched, holdout = (folder / file_name(family, language, setting) for family in ("qa_variants", "holdout_qa"))
        found = _read_matched(matched, setting, language)
        found = _with_holdout(found, _read_holdout(holdout, language), holdout)
        whole = _merged(whole, found, matched) if whole else found
    return whole


def _read_matched(path: Path, setting: str, language: str) -> list[TopicPair]:
    pairs = [_topic_pair(entry, setting, language, path) for entry in _entries(_load(path), "topic_pairs", str(path))]
    check_distinct("topic pair", (pair.id for pair in pairs), str(path))
    check_distinct("pair of units", (each.id for pair in pairs for each in pair.pairs), str(path))
    check_pools(pairs, str(path))
    return pairs


def _topic_pair(entry: dict[str, Any], setting: str, language: str, path: Path) -> TopicPair:
    id = _text(entry, "pair_id", f"{path}, a topic pair")
    where = f"{path}, {id}"
    return TopicPair(
        id,
        setting,
        source_of(id, setting, where),
        _text(entry, "topic_type", where),
        _text(entry, "target_topic", where),
        _text(entry, "neighbor_topic", where),
        tuple(_unit_pair(each, language, path, id) for each in _entries(entry, "knowledge_card_pairs", where)),
        (),
        _text(entry, "rationale", where) if "rationale" in entry else None,
    )


def _unit_pair(entry: dict[str, Any], language: str, path: Path, topic_pair: str) -> UnitPair:
    id = _text(entry, "knowledge_pair_id", f"{path}, a pair of units of {topic_pair}")
    where = f"{path}, {id}"
    units = {}
    for side, role in _SIDES.items():
        card = _card(_object(_object(entry, side, where), "card", where), "card_id", where)
        questions = _entries(entry, f"{side}_qa_variants", where)
        wrong = [qa.get("qa_id") for qa in questions if qa.get("topic_role") != side]
        if wrong:
            what = f"question {wrong[0]} of the {side} has another topic_role"
            raise KBookError(what, where, "Mend topic_role, or move the question to its own side")
        units[role] = _unit(card, questions, role, language, where)
    return UnitPair(id, _text(entry, "relation_type", where), units["forget"], units["retain"])


def _read_holdout(path: Path, language: str) -> list[tuple[str, Unit]]:
    """Holdout units with the id of the topic pair that each belongs to."""
    found = []
    for entry in _entries(_load(path), "holdout_cards", str(path)):
        card = _card(entry, "source_card_id", str(path))
        where = f"{path}, {card.id}"
        unit = _unit(card, _entries(entry, "qa_variants", where), "holdout", language, where)
        found.append((_text(entry, "source_pair_id", where), unit))
    check_distinct("holdout unit", (unit.card.id for _, unit in found), str(path))
    return found


def _with_holdout(pairs: list[TopicPair], holdout: list[tuple[str, Unit]], path: Path) -> list[TopicPair]:
    known = {pair.id for pair in pairs}
    for topic_pair, unit in holdout:
        if topic_pair not in known:
            what = f"unit {unit.card.id} belongs to the unknown topic pair {topic_pair}"
            raise KBookError(what, str(path), "Read the matched and the holdout file of one release")
    full = [replace(pair, holdout=tuple(unit for id, unit in holdout if id == pair.id)) for pair in pairs]
    check_pools(full, str(path))
    return full


def _unit(card: Card, questions: list[dict[str, Any]], role: str, language: str, where: str) -> Unit:
    qas = tuple(_qa(question, role, where) for question in questions)
    check_family(qas, role, language, where)
    check_distinct("question", (qa.id for qa in qas), where)
    return Unit(card, {language: qas})


def _card(entry: dict[str, Any], id_field: str, where: str) -> Card:
    id = _text(entry, id_field, where)
    fields = {ours: _text(entry, theirs, f"{where}, {id}") for ours, theirs in _CARD.items()}
    return Card(id, aliases=_texts(entry, "aliases", f"{where}, {id}"), **fields)


def _qa(entry: dict[str, Any], role: str, where: str) -> QA:
    id = _text(entry, "qa_id", where)
    where = f"{where}, {id}"
    for field, passed in _PASSED.items():
        if entry.get(field, passed) != passed:
            raise KBookError(f"its {field} is {entry[field]!r}", where, "Leave out questions that failed a check")
    layer, language = _text(entry, "variant_layer", where), _text(entry, "language", where)
    texts = _text(entry, "question", where), _text(entry, "expected_answer", where)
    return QA(id, role, layer, language, *texts, _texts(entry, "answer_aliases", where))


def _merged(whole: list[TopicPair], found: list[TopicPair], path: Path) -> list[TopicPair]:
    """Add the questions of one more language; the cards, in English, stay those of the first file."""
    by_id = {pair.id: pair for pair in found}
    _same("topic pairs", [pair.id for pair in whole], list(by_id), path)
    return [_merged_pair(pair, by_id[pair.id], path) for pair in whole]


def _merged_pair(pair: TopicPair, other: TopicPair, path: Path) -> TopicPair:
    matched, holdout = {each.id: each for each in other.pairs}, {unit.card.id: unit for unit in other.holdout}
    _same("pairs of units", [each.id for each in pair.pairs], list(matched), path)
    _same("holdout units", [unit.card.id for unit in pair.holdout], list(holdout), path)
    for one in pair.pairs:
        ours, theirs = ([each.forget.card.id, each.retain.card.id] for each in (one, matched[one.id]))
        _same(f"units of {one.id}", ours, theirs, path)
    return replace(
        pair,
        pairs=tuple(
            replace(
                one,
                forget=_joined(one.forget, matched[one.id].forget),
                retain=_joined(one.retain, matched[one.id].retain),
            )
            for one in pair.pairs
        ),
        holdout=tuple(_joined(unit, holdout[unit.card.id]) for unit in pair.holdout),
    )


def _joined(unit: Unit, other: Unit) -> Unit:
    return Unit(unit.card, {**unit.qas, **other.qas})


def _same(kind: str, ours: list[str], theirs: list[str], path: Path) -> None:
    for state, ids in (("lacks", set(ours) - set(theirs)), ("has", set(theirs) - set(ours))):
        if ids:
            what = f"it {state} {kind} that the first language {'has' if state == 'lacks' else 'lacks'}: {_few(ids)}"
            raise KBookError(what, str(path), "Read files of one release; every language has the same units")


def _check_counts(pairs: list[TopicPair], wanted: Counts, path: Path) -> None:
    by_source = Counter(pair.source or "" for pair in pairs for _ in pair.pairs)
    numbers = [
        ("topic pairs", len(pairs), wanted.topic_pairs),
        *((f"pairs of units for {source}", by_source[source], n) for source, n in wanted.by_source.items()),
        ("pairs of units", by_source.total(), wanted.unit_pairs),
        ("holdout units", sum(len(pair.holdout) for pair in pairs), wanted.holdout),
    ]
    for what, found, n in numbers:
        if found != n:
            remedy = "Fetch the release again, or say counts=None for one of another size"
            raise KBookError(f"{found} {what}, not {n}", str(path), remedy)


def _load(path: Path) -> dict[str, Any]:
    if not path.is_file():
        remedy = "Give the data folder of the release; each language has its files of matched and of holdout units"
        raise KBookError("a file of the release is missing", str(path), remedy)
    try:
        content = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise KBookError(f"is no JSON ({error})", str(path), "Fetch the file again") from None
    if not isinstance(content, dict):
        raise KBookError("is no JSON object", str(path), "Fetch the file again")
    return content


def _field(entry: dict[str, Any], name: str, where: str, fits: Callable[[Any], bool]) -> Any:
    if name not in entry or not fits(entry[name]):
        state = "is empty or of another type" if name in entry else "is missing"
        raise KBookError(f"field {name!r} {state}", where, "Mend the file, or fetch it again")
    return entry[name]


def _text(entry: dict[str, Any], name: str, where: str) -> str:
    return str(_field(entry, name, where, lambda value: isinstance(value, str) and bool(value.strip())))


def _texts(entry: dict[str, Any], name: str, where: str) -> tuple[str, ...]:
    if name not in entry:
        return ()
    return tuple(_field(entry, name, where, lambda value: _all_of(value, str)))


def _object(entry: dict[str, Any], name: str, where: str) -> dict[str, Any]:
    return dict(_field(entry, name, where, lambda value: isinstance(value, dict)))


def _entries(entry: dict[str, Any], name: str, where: str) -> list[dict[str, Any]]:
    return list(_field(entry, name, where, lambda value: _all_of(value, dict)))


def _all_of(value: Any, kind: type) -> bool:
    return isinstance(value, list) and all(isinstance(each, kind) for each in value)


def _few(ids: set[str], most: int = 5) -> str:
    more = f" and {len(ids) - most} more" if len(ids) > most else ""
    return ", ".join(sorted(ids)[:most]) + more


# ---- writing ----------------------------------------------------------------------------------------------------


def _matched(pairs: Sequence[TopicPair], language: str) -> dict[str, Any]:
    return {"topic_pairs": [_topic_pair_entry(pair, language) for pair in pairs]}


def _topic_pair_entry(pair: TopicPair, language: str) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "pair_id": pair.id,
        "topic_type": pair.domain,
        "target_topic": pair.target_topic,
        "neighbor_topic": pair.neighbour_topic,
        "knowledge_card_pairs": [dict(_unit_pair_entry(each, pair, language)) for each in pair.pairs],
    }
    return entry if pair.rationale is None else {**entry, "rationale": pair.rationale}


def _unit_pair_entry(each: UnitPair, pair: TopicPair, language: str) -> Iterator[tuple[str, Any]]:
    yield from (("knowledge_pair_id", each.id), ("pair_id", pair.id), ("relation_type", each.relation))
    sides = {"target": (each.forget, pair.target_topic), "neighbor": (each.retain, pair.neighbour_topic)}
    for side, (unit, topic) in sides.items():
        yield side, {"topic_name": topic, "card": {"card_id": unit.card.id, **_card_entry(unit.card)}}
        common = {"knowledge_pair_id": each.id, "card_id": unit.card.id, "topic_role": side}
        yield f"{side}_qa_variants", [_qa_entry(qa, common) for qa in unit.qas[language]]


def _holdout(pairs: Sequence[TopicPair], language: str) -> dict[str, Any]:
    units = [(pair, unit) for pair in pairs for unit in pair.holdout]
    return {
        "holdout_cards": [
            {
                "holdout_card_id": f"holdout__{number:06d}",
                "source_card_id": unit.card.id,
                "source_pair_id": pair.id,
                **_card_entry(unit.card),
                "qa_variants": [_qa_entry(qa, {"card_id": unit.card.id}) for qa in unit.qas[language]],
            }
            for number, (pair, unit) in enumerate(units, 1)
        ]
    }


def _card_entry(card: Card) -> dict[str, Any]:
    return {theirs: getattr(card, ours) for ours, theirs in _CARD.items()} | {"aliases": list(card.aliases)}


def _qa_entry(qa: QA, common: dict[str, str]) -> dict[str, Any]:
    return {
        "qa_id": qa.id,
        **common,
        "variant_layer": qa.layer,
        "language": qa.language,
        "question": qa.question,
        "expected_answer": qa.answer,
        "answer_aliases": list(qa.aliases),
    }
