"""Reader of the official K-Bench corpus: the same schema, the same pipeline.

A folder with ``v1_facts.jsonl`` (one person a line: id, name, four fields, bio) and the id lists
``{forget,retain}_ids_{adapter,eval}.txt`` (one id a line; *adapter* is the fitting pool). Nothing of it is shipped.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kbook.corpora.people import Corpus, Person, make_corpus, make_distractors
from kbook.errors import KBookError
from kbook.files import read_jsonl
from kbook.keys import FIELDS
from kbook.profiles import CorpusSizes
from kbook.text import folded

FACTS = "v1_facts.jsonl"
_POOLS = (
    ("forget", "fit", "adapter"),
    ("forget", "eval", "eval"),
    ("retain", "fit", "adapter"),
    ("retain", "eval", "eval"),
)


def read_official(folder: Path | str, sizes: CorpusSizes) -> Corpus:
    """Read the official people, as many of each pool as ``sizes`` asks for, in the order of the id lists.

    Distractors and holdout people are generated: the official distractors are members of the retain split.

    Raises:
        KBookError: a missing file; a line that is not JSON, lacks a field or has an empty one (file and line are
            named); an id that is listed but has no facts, or is in two pools; a name twice; too few people.
    """
    folder = Path(folder)
    facts = _facts(folder / FACTS)
    listed = {(split, part): _ids(folder / f"{split}_ids_{name}.txt") for split, part, name in _POOLS}
    _check_lists(listed, facts, folder)
    pools = {key: _take(ids, _wanted(sizes, *key), facts, key) for key, ids in listed.items()}
    members = [p for pool in pools.values() for p in pool]
    by_name: dict[str, Any] = {f"{split}_{part}": tuple(people) for (split, part), people in pools.items()}
    return Corpus(
        **by_name,
        distractors=tuple(make_distractors(members, sizes.n_distractors, sizes.seed)),
        holdout=_strangers(members, sizes),
    )


def _strangers(members: list[Person], sizes: CorpusSizes) -> tuple[Person, ...]:
    """Generated holdout people who bear no member's name; twice as many are drawn as are wanted."""
    names = {folded(p.name) for p in members}
    drawn = make_corpus(sizes.model_copy(update={"n_holdout": 2 * sizes.n_holdout})).holdout
    return tuple(p for p in drawn if folded(p.name) not in names)[: sizes.n_holdout]


def _facts(path: Path) -> dict[str, Person]:
    if not path.is_file():
        raise KBookError("the file of people is missing", str(path), f"give the folder that holds {FACTS}")
    people: dict[str, Person] = {}
    for number, row in enumerate(read_jsonl(path), 1):
        where = f"{path}, record {number}"
        person = _person(row, where)
        if person.id in people:
            raise KBookError(f"id {person.id} stands for two people", where, "give each person an id of their own")
        people[person.id] = person
    return people


def _person(row: dict[str, Any], where: str) -> Person:
    fields = {"id": "id", "name": "name", **{f: f for f in FIELDS}, "biography": "bio"}
    for name in fields.values():
        if not isinstance(row.get(name), str) or not row[name].strip():
            state = "is empty or not text" if name in row else "is missing"
            what = f"field {name!r} of {row.get('id') or 'a person without id'} {state}"
            raise KBookError(what, where, "give every person an id, a name, four fields and a bio")
    return Person(**{ours: row[theirs] for ours, theirs in fields.items()})


def _ids(path: Path) -> list[str]:
    if not path.is_file():
        raise KBookError("an id list is missing", str(path), "give the four lists of forget and retain ids")
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise KBookError(f"the id list is not text ({error})", str(path), "give one id a line, in UTF-8") from None
    return [line.strip() for line in text.splitlines() if line.strip()]


def _check_lists(listed: dict[tuple[str, str], list[str]], facts: dict[str, Person], folder: Path) -> None:
    seen: dict[str, tuple[str, str]] = {}
    for pool, ids in listed.items():
        for id in ids:
            if id in seen:
                pools = " and ".join(" ".join(p) for p in (seen[id], pool))
                raise KBookError(f"id {id} is listed twice: {pools}", str(folder), "give each id to one pool")
            if id not in facts:
                raise KBookError(f"id {id} of {' '.join(pool)} has no facts", str(folder / FACTS), "add the person")
            seen[id] = pool


def _wanted(sizes: CorpusSizes, split: str, part: str) -> int:
    total, fit = (getattr(sizes, f"n_{prefix}{split}") for prefix in ("", "fit_"))
    return fit if part == "fit" else total - fit


def _take(ids: list[str], n: int, facts: dict[str, Person], pool: tuple[str, str]) -> list[Person]:
    if len(ids) < n:
        raise KBookError(
            f"the {' '.join(pool)} pool has {len(ids)} ids, {n} are wanted",
            "profile: corpus",
            "lower the sizes of the profile's corpus section",
        )
    return [facts[id] for id in ids[:n]]
