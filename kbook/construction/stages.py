"""The stages of the construction, each from the rows of the one before: pure but for what the provider says.

A row says what was looked at (``item``), in which ``stage``, ``setting`` and ``topic_pair``, why it was refused
(``reason``, "" if it was kept), and carries what the next stage needs. Where something is tried again, each attempt
is a row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace
from typing import Any, TypeVar

from pydantic import Field, field_validator

from kbook.construction.candidates import Candidate, judge_candidates
from kbook.construction.families import why_not_family
from kbook.construction.judged import Judged, kept
from kbook.construction.matching import Match, MatchRule, match_units
from kbook.construction.providers import NoUsableReply, Provider, Wording
from kbook.construction.selection import sample_holdout, select_pairs
from kbook.construction.topics import Subject
from kbook.construction.translation import Attempt, translate
from kbook.corpora.languages import LANGUAGES
from kbook.corpora.units import FAMILY, QA, SETTINGS, Card, TopicPair, Unit, UnitPair
from kbook.profiles import Count, Section, Share

Row = dict[str, Any]
T = TypeVar("T")
R = TypeVar("R")


class Settings(Section):
    """Sizes and limits of the construction.

    Args:
        candidates: units extracted from one article, at most.
        quota: matched pairs wanted for each topic pair.
        holdout: holdout units for each matched pair.
        attempts: how often questions are written, or translated, before they are given up.
        languages: of the release; English must be among them.
        match: limits of the matcher.
    """

    candidates: Count = 30
    quota: Count = 10
    holdout: Share = 1.0
    attempts: Count = 3
    languages: tuple[str, ...] = LANGUAGES
    match: MatchRule = Field(default_factory=MatchRule)

    @field_validator("languages")
    @classmethod
    def _known_and_english(cls, languages: tuple[str, ...]) -> tuple[str, ...]:
        if "en" not in languages or not set(languages) <= set(LANGUAGES):
            raise ValueError(f"must hold en and be among {', '.join(LANGUAGES)}")
        return languages


def candidate_rows(subject: Subject, provider: Provider, settings: Settings) -> list[Row]:
    """Extract and check the units of both topics of a pair."""
    try:
        relations = provider.shared_relations(subject.target, subject.neighbour)
    except NoUsableReply:
        return [_row("candidates", subject.setting, subject.id, subject.id, "no usable reply")]
    rows = []
    for side, topic in subject.sides.items():
        try:
            found = provider.extract(topic, relations, settings.candidates)
        except NoUsableReply:
            rows.append(_row("candidates", subject.setting, subject.id, topic.id, "no usable reply", side=side))
            continue
        named = [_named(candidate, f"{subject.id}__{side}") for candidate in found[: settings.candidates]]
        rows += [_candidate_row(subject, side, each) for each in judge_candidates(named, topic.article, relations)]
    return rows


def pair_rows(candidates: Iterable[Row], settings: Settings, seed: int) -> list[Row]:
    """Match, choose and draw holdout units, setting by setting; ``stage`` is ``pairs`` or ``holdout``."""
    valid = [row for row in candidates if not row["reason"]]
    return [
        row
        for setting in SETTINGS
        for row in _pairs_of([row for row in valid if row["setting"] == setting], setting, settings, seed)
    ]


def family_rows(chosen: Iterable[Row], provider: Provider, settings: Settings) -> list[Row]:
    """Write English questions about the chosen pairs and holdout units, each family until it passes its checks."""
    made = _each(provider, lambda row: _written(row, provider, settings), chosen)
    return [row for rows in made for row in rows]


def translation_rows(families: Sequence[Row], provider: Provider, settings: Settings) -> list[Row]:
    """Translate the questions of families that were kept into every language, each until it passes its checks."""
    parts = [(row, language) for language in settings.languages if language != "en" for row in families]
    made = _each(provider, lambda part: _translated(*part, provider, settings), parts)
    return [row for rows in made for row in rows]


def ready(families: Iterable[Row]) -> list[Row]:
    """The families that were kept, without those whose partner was given up."""
    good = [row for row in families if not row["reason"]]
    roles: dict[str, set[str]] = {}
    for row in good:
        roles.setdefault(row["unit_of"], set()).add(row["role"])
    return [row for row in good if roles[row["unit_of"]] in ({"forget", "retain"}, {"holdout"})]


def assembled(
    subjects: Iterable[Subject], families: Iterable[Row], translations: Iterable[Row], settings: Settings
) -> tuple[tuple[TopicPair, ...], list[Row]]:
    """Put together what passed every check; a unit that lacks a question in some language is left out.

    Returns:
        the topic pairs that have a pair of units, and a row for each pair and holdout unit.
    """
    families, said = list(families), _by_question(translations)
    units = {(row["unit_of"], row["role"]): _unit(row, said, settings) for row in ready(families)}
    names = dict.fromkeys((row["setting"], row["topic_pair"], row["unit_of"], row["kind"]) for row in families)
    reasons = {name: _why_incomplete(units, name, kind, len(settings.languages)) for *_, name, kind in names}
    alive = {topic_pair for _, topic_pair, name, kind in names if kind == "pair" and not reasons[name]}
    rows = []
    for setting, topic_pair, name, kind in names:
        reason = reasons[name] or ("" if topic_pair in alive else "no pair of its topics is left")
        rows.append(_row("release", setting, topic_pair, name, reason, kind=kind))
    whole = {row["item"] for row in rows if not row["reason"]}
    pairs = [_topic_pair(subject, families, units, whole) for subject in subjects]
    return tuple(pair for pair in pairs if pair.pairs), rows


# ---- stage 2 ----------------------------------------------------------------------------------------------------


def _pairs_of(valid: list[Row], setting: str, settings: Settings, seed: int) -> list[Row]:
    names = list(dict.fromkeys(row["topic_pair"] for row in valid))
    judged = {name: _matched([row for row in valid if row["topic_pair"] == name], settings) for name in names}
    chosen = select_pairs({name: kept(found) for name, found in judged.items()}, settings.quota, settings.match.strong)
    rows = []
    for name in names:
        refused = [each for each in judged[name] if not each.kept]
        rows += [_match_row(each, setting, name, place) for place, each in enumerate((*chosen[name], *refused), 1)]
    used = {card["id"] for row in rows if not row["reason"] for card in (row["target"], row["neighbour"])}
    left = {row["item"]: row for row in valid if row["item"] not in used}
    n = round(settings.holdout * sum(not row["reason"] for row in rows))
    drawn = sample_holdout([_candidate(row) for row in left.values()], n, seed)
    return rows + [_holdout_row(each, left[each.item.card.id]) for each in drawn]


def _matched(rows: list[Row], settings: Settings) -> tuple[Judged[Match], ...]:
    targets, neighbours = ([_candidate(row) for row in rows if row["side"] == side] for side in ("target", "neighbour"))
    return match_units(targets, neighbours, settings.match)


def _match_row(judged: Judged[Match], setting: str, topic_pair: str, place: int) -> Row:
    match = judged.item
    parts = {name: round(getattr(match, name), 4) for name in ("agreement", "slots", "support", "priority", "score")}
    cards = {"target": match.target, "neighbour": match.neighbour}
    shown = {side: asdict(card) if judged.kept else {"id": card.id} for side, card in cards.items()}
    item = f"{topic_pair}__{match.relation}__{place:03d}"
    more: dict[str, Any] = {"relation": match.relation, "kind": "pair", **parts, **shown}
    return _row("pairs", setting, topic_pair, item, judged.reason, **more)


def _holdout_row(judged: Judged[Candidate], row: Row) -> Row:
    more: dict[str, Any] = {"card": row["card"], "relation": row["card"]["relation"], "kind": "holdout"}
    return _row("holdout", row["setting"], row["topic_pair"], row["item"], judged.reason, **more)


# ---- stages 3 and 4 ---------------------------------------------------------------------------------------------


def _written(row: Row, provider: Provider, settings: Settings) -> list[Row]:
    """All attempts at the families of one chosen pair or holdout unit; what passed is not written again."""
    if row["kind"] == "pair":
        cards = {"forget": _card(row["target"]), "retain": _card(row["neighbour"])}
    else:
        cards = {"holdout": _card(row["card"])}
    n = len(FAMILY) if row["kind"] == "pair" else 1
    rows: list[Row] = []
    waiting = list(cards)
    for attempt in range(1, settings.attempts + 1):
        if waiting:
            tried = _attempt(row, cards, waiting, n, provider, attempt)
            waiting = [each["role"] for each in tried if each["reason"]]
            rows += tried
    return rows


def _attempt(
    row: Row, cards: Mapping[str, Card], waiting: Sequence[str], n: int, provider: Provider, attempt: int
) -> list[Row]:
    try:
        written = dict(zip(cards, provider.write_families(list(cards.values()), n, attempt), strict=True))
    except NoUsableReply:
        written = {role: () for role in cards}
    rows = []
    for role in waiting:
        family, card = written[role], cards[role]
        partner = next((other for name, other in cards.items() if name != role), None)
        reason = why_not_family(card, family, n, partner) or _reviewed(card, family, role, provider)
        more: dict[str, Any] = {name: row[name] for name in ("kind", "relation")}
        more |= {"attempt": attempt, "role": role, "unit_of": row["item"], "card": asdict(card)}
        more["fault"] = ", ".join(sorted({wording.fault for wording in family if wording.fault}))
        more["family"] = [vars(wording) | {"fault": ""} for wording in family]
        rows.append(_row("questions", row["setting"], row["topic_pair"], f"{row['item']}__{role}", reason, **more))
    return rows


def _reviewed(card: Card, family: Sequence[Wording], role: str, provider: Provider) -> str:
    for layer, wording in zip(FAMILY, family, strict=False):
        try:
            finding = provider.review(card, _english("", role, layer, wording), replace(wording, fault=""), "en")
        except NoUsableReply:
            return "no usable reply"
        if finding:
            return f"review: {finding}"
    return ""


def _translated(row: Row, language: str, provider: Provider, settings: Settings) -> list[Row]:
    card, taken, rows = _card(row["card"]), list[str](), []
    for qa in _family(row):
        tried = translate(provider, card, qa, language, attempts=settings.attempts, taken=taken)
        taken += [attempt.wording.question for attempt in tried if not attempt.reason]
        for attempt in tried:
            rows.append(_attempt_row(attempt, qa, language, row))
    return rows


def _attempt_row(attempt: Attempt, qa: QA, language: str, row: Row) -> Row:
    more: dict[str, Any] = {"attempt": attempt.number, "language": language, "role": row["role"], "layer": qa.layer}
    more |= vars(attempt.wording) | {"back": dict(vars(attempt.back)) if attempt.back else None}
    return _row("translations", row["setting"], row["topic_pair"], qa.id, attempt.reason, **more)


# ---- stage 5 ----------------------------------------------------------------------------------------------------


def _by_question(translations: Iterable[Row]) -> dict[tuple[str, str], Row]:
    return {(row["item"], row["language"]): row for row in translations if not row["reason"]}


def _unit(row: Row, said: Mapping[tuple[str, str], Row], settings: Settings) -> Unit:
    """A unit with its questions in every language in which all of them passed."""
    english = _family(row)
    qas = {"en": english}
    for language in settings.languages:
        found = [said.get((qa.id, language)) for qa in english]
        if all(found):
            both = zip(english, found, strict=True)
            qas[language] = tuple(_other_language(qa, each, language) for qa, each in both if each)
    return Unit(_card(row["card"]), {language: qas[language] for language in settings.languages if language in qas})


def _other_language(qa: QA, row: Row, language: str) -> QA:
    id = f"{qa.id.removesuffix(f'__{qa.language}')}__{language}"
    return replace(
        qa, id=id, language=language, question=row["question"], answer=row["answer"], aliases=tuple(row["aliases"])
    )


def _why_incomplete(units: Mapping[tuple[str, str], Unit], name: str, kind: str, n_languages: int) -> str:
    """Why a pair or holdout unit lacks a question; "" if it has them all."""
    found = [units.get((name, role)) for role in (("forget", "retain") if kind == "pair" else ("holdout",))]
    if None in found:
        return "its questions were given up"
    return "" if all(len(unit.qas) == n_languages for unit in found if unit) else "a translation was given up"


def _topic_pair(
    subject: Subject, families: Sequence[Row], units: Mapping[tuple[str, str], Unit], whole: set[str]
) -> TopicPair:
    own = [row for row in families if row["topic_pair"] == subject.id and row["unit_of"] in whole]
    names = {kind: dict.fromkeys(row["unit_of"] for row in own if row["kind"] == kind) for kind in ("pair", "holdout")}
    relations = {row["unit_of"]: row["relation"] for row in own}
    pairs = (UnitPair(n, relations[n], units[n, "forget"], units[n, "retain"]) for n in names["pair"])
    holdout = tuple(units[name, "holdout"] for name in names["holdout"])
    what = (subject.setting, subject.source, subject.domain, subject.target.name, subject.neighbour.name)
    return TopicPair(subject.id, *what, tuple(pairs), holdout, subject.rationale)


# ---- rows -------------------------------------------------------------------------------------------------------


def _row(stage: str, setting: str, topic_pair: str, item: str, reason: str, **more: Any) -> Row:
    head = {"stage": stage, "setting": setting, "topic_pair": topic_pair, "item": item, "reason": reason}
    return {**head, "flag": "", "fault": "", **more}


def _named(candidate: Candidate, stem: str) -> Candidate:
    return replace(candidate, card=replace(candidate.card, id=f"{stem}__{candidate.priority:02d}"))


def _candidate_row(subject: Subject, side: str, judged: Judged[Candidate]) -> Row:
    candidate = judged.item
    place = (subject.setting, subject.id, candidate.card.id)
    more: dict[str, Any] = {"side": side, "priority": candidate.priority, "card": asdict(candidate.card)}
    return _row("candidates", *place, judged.reason, fault=candidate.fault, flag=judged.flag, **more)


def _candidate(row: Row) -> Candidate:
    return Candidate(_card(row["card"]), row["priority"])


def _card(fields: Mapping[str, Any]) -> Card:
    return Card(**{**fields, "aliases": tuple(fields["aliases"])})


def _family(row: Row) -> tuple[QA, ...]:
    """The English questions of a family row."""
    both = enumerate(zip(FAMILY, row["family"], strict=False))
    return tuple(
        _english(f"{row['item']}__{layer}-{place}__en", row["role"], layer, Wording(**text))
        for place, (layer, text) in both
    )


def _english(id: str, role: str, layer: str, wording: Wording) -> QA:
    return QA(id, role, layer, "en", wording.question, wording.answer, tuple(wording.aliases))


def _each(provider: Provider, work: Callable[[T], R], things: Iterable[T]) -> list[R]:
    """Do something with each thing, as many at once as the provider allows; the results are in order."""
    if provider.workers == 1:
        return [work(thing) for thing in things]
    with ThreadPoolExecutor(provider.workers) as pool:
        return list(pool.map(work, things))
