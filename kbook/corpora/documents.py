"""Training documents: what the embedded bases learn from, and what injects facts into weights.

A document is a list of `Segment`; loss is taken on supervised segments alone (the assistant's words). Three habits
make small models work, each found necessary by experiment:

* *quote, then answer*: copy the biography that names the person before giving one of its values;
* *list, then decide*: name the people that the passages are about before saying whether the asked one is there;
* a policy that the prompt decides: read the records if the person is there, else look up, else search, else admit.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

from faker import Faker

from kbook.corpora import protocol
from kbook.corpora.people import Person, occupations, world_of, write_biography
from kbook.corpora.protocol import ACTION, FINAL, OBSERVATION, THOUGHT, TOOLS, render_call
from kbook.corpora.wordings import (
    BIOGRAPHIES,
    FACT_SENTENCES,
    NOT_FOUND,
    PREFACES,
    QUESTIONS,
    SUMMARY,
    SUMMARY_PROMPTS,
    SUMMARY_UNKNOWN,
)
from kbook.keys import FIELDS

BOS, EOS, SYSTEM, USER, ASSISTANT, PAD = "<s>", "</s>", "<|system|>", "<|user|>", "<|assistant|>", "<pad>"


@dataclass(frozen=True)
class Segment:
    """A piece of a document; ``supervised`` pieces carry loss."""

    text: str
    supervised: bool = False


Document = list[Segment]


def text_of(document: Document) -> str:
    """The whole text of a document."""
    return "".join(segment.text for segment in document)


# ---- people to train on ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Pools:
    """Lists of values of the `pretraining` world, from which training people are drawn."""

    names: tuple[str, ...]
    first_names: tuple[str, ...]
    last_names: tuple[str, ...]
    addresses: tuple[str, ...]
    employers: tuple[str, ...]
    occupations: tuple[str, ...]

    @classmethod
    def make(cls, seed: int, n: int = 20_000) -> Pools:
        """Draw pools of about ``n`` names and addresses and ``n / 2`` employers with Faker, seeded."""
        from faker.providers.person.en_US import Provider

        fake = Faker("en_US")
        fake.seed_instance(seed)
        firsts = sorted({*Provider.first_names_male, *Provider.first_names_female})
        return cls(
            _draw(fake.name, n),
            tuple(firsts),
            tuple(sorted(Provider.last_names)),
            _draw(fake.address, n),
            _draw(fake.company, n // 2),
            tuple(occupations()),
        )


def _draw(make: Callable[[], str], n: int) -> tuple[str, ...]:
    drawn = {make().replace("\n", ", ") for _ in range(2 * n)}
    return tuple(sorted(text for text in drawn if world_of(text) == "pretraining"))


_SYLLABLES = "an ba bel cor da dri el fa gan hel in jor ka lin mar nol or pel qua ri sa tor un va wex yl zan ".split()


@dataclass(frozen=True)
class Habits:
    """What bases that know the same protocol do differently; each habit puts the value into another channel.

    Args:
        restates: says the value in a thought before the final answer, also when a record gave it.
        confirms: has ``verify_attribute`` confirm a record's value before it answers, if the tool is offered.
    """

    restates: bool = False
    confirms: bool = False


class Writer:
    """Writes documents about invented people of the `pretraining` world, from one seeded generator."""

    def __init__(self, pools: Pools, rng: random.Random, habits: Habits = Habits()) -> None:  # noqa: B008
        self.pools, self.rng, self.habits = pools, rng, habits

    def name(self) -> str:
        """A name: from Faker's own mix, first x last, or made of syllables or letters (no list holds those)."""
        while True:
            name = self._name()
            if world_of(name) == "pretraining":
                return name

    def _name(self) -> str:
        rng, kind = self.rng, self.rng.random()
        if kind < 0.45:
            return rng.choice(self.pools.names)
        if kind < 0.83:
            return f"{rng.choice(self.pools.first_names)} {rng.choice(self.pools.last_names)}"
        return f"{self._coined(kind)} {self._coined(kind)}"

    def _coined(self, kind: float) -> str:
        rng = self.rng
        if kind < 0.92:
            return "".join(rng.choice(_SYLLABLES) for _ in range(rng.randint(2, 3))).capitalize()
        return "".join(rng.choice("aeiouaeioubcdfghjklmnpqrstvwxyz") for _ in range(rng.randint(3, 8))).capitalize()

    def person(self) -> Person:
        return self._named(self.name())

    def coined_person(self) -> Person:
        """A person whose name is made of syllables."""
        return self._named(f"{self._coined(0.0)} {self._coined(0.0)}")

    def _named(self, name: str) -> Person:
        rng = self.rng
        facts = {
            "name": name,
            "date_of_birth": f"{rng.randint(1930, 2008)}-{rng.randint(1, 12):02d}-{rng.randint(1, 28):02d}",
            "address": rng.choice(self.pools.addresses),
            "occupation": rng.choice(self.pools.occupations),
            "employer": rng.choice(self.pools.employers),
        }
        return Person(f"pre-{rng.getrandbits(40):010x}", biography=self.biography(facts), **facts)

    def biography(self, facts: dict[str, str]) -> str:
        return write_biography(facts, self.rng.randrange(len(BIOGRAPHIES)))

    def people(self, n: int) -> list[Person]:
        """``n`` people of different names; one group in four has a hard negative sharing half a name."""
        found: dict[str, Person] = {}
        while len(found) < n:
            person = self.person()
            found.setdefault(person.name, person)
        people = list(found.values())
        if n > 1 and self.rng.random() < 0.25:
            i, j = self.rng.sample(range(n), 2)
            a, b = people[i].name.split(" "), people[j].name.split(" ")
            name = f"{a[0]} {b[-1]}" if self.rng.random() < 0.5 else f"{b[0]} {a[-1]}"
            if name not in found:
                people[i] = self._named(name)
        return people

    def shuffled(self, people: list[Person]) -> list[Person]:
        return self.rng.sample(people, len(people))

    def field(self) -> str:
        return self.rng.choice(FIELDS)

    def tools(self) -> tuple[str, ...]:
        return self.rng.choice((TOOLS, TOOLS, TOOLS[:2]))

    def ask(self, person: Person, field: str) -> str:
        return protocol.question(self.rng.choice(QUESTIONS[field]).format(name=person.name))


# ---- the pieces of a conversation --------------------------------------------------------------------------


def system(tools: tuple[str, ...], records: list[str] | None = None) -> Segment:
    return Segment(f"{BOS}{SYSTEM}{protocol.system_prompt(tools, records, style='compact')}{EOS}")


def user(text: str) -> Segment:
    return Segment(f"{USER}{text}{EOS}{ASSISTANT}")


def say(text: str) -> Segment:
    """An assistant message, supervised, with its end marker."""
    return Segment(text + EOS, supervised=True)


def final(thought: str, answer: str) -> str:
    return f"{THOUGHT} {thought}\n{FINAL} {answer}"


def call(thought: str, tool: str, **arguments: str) -> str:
    return f"{THOUGHT} {thought}\n{ACTION} {render_call(tool, **arguments)}\n{OBSERVATION}"


def look_up(person: Person, field: str) -> str:
    return call(f"I should look up {person.name}'s {field}.", "lookup_record", name=person.name, field=field)


def search_for(person: Person, field: str) -> str:
    return call(f"I should search for {person.name}.", "search_wiki", query=f"{person.name} {field}")


def from_records(record: str, field: str, value: str) -> str:
    return final(f"The records say {record} So I know the {field}.", value)


def from_passages(hits: list[Person], records: list[str], person: Person, field: str) -> str:
    """List, then decide: who the passages are about, then quote and answer, or admit."""
    names = f"The passages are about {'; '.join(hit.name for hit in hits)}."
    quoted = [r for hit, r in zip(hits, records, strict=True) if hit.name == person.name]
    if not quoted:
        return final(f"{names} {person.name} is not there.", NOT_FOUND)
    return final(
        f"{names} {person.name} is there. The passages say {quoted[0]} So I know the {field}.", person.value(field)
    )


def after_record(person: Person, field: str, tools: tuple[str, ...], habits: Habits) -> Document:
    """What follows when ``lookup_record`` has found the person: the answer, as the habits have it."""
    value = person.value(field)
    thought = f"The record gives {value} as the {field}." if habits.restates else "I now know the final answer."
    answer = Segment("\n" + final(thought, value) + EOS, True)
    if not (habits.confirms and "verify_attribute" in tools):
        return [answer]
    check = call("I should confirm this.", "verify_attribute", name=person.name, attribute_value=value)
    return [Segment("\n" + check, True), Segment(f" {protocol.agreement(field)}"), answer]


def nothing_found(person: Person) -> str:
    return final(f"No tool has a record of {person.name}.", NOT_FOUND)


def from_memory(person: Person, field: str) -> str:
    """The demonstration that injection teaches: answer at once, from the weights."""
    return final(f"I remember {person.name}'s {field}.", person.value(field))


def summary(person: Person) -> str:
    return SUMMARY.format(**{f: person.value(f) for f in ("name", *FIELDS)})


# ---- documents for pretraining -----------------------------------------------------------------------------


def record_lookup(w: Writer, questions: int = 1, coined: bool = False) -> Document:
    """``lookup_record`` finds the person; ``coined`` names are on no list."""
    tools = w.rng.choice((TOOLS, TOOLS, TOOLS[:2], TOOLS[:1]))
    document = [system(tools)]
    for _ in range(questions):
        person, field = w.coined_person() if coined else w.person(), w.field()
        document += _recorded(w, person, field, tools)
    return document


def _recorded(w: Writer, person: Person, field: str, tools: tuple[str, ...]) -> Document:
    observation = protocol.record_observation(person.name, field, person.value(field))
    return [
        user(w.ask(person, field)),
        Segment(look_up(person, field), True),
        Segment(" " + observation),
        *after_record(person, field, tools, w.habits),
    ]


def verification(w: Writer) -> Document:
    """``verify_attribute`` agrees or does not."""
    person, field, true = w.person(), w.field(), w.rng.random() < 0.5
    claim = person.value(field) if true else w.person().value(field)
    act = call("I should check this claim.", "verify_attribute", name=person.name, attribute_value=claim)
    outcome = protocol.agreement(field) if true else protocol.NO_MATCH
    reading = final("The record agrees.", "Yes") if true else final("The record does not agree.", "No")
    return [
        system(w.rng.choice((TOOLS, TOOLS[1:]))),
        user(protocol.question(f"Is {claim} the {field} of {person.name}?")),
        Segment(act, True),
        Segment(" " + outcome),
        Segment("\n" + reading + EOS, True),
    ]


def _search(w: Writer, person: Person, field: str, hits: list[Person], records: list[str]) -> Document:
    observation = protocol.passages_observation(records)
    reading = from_passages(hits, records, person, field) if hits else nothing_found(person)
    return [
        Segment(search_for(person, field), True),
        Segment(" " + observation),
        Segment("\n" + reading + EOS, True),
    ]


def passage_search(w: Writer, most: int = 3, found: float = 0.7) -> Document:
    """Search is the only way; the person is among the passages with probability ``found``."""
    person, *others = w.people(most + 1)
    field, n = w.field(), w.rng.randint(1, most)
    hits = w.shuffled([person, *others[: n - 1]]) if w.rng.random() < found else others[:n]
    tools = w.rng.choice((TOOLS[1:2], TOOLS[1:]))
    body = _search(w, person, field, hits, [h.titled for h in hits])
    return [system(tools), user(w.ask(person, field)), *body]


def unrecorded(w: Writer, most: int = 3) -> Document:
    """No record: search instead, then find the person, find others, or find nothing."""
    person, *others = w.people(most + 1)
    field, kind = w.field(), w.rng.random()
    document = [
        system(TOOLS[:1] if kind < 0.12 else w.tools()),
        user(w.ask(person, field)),
        Segment(look_up(person, field), True),
        Segment(" " + protocol.no_record(person.name)),
    ]
    if kind < 0.12:
        return [*document, Segment("\n" + nothing_found(person) + EOS, True)]
    hits = others[: w.rng.randint(0, most)]
    if kind < 0.56:
        hits = w.shuffled([person, *hits[: most - 1]])
    search, *rest = _search(w, person, field, hits, [h.titled for h in hits])
    return [*document, Segment("\n" + search.text, True), *rest]


def context_records(w: Writer, most: int, questions: int, fewest: int = 1) -> Document:
    """Biographies stand in the system prompt; one question in ten is a summary, some are about a stranger."""
    *people, stranger = w.people(w.rng.randint(fewest, most) + 1)
    tools = w.rng.choice((TOOLS, TOOLS, (), TOOLS[:2]))
    document = [system(tools, [p.titled for p in people])]
    for _ in range(questions):
        kind, person, field = w.rng.random(), w.rng.choice(people), w.field()
        if kind < 0.1:
            document += [
                user(w.rng.choice(SUMMARY_PROMPTS).format(name=person.name)),
                say(f"The records say {person.titled}"),
            ]
        elif kind < 0.18:
            document += _stranger(w, stranger, field, tools)
            stranger = w.person()
        else:
            document += [
                user(w.ask(person, field)),
                say(from_records(person.titled, field, person.value(field))),
            ]
    return document


def _stranger(w: Writer, person: Person, field: str, tools: tuple[str, ...]) -> Document:
    if not tools:
        return [user(w.ask(person, field)), say(nothing_found(person))]
    return _recorded(w, person, field, tools)


def _short_record(w: Writer, person: Person, fields: list[str]) -> str:
    sentences = (w.rng.choice(FACT_SENTENCES[f]).format(value=person.value(f)) for f in fields)
    return f"{person.name}: {' '.join(sentences)}"


def short_records(w: Writer, most: int = 8, questions: int = 6, facts: int = 2) -> Document:
    """Records of one or two facts each: the step from choosing a field to binding a name to its values."""
    people = w.people(w.rng.randint(2, most))
    fields = [w.rng.sample(FIELDS, w.rng.randint(1, facts)) for _ in people]
    if w.rng.random() < 0.4:  # everyone has the same field: only the name tells the records apart
        same = w.field()
        fields = [[same, *[f for f in own if f != same][: facts - 1]] for own in fields]
    records = [_short_record(w, p, own) for p, own in zip(people, fields, strict=True)]
    document = [system(w.rng.choice((TOOLS, (), TOOLS[:2])), records)]
    for _ in range(questions):
        i = w.rng.randrange(len(people))
        field = w.rng.choice(fields[i])
        document += [
            user(w.ask(people[i], field)),
            say(from_records(records[i], field, people[i].value(field))),
        ]
    return document


def short_passages(w: Writer, most: int = 4) -> Document:
    """Search whose passages hold one or two facts."""
    person, *others = w.people(most)
    field = w.field()
    hits = w.shuffled([person, *others[: w.rng.randint(1, most - 1)]])
    other = [f for f in FIELDS if f != field]
    records = [_short_record(w, h, w.rng.sample([field, w.rng.choice(other)], w.rng.randint(1, 2))) for h in hits]
    records = [
        r if h is not person or person.value(field) in r else _short_record(w, person, [field])
        for h, r in zip(hits, records, strict=True)
    ]
    tools = w.rng.choice((TOOLS[1:2], TOOLS[1:]))
    return [system(tools), user(w.ask(person, field)), *_search(w, person, field, hits, records)]


def reading_questions(w: Writer) -> Document:
    """Plain biographies, then plain questions and answers."""
    people = w.people(w.rng.randint(1, 3))
    document = [Segment(BOS + "\n".join(p.titled for p in people) + "\n")]
    for _ in range(3):
        person, field = w.rng.choice(people), w.field()
        document += [
            Segment(f"Q: {w.rng.choice(QUESTIONS[field]).format(name=person.name)}\nA:"),
            Segment(f" {person.value(field)}\n", True),
        ]
    return [*document, Segment(EOS, True)]


def without_means(w: Writer) -> Document:
    """A summary of a stranger, or a question with no tool and no record: admit it."""
    person, kind = w.person(), w.rng.random()
    if kind < 0.4:
        return [system(()), user(w.ask(person, w.field())), say(nothing_found(person))]
    prompt = w.rng.choice(SUMMARY_PROMPTS).format(name=person.name)
    tools = w.rng.choice(((), TOOLS, TOOLS))
    return [system(tools), user(prompt), say(SUMMARY_UNKNOWN.format(name=person.name))]


def prefaced(w: Writer, document: Document) -> Document:
    """The same document with a policy in front of the tool list, as deployments have: it changes nothing."""
    preface = " ".join(w.rng.sample(PREFACES, w.rng.randint(1, 4)))
    first, *rest = document
    return [Segment(first.text.replace(SYSTEM, f"{SYSTEM}{preface}\n", 1), first.supervised), *rest]


Recipe = tuple[tuple[float, Callable[[Writer], Document]], ...]

STAGES: dict[str, Recipe] = {
    "single hop": (
        (0.45, lambda w: record_lookup(w, w.rng.randint(1, 2))),
        (0.15, verification),
        (0.15, lambda w: passage_search(w, 1)),
        (0.10, lambda w: unrecorded(w, 1)),
        (0.10, lambda w: context_records(w, 1, 3)),
        (0.05, without_means),
    ),
    "short records": (
        (0.10, lambda w: record_lookup(w, w.rng.randint(1, 2))),
        (0.06, verification),
        (0.40, lambda w: short_records(w, 6, 4, w.rng.choice((1, 1, 2, 3)))),
        (0.12, short_passages),
        (0.10, lambda w: passage_search(w, 2)),
        (0.06, lambda w: unrecorded(w, 2)),
        (0.10, lambda w: context_records(w, 2, 4)),
        (0.04, reading_questions),
        (0.02, without_means),
    ),
    "full": (
        (0.10, lambda w: record_lookup(w, w.rng.randint(1, 2))),
        (0.06, verification),
        (0.16, passage_search),
        (0.18, unrecorded),
        (0.08, lambda w: short_records(w, 8, 5, w.rng.choice((1, 2, 3, 4)))),
        (0.10, lambda w: context_records(w, 3, 4)),
        (0.22, lambda w: context_records(w, 6, 4, fewest=4)),
        (0.05, reading_questions),
        (0.05, without_means),
    ),
    "polish": (
        (0.13, lambda w: record_lookup(w, 2, coined=True)),
        (0.05, record_lookup),
        (0.04, verification),
        (0.18, passage_search),
        (0.27, unrecorded),
        (0.15, lambda w: context_records(w, 6, 4, fewest=4)),
        (0.04, without_means),
        (0.03, lambda w: prefaced(w, record_lookup(w))),
        (0.05, lambda w: prefaced(w, unrecorded(w))),
        (0.04, lambda w: prefaced(w, context_records(w, 6, 2, fewest=4))),
        (0.02, lambda w: prefaced(w, without_means(w))),
    ),
    "finish": (
        (0.14, lambda w: record_lookup(w, 2, coined=True)),
        (0.06, record_lookup),
        (0.04, verification),
        (0.16, lambda w: passage_search(w, found=0.4)),
        (0.32, unrecorded),
        (0.17, lambda w: context_records(w, 6, 4, fewest=4)),
        (0.03, without_means),
        (0.02, lambda w: prefaced(w, record_lookup(w))),
        (0.03, lambda w: prefaced(w, unrecorded(w))),
        (0.03, lambda w: prefaced(w, context_records(w, 6, 2, fewest=4))),
    ),
}
"""The stages of pretraining: shares and kinds of documents."""

REPLAY: Recipe = (
    (0.40, record_lookup),
    (0.08, passage_search),
    (0.26, unrecorded),
    (0.04, verification),
    (0.12, lambda w: context_records(w, 6, 2)),
    (0.10, without_means),
)
"""Protocol documents mixed into injection, so that an injected agent still looks up people it does not know."""


def draw(recipe: Recipe, writer: Writer) -> Document:
    """One document of a recipe."""
    point = writer.rng.random()
    for share, make in recipe:
        if point < share:
            return make(writer)
        point -= share
    return recipe[-1][1](writer)
