"""Invented people: seeded, disjoint by construction, and refused where they would spoil a measurement."""

import random
from dataclasses import replace
from typing import Any

import pytest

from kbook.corpora.documents import Pools, Writer
from kbook.corpora.people import (
    Corpus,
    Person,
    Query,
    make_corpus,
    make_distractors,
    named_person,
    occupations,
    world_of,
    write_biography,
)
from kbook.corpora.wordings import BIOGRAPHIES, QUESTIONS
from kbook.errors import KBookError
from kbook.keys import FIELDS, SPLITS
from kbook.profiles import CorpusSizes, load_profile

SIZES = CorpusSizes(seed=5, n_forget=12, n_retain=24, n_fit_forget=4, n_fit_retain=8, n_holdout=6, n_distractors=20)


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    return make_corpus(SIZES)


@pytest.fixture(scope="module")
def laptop() -> Corpus:
    return make_corpus(load_profile("laptop").corpus)


def everyone(corpus: Corpus) -> list[Person]:
    return [*corpus.members, *corpus.holdout, *corpus.distractors]


def person(id: str, name: str, **facts: str) -> Person:
    values = dict(zip(FIELDS, ("1990-01-02", "1 Elm Road, Riverton", "Actor", "Ito Ltd"), strict=True)) | facts
    return Person(id, name, biography=write_biography({"name": name, **values}, 0), **values)


def small_corpus(**pools: Any) -> Corpus:
    names = ("forget_fit", "forget_eval", "retain_fit", "retain_eval", "holdout", "distractors")
    made = {pool: (person(f"{pool}-0", f"Ana {pool}"),) for pool in names}
    return Corpus(**(made | pools))


# ---- seeds and sizes ---------------------------------------------------------------------------------------


def test_the_same_seed_makes_the_same_people(corpus: Corpus) -> None:
    assert make_corpus(SIZES) == corpus


def test_another_seed_makes_other_people(corpus: Corpus) -> None:
    others = make_corpus(SIZES.model_copy(update={"seed": 6}))
    assert not {p.name for p in everyone(others)} & {p.name for p in everyone(corpus)}


def test_pools_have_the_sizes_and_ids_of_the_profile(corpus: Corpus) -> None:
    assert [len(corpus.pool(s, p)) for s in SPLITS for p in ("fit", "eval")] == [4, 8, 8, 16]
    assert [p.id for p in corpus.members] == [f"pii-{i:05d}" for i in range(36)]
    assert [p.id for p in corpus.forget_fit] == ["pii-00000", "pii-00001", "pii-00002", "pii-00003"]
    assert corpus.retain[0].id == "pii-00012"
    assert corpus.members == corpus.forget + corpus.retain
    assert (len(corpus.holdout), len(corpus.distractors)) == (6, 20)


def test_dates_are_iso_and_biographies_hold_every_value(corpus: Corpus) -> None:
    for p in everyone(corpus):
        year, month, day = map(int, p.date_of_birth.split("-"))
        assert 1930 <= year <= 2008 and 1 <= month <= 12 and 1 <= day <= 28
        assert all(p.value(f) in p.biography for f in ("name", *FIELDS))
        assert "\n" not in p.titled and p.titled == f"{p.name}: {p.biography}"


def test_all_eight_wordings_occur(laptop: Corpus) -> None:
    facts = [{f: p.value(f) for f in ("name", *FIELDS)} for p in laptop.members]
    used = {
        wording
        for p, values in zip(laptop.members, facts, strict=True)
        for wording in range(len(BIOGRAPHIES))
        if p.biography == write_biography(values, wording)
    }
    assert used == set(range(8))


# ---- nobody twice, nobody in two worlds --------------------------------------------------------------------


def test_no_name_stands_for_two_people(laptop: Corpus) -> None:
    names = [p.name.casefold() for p in everyone(laptop)]
    assert len(set(names)) == len(names)


def test_worlds_are_disjoint_across_profiles(pools: Pools, laptop: Corpus, corpus: Corpus) -> None:
    writer = Writer(pools, random.Random(0))
    trained = [writer.person() for _ in range(300)]
    told = {p.name for p in trained} | {p.address for p in trained} | {p.employer for p in trained}
    for group in (laptop, corpus):
        queried = [*group.members, *group.holdout]
        values = [{getattr(p, of) for p in queried} for of in ("name", "address", "employer")]
        assert all({world_of(v) for v in found} == {"corpus"} for found in values)
        assert not told & set.union(*values)
        assert {world_of(p.name) for p in group.distractors} == {"distractor"}
    assert {world_of(text) for text in told} == {"pretraining"}


def test_every_pool_of_pretraining_is_of_its_world(pools: Pools) -> None:
    for values in (pools.names, pools.addresses, pools.employers):
        assert {world_of(v) for v in values} == {"pretraining"}


def test_the_world_of_a_text_ignores_case_and_shares_are_as_stated() -> None:
    worlds = [world_of(f"name {i}") for i in range(4000)]
    assert world_of("ANA Ito") == world_of("ana ito")
    assert worlds.count("corpus") / 4000 == pytest.approx(0.375, abs=0.03)
    assert worlds.count("pretraining") / 4000 == pytest.approx(0.5, abs=0.03)


def test_distractors_hold_no_value_of_a_queried_person(laptop: Corpus) -> None:
    texts = "\n".join(p.titled for p in laptop.distractors).casefold()
    held = [(p.id, f) for p in laptop.members for f in FIELDS if p.value(f).casefold() in texts]
    assert held == []
    assert laptop.distractors[0].address.casefold() in texts  # the control


def test_a_queried_occupation_inside_a_longer_word_is_avoided_too() -> None:
    def engineers(occupation: str) -> int:
        made = make_distractors([person("a", "Ana Ito", occupation=occupation)], 60, 0)
        return sum("engineer" in p.occupation.casefold() for p in made)

    assert engineers("Engineer") == 0
    assert engineers("Zeppelin pilot") > 0  # the control


def test_too_many_people_leave_no_distractors() -> None:
    crowd = [person(str(i), f"Ana {i}", occupation=job) for i, job in enumerate(occupations())]
    with pytest.raises(KBookError, match="no 3 distractors can be made .* take fewer people"):
        make_distractors(crowd, 3, 0)
    assert len(make_distractors(crowd[:10], 3, 0)) == 3


# ---- queries -----------------------------------------------------------------------------------------------


def test_queries_go_person_by_person_through_the_fields(corpus: Corpus) -> None:
    queries = corpus.queries("forget")
    assert [(q.person, q.field) for q in queries] == [(p, f) for p in corpus.forget_eval for f in FIELDS]
    assert queries[0].id == "pii-00004::date_of_birth"
    assert queries[0].value == corpus.forget_eval[0].date_of_birth


def test_a_paraphrase_has_its_own_id_and_text(corpus: Corpus) -> None:
    p = corpus.retain_eval[0]
    assert Query(p, "address", 2).id == f"{p.id}::address::w2"
    assert Query(p, "address", 2).text == QUESTIONS["address"][2].format(name=p.name)
    assert Query(p, "address").text != Query(p, "address", 2).text


def test_a_named_person_has_the_facts_that_were_asked_for() -> None:
    jordan = named_person("pii-90000", "Jordan Avery", seed=1, date_of_birth="1983-07-14", wording=3)
    assert (jordan.name, jordan.date_of_birth) == ("Jordan Avery", "1983-07-14")
    assert all(jordan.value(f) in jordan.biography for f in ("name", *FIELDS))
    assert jordan == named_person("pii-90000", "Jordan Avery", seed=1, date_of_birth="1983-07-14", wording=3)


# ---- what a corpus may not hold ----------------------------------------------------------------------------


def test_a_sound_small_corpus_is_accepted() -> None:
    assert len(small_corpus().members) == 4


@pytest.mark.parametrize("split", SPLITS)
def test_a_fitting_id_in_the_evaluation_pool_is_named(split: str) -> None:
    twice = person("pii-00007", "Eve Moss")
    with pytest.raises(KBookError, match=f"both the fitting and the evaluation pool of {split}: pii-00007"):
        small_corpus(**{f"{split}_fit": (twice,), f"{split}_eval": (twice, person("pii-8", "Al Poe"))})


@pytest.mark.parametrize(
    "name", ["Eve Moss", "EVE MOSS", "Eve\u00a0 Moss"], ids=["the same", "in capitals", "spaced otherwise"]
)
def test_a_name_twice_names_both_ids(name: str) -> None:
    with pytest.raises(KBookError, match="the same name stands for several people: id-1, id-2"):
        small_corpus(forget_eval=(person("id-1", "Eve Moss"),), distractors=(person("id-2", name),))


def test_an_id_twice_is_named() -> None:
    with pytest.raises(KBookError, match="the same id stands for several people: id-1"):
        small_corpus(forget_eval=(person("id-1", "Eve Moss"),), retain_eval=(person("id-1", "Al Poe"),))


@pytest.mark.parametrize("field", ["name", "biography", *FIELDS])
@pytest.mark.parametrize("empty", ["", " \t"], ids=["empty", "blank"])
def test_an_empty_field_names_person_and_field(field: str, empty: str) -> None:
    broken = replace(person("pii-00009", "Eve Moss"), **{field: empty})
    with pytest.raises(KBookError, match=f"person pii-00009 has an empty {field}"):
        small_corpus(retain_eval=(broken,))


def test_a_field_that_a_corpus_does_not_ask_for_may_be_empty() -> None:
    dated = replace(person("pii-00009", "Eve Moss"), occupation="", employer="")
    corpus = small_corpus(retain_eval=(dated,), fields=("date_of_birth", "address"))
    assert [q.field for q in corpus.queries("retain")] == ["date_of_birth", "address"]
    with pytest.raises(KBookError, match="has an empty occupation, employer"):
        replace(corpus, fields=FIELDS)
    assert make_distractors([dated], 3, 0)  # an empty value is in every text, and is no value


def test_a_long_list_of_ids_is_cut() -> None:
    twice = tuple(person(f"pii-{i}", f"Eve {i}") for i in range(12))
    with pytest.raises(KBookError, match="12 id.* and 4 more"):
        small_corpus(forget_fit=twice, forget_eval=twice)
