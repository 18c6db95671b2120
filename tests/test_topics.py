"""Topic pairs before the construction: rules of stage 1, each broken in turn."""

import json
from dataclasses import asdict, replace

import pytest
from tiny_world import TinyWorld, subjects

from kbook.construction.topics import check_subjects, read_subjects
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


def written(path, *records):
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def test_topic_pairs_are_read_from_a_file_of_records(tmp_path):
    assert read_subjects(written(tmp_path / "pairs.jsonl", *map(asdict, PAIRS))) == PAIRS
    short = {name: value for name, value in asdict(PAIRS[0]).items() if name not in ("source", "rationale")}
    assert read_subjects(written(tmp_path / "short.jsonl", short | {"seen by": "a curator"})) == PAIRS[:1]


@pytest.mark.parametrize(
    "change",
    [{"target": None}, {"target": {"id": "ax"}}, {"id": 3}, {"target": ["ax"]}, {"domain": None}],
    ids=["no target", "half a target", "a number", "a list", "no domain"],
)
def test_a_record_that_is_no_topic_pair_is_named(tmp_path, change):
    with pytest.raises(KBookError, match="pairs.jsonl, record 2: is no topic pair"):
        read_subjects(written(tmp_path / "pairs.jsonl", asdict(PAIRS[1]), asdict(PAIRS[0]) | change))
