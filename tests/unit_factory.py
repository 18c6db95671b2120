"""A small release of knowledge units whose every text says what it is."""

from collections.abc import Sequence

from kbook.corpora.languages import LANGUAGES
from kbook.corpora.units import FAMILY, QA, Card, Release, TopicPair, Unit, UnitPair

COMMON, FRENCH = "common_lamps", "fr_bridges"


def card(id: str, relation: str = "height", **fields: str) -> Card:
    answer = fields.get("answer", f"{len(id)} ells of {id}")
    plain = {
        "slot": f"{relation} of the thing",
        "statement": f"The {relation} of {id} is {answer}.",
        "answer": answer,
        "answer_type": "quantity",
        "span": f"Its {relation} of {answer} is well known.",
    }
    return Card(id, relation, **{**plain, **fields})


def unit(card: Card, role: str, languages: Sequence[str] = LANGUAGES) -> Unit:
    layers = FAMILY[:1] if role == "holdout" else FAMILY
    return Unit(card, {language: _family(card, role, language, layers) for language in languages})


def _family(card: Card, role: str, language: str, layers: Sequence[str]) -> tuple[QA, ...]:
    def qa(number: int, layer: str) -> QA:
        question = f"{language}: the {card.relation} of {card.id}, asked {number}?"
        return QA(
            f"{card.id}-{language}-{number}", role, layer, language, question, f"{language} {card.answer}", ("x",)
        )

    return tuple(qa(number, layer) for number, layer in enumerate(layers))


def topic_pair(id: str = COMMON, n: int = 2, n_holdout: int = 1, languages: Sequence[str] = LANGUAGES) -> TopicPair:
    source = id.split("_")[0] if id.split("_")[0] in LANGUAGES else None

    def matched(number: int) -> UnitPair:
        both = (unit(card(f"{id}-{role}-{number}"), role, languages) for role in ("forget", "retain"))
        return UnitPair(f"{id}--{number}", "height", *both)

    setting = "conditioned" if source else "common-goal"
    pairs = tuple(matched(number) for number in range(n))
    spare = tuple(unit(card(f"{id}-spare-{number}"), "holdout", languages) for number in range(n_holdout))
    rationale = "why not" if source else None
    return TopicPair(id, setting, source, "things", f"{id} target", f"{id} neighbour", pairs, spare, rationale)


def release(*pairs: TopicPair, languages: Sequence[str] = LANGUAGES) -> Release:
    made = pairs or (topic_pair(COMMON, languages=languages), topic_pair(FRENCH, n=3, languages=languages))
    return Release(made, {"provider": "a test"})
