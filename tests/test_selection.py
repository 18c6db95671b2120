"""Choosing among matches: strong before weak, every relation before a second of one, and others make up a shortage."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbook.construction.candidates import Candidate
from kbook.construction.judged import kept
from kbook.construction.matching import Match
from kbook.construction.selection import sample_holdout, select_pairs
from kbook.corpora.units import Card


def unit(id: str, relation: str = "r", span: str = "an answer") -> Card:
    return Card(id, relation, "slot", f"{id} has an answer.", "answer", "name", span)


def match(id: str, relation: str, slots: float = 1.0, agreement: float = 1.0) -> Match:
    return Match(unit(f"{id}-t", relation), unit(f"{id}-n", relation), agreement, slots, 1.0, 1.0)


def chosen(matches, quota=2, strong=0.8):
    return {
        name: [each.target.id[:-2] for each in kept(found)]
        for name, found in select_pairs(matches, quota, strong).items()
    }


def test_every_relation_comes_once_before_any_comes_twice():
    found = [match("a1", "a"), match("a2", "a"), match("b1", "b", slots=0.9), match("c1", "c", slots=0.85)]
    assert chosen({"p": found}, quota=3)["p"] == ["a1", "b1", "c1"]
    assert chosen({"p": found}, quota=4)["p"] == ["a1", "b1", "c1", "a2"]


def test_strong_pairs_come_before_weak_ones_of_new_relations():
    found = [match("a1", "a"), match("a2", "a"), match("b1", "b", slots=0.5, agreement=0.5)]
    assert found[2].score < 0.8 < found[1].score
    assert chosen({"p": found})["p"] == ["a1", "a2"]
    assert chosen({"p": found}, strong=0.1)["p"] == ["a1", "b1"]


def test_a_shortage_is_made_up_by_the_best_of_the_others():
    rich = [match(f"r{n}", "abcdef"[n]) for n in range(5)]
    poor = [match("p1", "a")]
    assert {name: len(ids) for name, ids in chosen({"rich": rich, "poor": poor}).items()} == {"rich": 3, "poor": 1}
    assert {name: len(ids) for name, ids in chosen({"rich": rich, "full": rich[:2]}).items()} == {"rich": 2, "full": 2}


pools = st.dictionaries(
    st.sampled_from("pqr"),
    st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from([0.4, 0.7, 1.0])), max_size=6),
    min_size=1,
)


@given(pools, st.integers(1, 4), st.randoms(use_true_random=False))
def test_the_total_is_the_quota_where_there_is_enough_and_no_order_matters(plan, quota, random):
    matches = {name: [match(f"{name}{n}", *each) for n, each in enumerate(found)] for name, found in plan.items()}
    first = select_pairs(matches, quota, 0.8)
    total = sum(len(kept(found)) for found in first.values())
    assert total == min(quota * len(matches), sum(map(len, matches.values())))
    for found in matches.values():
        random.shuffle(found)
    assert select_pairs(matches, quota, 0.8) == first


def candidates(n):
    return [Candidate(unit(f"c{i:02d}"), i) for i in range(n)]


def test_holdout_units_are_drawn_uniformly_without_replacement():
    counts = dict.fromkeys((each.card.id for each in candidates(10)), 0)
    for seed in range(600):
        drawn = [each.card.id for each in kept(sample_holdout(candidates(10), 3, seed))]
        assert len(set(drawn)) == 3
        for id in drawn:
            counts[id] += 1
    assert all(180 == pytest.approx(count, abs=60) for count in counts.values())


def test_the_draw_depends_on_the_seed_and_not_on_the_order():
    draws = {tuple(each.card.id for each in kept(sample_holdout(candidates(12), 4, seed))) for seed in range(5)}
    assert len(draws) > 1
    assert sample_holdout(candidates(12)[::-1], 4, 0) == sample_holdout(candidates(12), 4, 0)


def test_units_without_support_are_never_drawn_and_a_small_pool_is_drawn_whole():
    left = [*candidates(2), Candidate(unit("x", span="nothing of the kind"), 0)]
    found = sample_holdout(left, 9, 0)
    assert [each.item.card.id for each in found if each.kept] == ["c00", "c01"]
    assert [each.reason for each in found if not each.kept] == ["no direct support in its span"]
