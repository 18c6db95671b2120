"""Topics without end: the domains of a world with coined names, and values drawn from the ranges of its relations.

A small multilingual base learns the ten languages, the relations and the copying of unseen names from such
topics. Their names are coined (`kbook.corpora.coinage`), never those of the authored world or parts of them, and
no two share a form in any language. Terms (causes, constellations) are of the same closed lists in both.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date, timedelta
from functools import partial
from random import Random

from kbook.corpora.coinage import Forms, coin_person, coin_word
from kbook.corpora.languages import LANGUAGES
from kbook.corpora.world_files import NAMED, Domain, Relation, Titles, Value
from kbook.text import folded

_WORDS = re.compile(r"[\s・·]+")


@dataclass(frozen=True)
class Drawn:
    """One drawn topic. ``names`` holds the forms of its values by answer type and key."""

    domain: str
    name: Forms
    facts: Mapping[str, Value]
    names: Mapping[str, Mapping[str, Forms]]


@dataclass
class _Names:
    """Coins names of which no form was used before or lies in a question, and no word belongs to an authored name."""

    random: Random
    titles: Titles
    authored: frozenset[str]
    questions: Mapping[str, str]
    used: set[tuple[str, str]] = field(default_factory=set)

    def topic(self, kind: str) -> Forms:
        return self._fresh(self._title if kind == "title" else partial(coin_word, self.random, 3), None)

    def value(self, kind: str, topic: Forms) -> Forms:
        return self._fresh(partial(coin_person, self.random) if kind == "person" else self._word, topic)

    def _fresh(self, coin: Callable[[], Forms], topic: Forms | None) -> Forms:
        while True:
            forms = coin()
            if not (self._known(forms) or (topic and _overlaps(forms, topic))):
                self.used |= {(code, folded(form)) for code, form in forms.items()}
                return forms

    def _known(self, forms: Forms) -> bool:
        asked = any(folded(form) in self.questions[code] for code, form in forms.items())
        used = any((code, folded(form)) in self.used for code, form in forms.items())
        return asked or used or bool(self.authored & words_of([forms]))

    def _word(self) -> Forms:
        return coin_word(self.random, self.random.choice((2, 3, 3)))

    def _title(self) -> Forms:
        words = self.titles.words
        first, second = (words[key] for key in self.random.sample(sorted(words), 2))
        joined: Forms = second if self.random.random() < 0.5 else coin_word(self.random, 3)
        both = {code: self.titles.both[code].format(first=first[code], second=joined[code]) for code in LANGUAGES}
        return {code: title[0].upper() + title[1:] for code, title in both.items()}


def words_of(names: Iterable[Forms]) -> frozenset[str]:
    """Every form of ``names`` and every word in it, folded."""
    forms = {folded(form) for name in names for form in name.values()}
    return frozenset(forms.union(*map(_WORDS.split, forms)))


def draw_topics(
    domains: Mapping[str, Domain], titles: Titles, authored: Iterable[Forms], random: Random
) -> Iterator[Drawn]:
    """Draw topics without end, domain after domain in turn.

    Args:
        domains: the domains, by key.
        titles: the words of which titles are coined.
        authored: names that no coined name may share a word with.
        random: where chance comes from.
    """
    of_titles = words_of([*titles.words.values(), titles.both])
    names = _Names(random, titles, words_of(authored) - of_titles, _questions(domains.values()))
    while True:
        for key, domain in domains.items():
            yield _draw(key, domain, names)


def _questions(domains: Iterable[Domain]) -> Mapping[str, str]:
    """All questions of a language as one folded text."""
    relations = [relation for domain in domains for relation in domain.relations.values()]
    return {code: folded("\n".join(q for r in relations for q in r.questions[code])) for code in LANGUAGES}


def _draw(key: str, domain: Domain, names: _Names) -> Drawn:
    topic = names.topic(domain.topics_are)
    facts: dict[str, Value] = {}
    forms: dict[str, dict[str, Forms]] = {kind: {} for kind in NAMED}
    for relation_key, relation in domain.relations.items():
        if relation.answer in NAMED:
            coined = names.value(relation.answer, topic)
            forms[relation.answer][coined["en"]] = coined
            facts[relation_key] = coined["en"]
        else:
            facts[relation_key] = _value(relation, domain, facts, names.random)
    return Drawn(key, topic, facts, forms)


def _value(relation: Relation, domain: Domain, facts: Mapping[str, Value], random: Random) -> Value:
    if relation.answer == "term":
        return random.choice(sorted(domain.terms[relation.terms]))
    if relation.after is not None:
        earlier = facts[relation.after.relation]
        assert isinstance(earlier, date)
        return earlier + timedelta(days=random.randint(*relation.after.days))
    assert relation.range is not None
    low, high = relation.range
    if isinstance(low, date) and isinstance(high, date):
        return low + timedelta(days=random.randint(0, (high - low).days))
    return _multiple(low, high, relation.step, random)  # type: ignore[arg-type]


def _multiple(low: float, high: float, step: float, random: Random) -> int | float:
    drawn = random.randint(round(low / step), round(high / step)) * step
    return drawn if isinstance(step, int) else round(drawn, 6)


def _overlaps(forms: Forms, topic: Forms) -> bool:
    pairs = [(folded(forms[code]), folded(topic[code])) for code in LANGUAGES]
    return any(one in other or other in one for one, other in pairs)
