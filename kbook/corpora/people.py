"""Invented people, their queries and their splits.

A person is a name, four attributes and a biography in one of eight wordings, as in the corpus of K-Bench
(protocol A, section 1). Forget people are ``pii-00000`` upwards, retain people follow; in each split the first
ids form the *fitting* pool (methods may learn from them), the rest the *evaluation* pool (only these are asked).

Names, addresses and employers are dealt to three *worlds* by a hash of their text: `corpus`, `distractor` and
`pretraining`. The people a base model was trained on, the distractors and the queried people are therefore
disjoint for every seed and every profile, without a list to compare.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from faker import Faker

from kbook.corpora.wordings import BIOGRAPHIES, QUESTIONS
from kbook.errors import KBookError
from kbook.keys import FIELDS
from kbook.text import folded

if TYPE_CHECKING:
    from kbook.profiles import CorpusSizes

_WORLD_SHARES = (("corpus", 0.375), ("distractor", 0.125), ("pretraining", 0.5))


@dataclass(frozen=True)
class Person:
    """One person. ``date_of_birth`` is ISO (YYYY-MM-DD); the other attributes are free text.

    *Missing*: an attribute that is not known is ""; only in a `Corpus` that does not ask for it.
    """

    id: str
    name: str
    date_of_birth: str
    address: str
    occupation: str
    employer: str
    biography: str

    def value(self, field: str) -> str:
        """The value of one of `kbook.keys.FIELDS`."""
        return str(getattr(self, field))

    @property
    def titled(self) -> str:
        """``Name: biography``, the form in which contexts, passages and record lists show a person."""
        return f"{self.name}: {self.biography}"


@dataclass(frozen=True)
class Query:
    """One question about one field of one person. ``wording`` 0 is canonical, others are paraphrases."""

    person: Person
    field: str
    wording: int = 0

    @property
    def id(self) -> str:
        """``pii-00016::address`` (with ``::w1`` for a paraphrase)."""
        return f"{self.person.id}::{self.field}" + (f"::w{self.wording}" if self.wording else "")

    @property
    def value(self) -> str:
        return self.person.value(self.field)

    @property
    def text(self) -> str:
        return QUESTIONS[self.field][self.wording].format(name=self.person.name)


@dataclass(frozen=True)
class Corpus:
    """People by role. Fitting and evaluation pools of a split never share an id (checked on construction).

    ``fields`` are those that members have and queries ask for: all, but in data of another origin.
    """

    forget_fit: tuple[Person, ...]
    forget_eval: tuple[Person, ...]
    retain_fit: tuple[Person, ...]
    retain_eval: tuple[Person, ...]
    holdout: tuple[Person, ...]
    distractors: tuple[Person, ...]
    fields: tuple[str, ...] = FIELDS

    def __post_init__(self) -> None:
        check_people(self)

    def pool(self, split: str, part: str) -> tuple[Person, ...]:
        """People of ``split`` (forget, retain) and ``part`` (fit, eval)."""
        pool: tuple[Person, ...] = getattr(self, f"{split}_{part}")
        return pool

    @property
    def forget(self) -> tuple[Person, ...]:
        return self.forget_fit + self.forget_eval

    @property
    def retain(self) -> tuple[Person, ...]:
        return self.retain_fit + self.retain_eval

    @property
    def members(self) -> tuple[Person, ...]:
        """Everyone whose facts are placed in a store: forget and retain."""
        return self.forget + self.retain

    def queries(self, split: str, part: str = "eval", wording: int = 0) -> list[Query]:
        """Every query of a pool, person by person, in the order of ``fields``."""
        return [Query(p, f, wording) for p in self.pool(split, part) for f in self.fields]


def world_of(text: str) -> str:
    """The world a name, address or employer belongs to, from a hash of the text alone."""
    point = int.from_bytes(hashlib.sha256(text.casefold().encode()).digest()[:4], "big") / 2**32
    for world, share in _WORLD_SHARES:
        if point < share:
            return world
        point -= share
    return _WORLD_SHARES[-1][0]


def write_biography(attributes: dict[str, str], wording: int) -> str:
    """A biography in one of the eight wordings."""
    return BIOGRAPHIES[wording].format(**attributes)


def occupations() -> list[str]:
    """Faker's list of job titles, sorted."""
    from faker.providers.job.en_US import Provider

    return sorted(set(Provider.jobs))


def make_corpus(sizes: CorpusSizes) -> Corpus:
    """Invent a corpus: same sizes and seed, same people.

    Occupations are dealt without repetition until the list is used up, so that a value seldom belongs to two
    people; distractors hold no value of a queried person, not even inside a longer word.

    Source: corpus of K-Bench (protocol A, section 1): sizes, fields, id ranges, fitting pools.
    """
    fake = Faker("en_US")
    fake.seed_instance(sizes.seed)
    names = _distinct(fake.name, "corpus")
    n_members = sizes.n_forget + sizes.n_retain
    jobs = _dealt(fake, [j for j in occupations() if _job_world(j) == "corpus"])
    people = [_person(fake, f"pii-{i:05d}", next(names), "corpus", next(jobs)) for i in range(n_members)]
    holdout = [_person(fake, f"out-{i:05d}", next(names), "corpus", next(jobs)) for i in range(sizes.n_holdout)]
    forget, retain = people[: sizes.n_forget], people[sizes.n_forget :]
    return Corpus(
        tuple(forget[: sizes.n_fit_forget]),
        tuple(forget[sizes.n_fit_forget :]),
        tuple(retain[: sizes.n_fit_retain]),
        tuple(retain[sizes.n_fit_retain :]),
        tuple(holdout),
        tuple(make_distractors(people, sizes.n_distractors, sizes.seed)),
    )


def make_distractors(people: list[Person], n: int, seed: int) -> list[Person]:
    """Invent ``n`` people whose biographies hold no attribute value of ``people`` (canonical substring).

    Raises:
        KBookError: there are so many people that no value is left over for distractors.
    """
    fake = Faker("en_US")
    fake.seed_instance(seed + 1_000_003)
    taken = {p.name for p in people}
    secrets = sorted({p.value(f).casefold() for p in people for f in FIELDS if p.value(f)})
    free = [j for j in occupations() if _job_world(j) == "distractor" and not any(s in j.casefold() for s in secrets)]
    jobs, names = _dealt(fake, free), _distinct(fake.name, "distractor", taken)
    found: list[Person] = []
    for _ in range(50 * n if free else 0):
        person = _person(fake, f"dis-{len(found):05d}", next(names), "distractor", next(jobs))
        text = person.titled.casefold()
        if not any(secret in text for secret in secrets):
            found.append(person)
        if len(found) == n:
            return found
    raise KBookError(
        f"no {n} distractors can be made that hold no value of the {len(people)} queried people",
        where="corpus",
        remedy="take fewer people: with thousands, every occupation on the list belongs to somebody",
    )


def named_person(id: str, name: str, *, seed: int, date_of_birth: str, wording: int = 0) -> Person:
    """A person of a given name and date of birth, for a worked example; the other values are drawn with the seed."""
    fake = Faker("en_US")
    fake.seed_instance(seed)
    drawn = _person(fake, id, name, "corpus", fake.random.choice(occupations()))
    facts = {"name": name, **{f: drawn.value(f) for f in FIELDS}, "date_of_birth": date_of_birth}
    return Person(id, biography=write_biography(facts, wording), **facts)


def _job_world(job: str) -> str:
    return "distractor" if world_of(job) != "corpus" and world_of(job + "#") != "corpus" else "corpus"


def _distinct(draw: Callable[[], str], world: str, taken: set[str] | None = None) -> Iterator[str]:
    seen = {t.casefold() for t in taken or ()}
    while True:
        text = draw().replace("\n", ", ")
        if world_of(text) == world and text.casefold() not in seen:
            seen.add(text.casefold())
            yield text


def _dealt(fake: Faker, values: list[str]) -> Iterator[str]:
    while True:
        yield from fake.random.sample(values, len(values))


def _person(fake: Faker, id: str, name: str, world: str, occupation: str) -> Person:
    attributes = {
        "name": name,
        "date_of_birth": _date(fake),
        "address": next(_distinct(fake.address, world)),
        "occupation": occupation,
        "employer": next(_distinct(fake.company, world)),
    }
    wording = fake.random.randrange(len(BIOGRAPHIES))
    return Person(id, biography=write_biography(attributes, wording), **attributes)


def _date(fake: Faker) -> str:
    # a fixed range of years: Faker's date_of_birth counts back from today, and people must not age
    return f"{fake.random.randint(1930, 2008)}-{fake.random.randint(1, 12):02d}-{fake.random.randint(1, 28):02d}"


def check_people(corpus: Corpus) -> None:
    """Refuse a corpus that would make a measurement meaningless.

    Raises:
        KBookError: a fitting id in an evaluation pool, an id or a name twice, or an empty attribute; the
            message names the offending ids.
    """
    for split in ("forget", "retain"):
        fit, evaluation = ({p.id for p in corpus.pool(split, part)} for part in ("fit", "eval"))
        if both := sorted(fit & evaluation):
            raise KBookError(
                f"{len(both)} id(s) are in both the fitting and the evaluation pool of {split}: {_few(both)}",
                where="corpus",
                remedy="give each id to one pool; a method must not be scored on people it was fitted on",
            )
    everyone = [*corpus.members, *corpus.holdout, *corpus.distractors]
    for what in ("id", "name"):
        counts = Counter(folded(getattr(p, what)) for p in everyone)
        if len(counts) < len(everyone):
            double = sorted({p.id for p in everyone if counts[folded(getattr(p, what))] > 1})
            raise KBookError(
                f"the same {what} stands for several people: {_few(double)}",
                where="corpus",
                remedy=f"make every {what} unique; two people of one name cannot be told apart by a question",
            )
    for person in everyone:
        if missing := [f for f in ("id", "name", "biography", *corpus.fields) if not getattr(person, f).strip()]:
            raise KBookError(
                f"person {person.id or '(no id)'} has an empty {', '.join(missing)}",
                where="corpus",
                remedy="fill the field or leave the person out; an empty value would match every text",
            )


def _few(ids: list[str], most: int = 8) -> str:
    more = f" and {len(ids) - most} more" if len(ids) > most else ""
    return ", ".join(ids[:most]) + more
