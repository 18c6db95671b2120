"""The files of an authored world, read and checked: one TOML a domain with its ten languages side by side.

``data/worlds/NAME/`` holds ``world.toml`` (title, licence, measures), ``names.toml`` (people, places,
organisations and own names), ``titles.toml`` (words from which titles are coined) and ``domains/DOMAIN.toml``
(templates, topics, pairs). A table of forms may say ``latin`` for German, English, Spanish, French and Swahili
at once. What is checked here is each file alone; `kbook.corpora.world_checks` looks at what they say together.
"""

from __future__ import annotations

import string
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator
from pydantic_core import ErrorDetails

from kbook.corpora.coinage import Forms, joined
from kbook.corpora.languages import LANGUAGES, language
from kbook.errors import KBookError

AnswerType = Literal["date", "number", "person", "place", "organisation", "name", "term"]
NAMED: tuple[AnswerType, ...] = ("person", "place", "organisation", "name")
"""Answer types whose values are keys of ``names.toml``."""
Value = date | int | float | str
N_WORDINGS = 4
"""One core question and three surface variants."""


def _spread(forms: Any) -> Any:
    """Let ``latin`` stand for all languages in Latin script that have no form of their own."""
    if not isinstance(forms, dict) or "latin" not in forms:
        return forms
    own = {code: form for code, form in forms.items() if code != "latin"}
    return {code: forms["latin"] for code in LANGUAGES if language(code).script == "Latin"} | own


def _complete(table: dict[str, Any]) -> dict[str, Any]:
    if missing := [code for code in LANGUAGES if code not in table]:
        raise ValueError(f"lacks {', '.join(missing)}")
    if unknown := [code for code in table if code not in LANGUAGES]:
        raise ValueError(f"has unknown languages {', '.join(unknown)}")
    return {code: table[code] for code in LANGUAGES}


def _written(forms: dict[str, str]) -> dict[str, str]:
    for code, form in forms.items():
        if form != " ".join(form.split()) or not form:
            raise ValueError(f"{code} is empty or has stray spaces")
        if not any(language(code).writes(c) for c in form):
            raise ValueError(f"{code} has no letter of its script ({language(code).script}): {form}")
        if any(c.isdecimal() for c in form):
            raise ValueError(f"{code} has a digit, which only answers may have: {form}")
    return forms


def _only_own_letters(forms: dict[str, str]) -> dict[str, str]:
    for code, form in forms.items():
        if strange := [c for c in form if c.isalpha() and c not in "ー々" and not language(code).writes(c)]:
            raise ValueError(f"{code} mixes scripts: {strange[0]} in {form}")
    return forms


def _fields(template: str) -> list[str]:
    return sorted(name for _, name, _, _ in string.Formatter().parse(template) if name is not None)


def _holds(*fields: str) -> AfterValidator:
    def check(forms: dict[str, str]) -> dict[str, str]:
        for code, form in forms.items():
            if _fields(form) != sorted(fields):
                raise ValueError(f"{code} must hold {', '.join(fields)} once each, and nothing else: {form}")
        return forms

    return AfterValidator(check)


def _wordings(table: dict[str, list[str]]) -> dict[str, tuple[str, ...]]:
    for code, questions in table.items():
        if len(questions) != N_WORDINGS:
            raise ValueError(f"{code} has {len(questions)} questions, not {N_WORDINGS}")
        if len({bare_words(question) for question in questions}) < N_WORDINGS:
            raise ValueError(f"{code} asks twice in the same words")
        for question in questions:
            _written({code: question})
            if _fields(question) != ["topic"]:
                raise ValueError(f"{code} must hold topic once, and nothing else: {question}")
    return {code: tuple(questions) for code, questions in table.items()}


def bare_words(text: str) -> str:
    """A text without punctuation, spaces and case: what is left when only those differ."""
    return "".join(c for c in text.casefold() if c.isalnum() or c in "{}")


_Table = Annotated[dict[str, str], BeforeValidator(_spread), AfterValidator(_complete), AfterValidator(_written)]
_Names = Annotated[_Table, AfterValidator(_only_own_letters)]
_Pattern = Annotated[dict[str, str], BeforeValidator(_spread), AfterValidator(_complete), _holds("n")]
_Questions = Annotated[dict[str, list[str]], AfterValidator(_complete), AfterValidator(_wordings)]


class _Checked(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


_File = TypeVar("_File", bound=_Checked)


class Offset(_Checked):
    """A date that follows another of the same topic by a number of days, both limits included."""

    relation: str
    days: tuple[int, int]


class Relation(_Checked):
    """A relation of a domain: what is asked, how, and what an answer is like.

    Args:
        slot: the semantic slot, in English.
        answer: the type of the answer.
        measure: what a number counts: a CLDR unit, or a measure of ``world.toml``.
        range: smallest and largest number, or first and last day; authored values lie within, coined ones are
            drawn from it.
        step: coined numbers are multiples of it.
        after: for a date, what it follows; instead of a range.
        terms: for a term, the list of the domain it is taken from.
        statement: the fact as a sentence, with ``{topic}`` and ``{answer}``.
        questions: the core question and three surface variants, with ``{topic}``.
    """

    slot: str
    answer: AnswerType
    measure: str = ""
    range: tuple[int, int] | tuple[float, float] | tuple[date, date] | None = None
    step: int | float = 1
    after: Offset | None = None
    terms: str = ""
    statement: Annotated[_Table, _holds("topic", "answer")]
    questions: _Questions

    @model_validator(mode="after")
    def _says_what_it_draws(self) -> Relation:
        needs = {"number": bool(self.measure and self.range), "term": bool(self.terms)}
        needs["date"] = (self.range is None) != (self.after is None)
        if not needs.get(self.answer, True):
            raise ValueError("a number needs measure and range, a term its list of terms, a date either range or after")
        return self


class TopicEntry(_Checked):
    """A topic: its name in ten languages and its value for each relation of the domain."""

    name: _Names
    facts: dict[str, Value]


class PairEntry(_Checked):
    """A target and its neighbour, by key; a conditioned pair also has a source language, a category and evidence."""

    target: str
    neighbour: str
    source: str = ""
    category: Literal["", "legal", "cultural", "public safety", "diplomatic", "public discourse"] = ""
    evidence: str = ""

    @model_validator(mode="after")
    def _has_all_or_none(self) -> PairEntry:
        if len({bool(self.source), bool(self.category), bool(self.evidence)}) > 1:
            raise ValueError("a conditioned pair needs source, category and evidence")
        if self.source and self.source not in LANGUAGES:
            raise ValueError(f"has an unknown source language {self.source}")
        return self


class Domain(_Checked):
    """One domain: how its topics are named and introduced, its relations, topics and pairs."""

    title: str
    topics_are: Literal["name", "place", "title"]
    lead: Annotated[_Table, _holds("topic")]
    terms: dict[str, dict[str, _Names]] = Field(default_factory=dict)
    relations: dict[str, Relation]
    topics: dict[str, TopicEntry]
    pairs: list[PairEntry]


class _Header(_Checked):
    title: str
    licence: str
    measures: dict[str, _Pattern]


class _NamesFile(_Checked):
    given: dict[str, _Names]
    family: dict[str, _Names]
    place: dict[str, _Names]
    organisation: dict[str, _Names]
    name: dict[str, _Names]

    @model_validator(mode="before")
    @classmethod
    def _key_is_the_latin_form(cls, content: dict[str, Any]) -> dict[str, Any]:
        return {kind: {key: {"latin": key, **forms} for key, forms in names.items()} for kind, names in content.items()}


class Titles(_Checked):
    """Words from which titles are coined, and how two of them are joined (``{first}``, ``{second}``)."""

    both: Annotated[dict[str, str], AfterValidator(_complete), _holds("first", "second")]
    words: dict[str, _Names]


@dataclass(frozen=True)
class WorldFiles:
    """All files of one world. ``names`` holds the forms of each value by answer type and key."""

    name: str
    title: str
    licence: str
    measures: Mapping[str, Forms]
    names: Mapping[str, Mapping[str, Forms]]
    titles: Titles
    domains: Mapping[str, Domain]


def read_world_files(folder: Path) -> WorldFiles:
    """Read and check each file of a world.

    Raises:
        KBookError: a file is missing or no TOML, or has a missing language or template, a wrong placeholder, an
            empty form, a form in another script, two equal wordings, or a value of an unknown person; file and
            field are named.
    """
    header = _read(folder / "world.toml", _Header)
    names = _read(folder / "names.toml", _NamesFile)
    paths = sorted((folder / "domains").glob("*.toml"))
    domains = {path.stem: _read(path, Domain) for path in paths}
    forms: dict[str, Mapping[str, Forms]] = {kind: getattr(names, kind) for kind in NAMED if kind != "person"}
    forms["person"] = {full: _person(full, names, folder) for full in _people(domains.values())}
    titles = _read(folder / "titles.toml", Titles)
    return WorldFiles(folder.name, header.title, header.licence, header.measures, forms, titles, domains)


def _people(domains: Iterable[Domain]) -> list[str]:
    values = {
        str(topic.facts[key])
        for domain in domains
        for topic in domain.topics.values()
        for key, relation in domain.relations.items()
        if relation.answer == "person" and key in topic.facts
    }
    return sorted(values)


def _person(full: str, names: _NamesFile, folder: Path) -> Forms:
    given, _, family = full.partition(" ")
    if given not in names.given or family not in names.family:
        remedy = "add the given name and the family name to [given] and [family]"
        raise KBookError(f"unknown person {full!r}", str(folder / "names.toml"), remedy)
    return joined([names.given[given], names.family[family]])


def _read(path: Path, schema: type[_File]) -> _File:
    where = str(path)
    if not path.is_file():
        raise KBookError("a file of the world is missing", where, "a world needs world, names, titles and domains")
    try:
        return schema.model_validate(tomllib.loads(path.read_text(encoding="utf-8")))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise KBookError(f"is not TOML ({error})", where, "mend the file") from None
    except ValidationError as error:
        raise KBookError("; ".join(map(_problem, error.errors()[:5])), where, "mend these fields") from None


def _problem(detail: ErrorDetails) -> str:
    name = ".".join(str(part) for part in detail["loc"])
    return f"{name} {detail['msg'].removeprefix('Value error, ')}"
