"""The release of the chapters: the book's own world passes every check, and a folder is read in its place."""

import pytest
from unit_factory import release

from kbook.construction.release import WORLD_SETTINGS, construct_world, load_release
from kbook.corpora.languages import LANGUAGES
from kbook.corpora.official_units import write_release
from kbook.corpora.worlds import load_world
from kbook.errors import KBookError
from kbook.store import Store


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    return construct_world(store=Store(tmp_path_factory.mktemp("world")))


def test_nothing_of_the_books_own_world_is_refused_by_any_check(built):
    reasons = {reason for step in built.funnel.steps for reason in (*step.reasons, *step.flags)}
    assert reasons <= {"beyond the quota", "not drawn", "no direct support in its span"}
    assert built.funnel.planted == ()


def test_the_worlds_release_is_whole(built):
    made, world = built.release, load_world("almanac")
    assert made.languages == LANGUAGES
    assert [pair.id for pair in made.topic_pairs if pair.setting == "conditioned"] == [
        pair.id for pair in world.topic_pairs if pair.setting == "conditioned"
    ]
    assert len(made.topic_pairs) == len(world.topic_pairs)
    assert all(len(pair.pairs) == WORLD_SETTINGS.quota for pair in made.topic_pairs)
    for setting in {pair.setting for pair in made.topic_pairs}:
        assert len(made.units("holdout", setting)) == len(made.units("forget", setting))


def test_a_folder_is_read_as_the_official_release_with_its_counts(tmp_path):
    write_release(release(), tmp_path)
    with pytest.raises(KBookError, match="qa_variants.ar.json: 1 topic pairs, not 50"):
        load_release(str(tmp_path))


def test_an_unknown_world_is_named():
    with pytest.raises(KBookError, match="unknown world 'almanach'"):
        load_release(world="almanach")
