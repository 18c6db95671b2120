"""What is asked of models: wrong values that are wrong, of the same field, the same every time; texts of each group."""

from dataclasses import replace

import pytest

from kbook.corpora.people import make_corpus
from kbook.corpora.probe_items import GROUPS, N_WRONG, probe_questions, probe_texts
from kbook.errors import KBookError
from kbook.keys import SPLITS
from kbook.profiles import load_profile
from kbook.text import folded


@pytest.fixture(scope="module")
def corpus():
    return make_corpus(load_profile("smoke").corpus)


@pytest.mark.parametrize("split", SPLITS)
def test_wrong_values_are_those_of_others_in_the_same_field_and_split(corpus, split):
    for question in probe_questions(corpus, split, corpus.queries(split)):
        others = [p for p in corpus.pool(split, "eval") if p.id != question.query.person.id]
        assert len({folded(v) for v in (question.query.value, *question.wrong)}) == 1 + N_WRONG
        assert set(question.wrong) <= {p.value(question.query.field) for p in others}


def test_a_query_has_the_same_wrong_values_in_whatever_company_and_is_asked_once(corpus):
    queries = corpus.queries("forget")
    all_of_them = probe_questions(corpus, "forget", queries)
    assert probe_questions(corpus, "forget", [queries[5], queries[2], queries[5]]) == [all_of_them[5], all_of_them[2]]


def test_the_paraphrase_asks_for_the_same_in_other_words(corpus):
    (question,) = probe_questions(corpus, "forget", corpus.queries("forget")[:1])
    assert question.paraphrase.value == question.query.value and question.paraphrase.text != question.query.text


def test_people_who_share_a_value_do_not_make_it_wrong(corpus):
    first, *rest = corpus.forget_eval
    twins = replace(corpus, forget_eval=(first, replace(rest[0], employer=first.employer.upper()), *rest[1:]))
    (question,) = (q for q in probe_questions(twins, "forget", twins.queries("forget")) if q.query.person == first
                   and q.query.field == "employer")  # fmt: skip
    assert folded(first.employer) not in {folded(value) for value in question.wrong}


def test_too_few_people_are_refused(corpus):
    few = replace(corpus, forget_eval=corpus.forget_eval[:N_WRONG])
    with pytest.raises(KBookError, match="only 4 other values of date_of_birth .* pii-00004::date_of_birth.*n_forget"):
        probe_questions(few, "forget", few.queries("forget"))
    enough = replace(corpus, forget_eval=corpus.forget_eval[: N_WRONG + 1])
    assert len(probe_questions(enough, "forget", enough.queries("forget"))) == 4 * (N_WRONG + 1)


def test_texts_are_of_each_group_and_never_of_a_fitting_person(corpus):
    texts = probe_texts(corpus, most=100)
    assert tuple(dict.fromkeys(text.group for text in texts)) == GROUPS
    by_group = {group: {t.person.id for t in texts if t.group == group} for group in GROUPS}
    assert by_group["forget"] == {p.id for p in corpus.forget_eval}
    assert by_group["holdout"] == {p.id for p in corpus.holdout}
    assert [len([t for t in probe_texts(corpus, most=5) if t.group == group]) for group in GROUPS] == [5, 5, 5]
