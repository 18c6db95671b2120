"""Topic pairs before the construction: rules of stage 1, each broken in turn."""

from dataclasses import replace

import pytest
from tiny_world import TinyWorld, subjects

from kbook.construction.topics import check_subjects
from kbook.errors import KBookError

PAIRS = subjects(TinyWorld())


def test_sound_topic_pairs_pass():
    check_subjects(PAIRS)


@pytest.mark.parametrize(
    ("pair", "message"),
    [
        (replace(PAIRS[0], id=PAIRS[1].id), "id common_cu stands for more than one topic pair"),
        (replace(PAIRS[0], neighbour=PAIRS[0].target), "id ax stands for more than one topic"),
        (replace(PAIRS[0], neighbour=replace(PAIRS[0].neighbour, name="LAMP of  ax")), "id lamp of ax stands for more"),
        (replace(PAIRS[0], target=replace(PAIRS[0].target, article=" \n")), "the article on lamp of ax is empty"),
        (replace(PAIRS[0], setting="shared"), "unknown setting 'shared'"),
        (replace(PAIRS[0], source="de"), "its source language is de"),
        (replace(PAIRS[2], source="de"), "sw_em: its source language is de"),
        (replace(PAIRS[2], id="em"), "unknown source language of a conditioned topic pair 'em'"),
        (replace(PAIRS[2], rationale=None), "sw_em: a conditioned pair has no rationale"),
    ],
)
def test_a_broken_rule_is_named(pair, message):
    others = [each for each in PAIRS if {each.target.id} != {pair.target.id}]
    with pytest.raises(KBookError, match=message):
        check_subjects([*others, pair])
