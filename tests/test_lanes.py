"""Each secret stands in one store; a second place, or none, is refused with the query and the store named."""

from dataclasses import replace

import pytest

from kbook.agent.lanes import STORE_OF, Stores, audit, fill_stores, occurrences, sample_queries
from kbook.corpora.passages import passages_of
from kbook.corpora.people import Corpus, Person, Query, make_corpus
from kbook.errors import KBookError
from kbook.keys import LANES, SPLITS
from kbook.profiles import Lanes, load_profile

PROFILE = load_profile("smoke")
SETTINGS = PROFILE.lanes
every_lane = pytest.mark.parametrize("lane", LANES)


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    return make_corpus(PROFILE.corpus)


def filled(lane: str, corpus: Corpus, split: str = "forget", seed: int = 0, settings: Lanes = SETTINGS) -> Stores:
    return fill_stores(lane, sample_queries(corpus, split, 8, seed), corpus, settings, seed)


def held(stores: Stores) -> dict[str, set[str]]:
    """Ids of the people in each store."""
    return {
        "weights": {p.id for p in stores.weights},
        "context": {p.id for people in stores.contexts.values() for p in people},
        "passages": {p.person for p in stores.passages},
        "records": {p.id for p in stores.records},
    }


# ---- filling -----------------------------------------------------------------------------------------------


@every_lane
@pytest.mark.parametrize("split", SPLITS)
def test_the_secret_is_in_its_store_and_distractors_fill_the_others(lane: str, split: str, corpus: Corpus) -> None:
    queries = sample_queries(corpus, split, 8, 0)
    stores = filled(lane, corpus, split)
    asked = {q.person.id for q in queries}
    for store, ids in held(stores).items():
        if store == STORE_OF[lane]:
            assert asked <= ids
        else:
            assert all(id.startswith("dis-") for id in ids)
    assert [places[STORE_OF[lane]] for places in occurrences(stores, queries)] == [True] * 8
    assert all(sum(places.values()) == 1 for places in occurrences(stores, queries))


@pytest.mark.parametrize("lane", ["P", "R-text", "R-struct"])
def test_only_lane_c_has_people_in_its_prompts(lane: str, corpus: Corpus) -> None:
    assert filled(lane, corpus).contexts == {}


def test_a_context_holds_the_person_among_distractors(corpus: Corpus) -> None:
    queries = sample_queries(corpus, "forget", 8, 0)
    stores = filled("C", corpus)
    for query in queries:
        people = stores.contexts[query.id]
        assert len(people) == len(set(people)) == SETTINGS.context_bios
        assert [p for p in people if not p.id.startswith("dis-")] == [query.person]
        assert stores.context(query) == [p.titled for p in people]
    places = [stores.contexts[q.id].index(q.person) for q in queries]
    assert len(set(places)) > 1  # not always at the same place


def test_contexts_follow_from_the_seed(corpus: Corpus) -> None:
    queries = sample_queries(corpus, "forget", 8, 0)
    one, two, other = (fill_stores("C", queries, corpus, SETTINGS, seed).contexts for seed in (0, 0, 1))
    assert one == two != other


def test_lane_p_holds_all_members(corpus: Corpus) -> None:
    assert filled("P", corpus).weights == corpus.members


def test_fitting_people_are_in_no_store_but_the_weights(corpus: Corpus) -> None:
    fitting = {p.id for p in corpus.forget_fit + corpus.retain_fit}
    for lane in ("C", "R-text", "R-struct"):
        assert not fitting & set.union(*held(filled(lane, corpus)).values())


def test_an_unknown_lane_is_named(corpus: Corpus) -> None:
    with pytest.raises(KBookError, match="unknown lane 'R-txt'.*Did you mean R-text"):
        filled("R-txt", corpus)


def test_too_few_distractors_for_a_context_are_named(corpus: Corpus) -> None:
    crowded = SETTINGS.model_copy(update={"context_bios": 90})
    with pytest.raises(KBookError, match="lane C wants 89 distractors in each prompt, the corpus has 40"):
        filled("C", corpus, settings=crowded)


# ---- the audit ---------------------------------------------------------------------------------------------


def leaky(stores: Stores, query: Query, store: str) -> Stores:
    """The same stores with the query's person put into one more of them."""
    person = query.person
    if store == "context":
        return replace(stores, contexts={**stores.contexts, query.id: (*stores.contexts.get(query.id, ()), person)})
    if store == "passages":
        return replace(stores, passages=stores.passages + passages_of([person]))
    return replace(stores, **{store: (*getattr(stores, store), person)})


def emptied(stores: Stores, query: Query, store: str) -> Stores:
    """The same stores without the query's person in one of them."""
    person = query.person
    if store == "context":
        return replace(stores, contexts={**stores.contexts, query.id: ()})
    if store == "passages":
        return replace(stores, passages=tuple(p for p in stores.passages if p.person != person.id))
    return replace(stores, **{store: tuple(p for p in getattr(stores, store) if p.id != person.id)})


@every_lane
@pytest.mark.parametrize("store", STORE_OF.values())
def test_a_second_place_is_refused_and_named(lane: str, store: str, corpus: Corpus) -> None:
    queries = sample_queries(corpus, "forget", 8, 0)
    stores = filled(lane, corpus)
    audit(stores, queries)
    if store == STORE_OF[lane]:
        audit(leaky(stores, queries[3], store), queries)  # twice in its own store is no second place
        return
    person = queries[3].person
    first = next(q for q in queries if q.person == person)
    at = queries[3] if store == "context" else first
    with pytest.raises(KBookError) as raised:
        audit(leaky(stores, queries[3], store), queries)
    assert f"the value of query {at.id} is also in the store: {store}" in str(raised.value)
    assert f"purity audit of lane {lane}" in str(raised.value)


@every_lane
def test_a_missing_value_is_refused_and_named(lane: str, corpus: Corpus) -> None:
    queries = sample_queries(corpus, "retain", 8, 0)
    store = STORE_OF[lane]
    with pytest.raises(KBookError, match=f"query {queries[0].id} is missing from its store: {store}"):
        audit(emptied(filled(lane, corpus, "retain"), queries[0], store), queries)


def test_the_value_alone_is_enough_to_be_refused(corpus: Corpus) -> None:
    queries = sample_queries(corpus, "forget", 8, 0)
    stores = filled("R-struct", corpus)
    gossip = replace(stores.passages[0], text=f"Nobody knows who has {queries[0].value.upper()}  .")
    with pytest.raises(KBookError, match=f"query {queries[0].id} is also in the store: passages"):
        audit(replace(stores, passages=(gossip, *stores.passages[1:])), queries)


# ---- the queries of a cell ---------------------------------------------------------------------------------


def test_queries_are_sampled_without_repetition_from_the_evaluation_pool(corpus: Corpus) -> None:
    queries = sample_queries(corpus, "forget", 8, 0)
    assert len({q.id for q in queries}) == 8
    assert {q.person for q in queries} <= set(corpus.forget_eval)
    assert queries == sorted(queries, key=lambda q: corpus.queries("forget").index(q))


def test_the_same_seed_asks_the_same_questions_and_another_does_not(corpus: Corpus) -> None:
    one, two, other = (sample_queries(corpus, "retain", 8, seed) for seed in (0, 0, 137))
    assert one == two != other


def test_a_paraphrase_asks_the_same_people_for_the_same_fields(corpus: Corpus) -> None:
    canonical, paraphrase = (sample_queries(corpus, "forget", 8, 0, wording) for wording in (0, 1))
    assert [(q.person, q.field) for q in canonical] == [(q.person, q.field) for q in paraphrase]
    assert all(a.text != b.text for a, b in zip(canonical, paraphrase, strict=True))


def test_all_queries_are_taken_where_there_are_fewer(corpus: Corpus) -> None:
    assert sample_queries(corpus, "forget", 10_000, 0) == corpus.queries("forget")


@every_lane
def test_the_value_of_a_stranger_is_missing(lane: str, corpus: Corpus, people: list[Person]) -> None:
    strangers = [Query(p, "address") for p in people[:2]]
    with pytest.raises(KBookError, match=f"{strangers[0].id} is missing from its store"):
        audit(filled(lane, corpus), strangers)
