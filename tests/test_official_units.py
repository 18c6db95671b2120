"""The official format: what is written is read back, what is wrong is named by file and id."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from unit_factory import COMMON, FRENCH, release, topic_pair

from kbook.corpora.languages import LANGUAGES
from kbook.corpora.official_units import OFFICIAL, Counts, file_name, read_release, write_release
from kbook.corpora.units import SETTINGS, source_of
from kbook.errors import KBookError

TWO = ("en", "sw")
SIZES = {"common-goal": Counts(1, 2, 1, {}), "conditioned": Counts(1, 3, 1, {"fr": 3, "de": 0})}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_release(release(languages=TWO), tmp_path)
    return tmp_path


def edit(path: Path, change: Any) -> None:
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))


def first_pair(content: dict[str, Any]) -> dict[str, Any]:
    return content["topic_pairs"][0]["knowledge_card_pairs"][0]


def first_question(content: dict[str, Any]) -> dict[str, Any]:
    return first_pair(content)["target_qa_variants"][0]


def test_a_release_in_ten_languages_comes_back_as_it_was(tmp_path):
    made = release()
    files = write_release(made, tmp_path)
    assert len(files) == 2 * 2 * len(LANGUAGES)
    read = read_release(tmp_path, counts=None)
    assert read == made and read.digest == made.digest
    assert read.provenance == {"provider": "a test"}


def test_one_setting_alone_is_written_and_read(tmp_path):
    made = release(topic_pair(FRENCH))
    assert all(".culture_specific." in path.name for path in write_release(made, tmp_path))
    assert read_release(tmp_path, settings=["conditioned"], counts=None) == made


def test_the_languages_that_are_asked_for_are_read(folder):
    assert read_release(folder, languages=["sw"], counts=None).languages == ("sw",)
    assert read_release(folder, languages=TWO, counts=SIZES).languages == TWO


def test_the_official_counts_add_up_to_the_published_table():
    assert [OFFICIAL[setting].unit_pairs for setting in SETTINGS] == [500, 300]
    by_source = OFFICIAL["conditioned"].by_source
    assert sum(by_source.values()) == 300 and (by_source["ar"], by_source["bn"], by_source["sw"]) == (33, 27, 30)


def test_files_of_failed_back_translations_are_left_out(folder):
    path = folder / "qa_variants.sw.failed_backtranslation.json"
    path.write_text(json.dumps({"failed_backtranslation": [{"qa_id": "x"}]}))
    (folder / "holdout_qa.sw.culture_specific.failed_backtranslation.json").write_text("not even JSON")
    assert read_release(folder, languages=TWO, counts=None) == release(languages=TWO)


def test_official_extras_are_read_over_and_the_model_is_kept(folder):
    path = folder / "qa_variants.en.json"

    def extras(content):
        content.update(model="a large model", warnings=["w"], summary={"n": 1})
        first_pair(content)["target"]["card"]["eval_priority"] = "high"
        first_question(content).update(translation_status="accepted", backtranslation_status="passed")

    edit(path, extras)
    read = read_release(folder, languages=TWO, counts=None)
    assert read == replace(release(languages=TWO), provenance=read.provenance)
    assert read.provenance["model"] == "a large model"


def test_the_role_of_a_holdout_question_is_not_read(folder):
    def as_target(content):
        content["holdout_cards"][0]["qa_variants"][0]["topic_role"] = "target"

    edit(folder / "holdout_qa.sw.json", as_target)
    assert read_release(folder, languages=TWO, counts=None).units("holdout", "common-goal")


@pytest.mark.parametrize(
    "name", [file_name("qa_variants", "sw", "conditioned"), file_name("holdout_qa", "en", "common-goal")]
)
def test_a_missing_language_is_named(folder, name):
    (folder / name).unlink()
    with pytest.raises(KBookError, match=f"{name}: a file of the release is missing"):
        read_release(folder, languages=TWO, counts=None)


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ({"conditioned": Counts(1, 3, 1, {"fr": 2})}, "3 pairs of units for fr, not 2"),
        ({"conditioned": Counts(1, 3, 1, {"ar": 33})}, "0 pairs of units for ar, not 33"),
        ({"conditioned": Counts(2, 3, 1, {})}, "1 topic pairs, not 2"),
        ({"conditioned": Counts(1, 4, 1, {})}, "3 pairs of units, not 4"),
        ({"conditioned": Counts(1, 3, 0, {})}, "1 holdout units, not 0"),
        (OFFICIAL, "qa_variants.en.json: 1 topic pairs, not 50"),
    ],
)
def test_other_counts_are_refused_with_both_numbers(folder, sizes, message):
    with pytest.raises(KBookError, match=message):
        read_release(folder, languages=TWO, counts={**SIZES, **sizes})


MATCHED, HOLDOUT = "qa_variants.sw.json", "holdout_qa.sw.json"


def no_answer(content):
    del first_question(content)["expected_answer"]


def empty_statement(content):
    first_pair(content)["neighbor"]["card"]["fact_statement"] = " "


def aliases_are_text(content):
    first_question(content)["answer_aliases"] = "x"


def other_language(content):
    first_question(content)["language"] = "de"


def other_layer(content):
    first_question(content)["variant_layer"] = "surface"


def other_side(content):
    first_question(content)["topic_role"] = "neighbor"


def sides_swapped(content):
    pair = first_pair(content)
    pair["target_qa_variants"], pair["neighbor_qa_variants"] = pair["neighbor_qa_variants"], pair["target_qa_variants"]


def three_questions(content):
    first_pair(content)["target_qa_variants"].pop()


def question_twice(content):
    variants = first_pair(content)["target_qa_variants"]
    variants[2]["qa_id"] = variants[1]["qa_id"]


def pair_twice(content):
    pairs = content["topic_pairs"][0]["knowledge_card_pairs"]
    pairs[1]["knowledge_pair_id"] = pairs[0]["knowledge_pair_id"]


def unit_twice(content):
    pairs = content["topic_pairs"][0]["knowledge_card_pairs"]
    pairs[1]["target"]["card"]["card_id"] = pairs[0]["target"]["card"]["card_id"]


def failed_question(content):
    first_question(content)["backtranslation_status"] = "failed"


def pair_lost(content):
    content["topic_pairs"][0]["knowledge_card_pairs"].pop()


def pairs_no_list(content):
    content["topic_pairs"] = {"a": 1}


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (no_answer, f"{COMMON}--0, {COMMON}-forget-0-sw-0: field 'expected_answer' is missing"),
        (empty_statement, f"{COMMON}--0, {COMMON}-retain-0: field 'fact_statement' is empty"),
        (aliases_are_text, "field 'answer_aliases' is empty or of another type"),
        (other_language, f"{COMMON}--0: question {COMMON}-forget-0-sw-0 is marked forget, de"),
        (other_layer, f"{COMMON}--0: its questions in sw are surface, surface, surface, surface"),
        (other_side, f"{COMMON}--0: question {COMMON}-forget-0-sw-0 of the target has another topic_role"),
        (sides_swapped, f"question {COMMON}-retain-0-sw-0 of the target has another topic_role"),
        (three_questions, f"{COMMON}--0: its questions in sw are core, surface, surface"),
        (question_twice, "stands for more than one question"),
        (pair_twice, f"id {COMMON}--0 stands for more than one pair of units"),
        (unit_twice, f"unit {COMMON}-forget-0 is used twice, as forget and forget"),
        (failed_question, f"{COMMON}-forget-0-sw-0: its backtranslation_status is 'failed'"),
        (pair_lost, f"it lacks pairs of units that the first language has: {COMMON}--1"),
        (pairs_no_list, "field 'topic_pairs' is empty or of another type"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_what_is_wrong_in_a_matched_file_is_named_with_file_and_id(folder, spoil, message):
    edit(folder / MATCHED, spoil)
    with pytest.raises(KBookError, match=message) as caught:
        read_release(folder, languages=TWO, counts=None)
    assert MATCHED in str(caught.value)


def also_matched(content):
    content["holdout_cards"][0]["source_card_id"] = f"{COMMON}-forget-0"


def unknown_topic_pair(content):
    content["holdout_cards"][0]["source_pair_id"] = "common_boats"


def surface_too(content):
    variants = content["holdout_cards"][0]["qa_variants"]
    variants.append(variants[0] | {"variant_layer": "surface", "qa_id": "y"})


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (also_matched, f"unit {COMMON}-forget-0 is used twice, as forget and holdout"),
        (unknown_topic_pair, "belongs to the unknown topic pair common_boats"),
        (surface_too, f"{COMMON}-spare-0: its questions in sw are core, surface"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_what_is_wrong_in_a_holdout_file_is_named_with_file_and_id(folder, spoil, message):
    edit(folder / HOLDOUT, spoil)
    with pytest.raises(KBookError, match=message) as caught:
        read_release(folder, languages=TWO, counts=None)
    assert HOLDOUT in str(caught.value)


@pytest.mark.parametrize("content", [b"{", b"\xff\x00", b"[]", b"[" * 100_000], ids=["cut", "binary", "list", "deep"])
def test_a_file_that_is_no_json_object_is_named(folder, content):
    (folder / MATCHED).write_bytes(content)
    with pytest.raises(KBookError, match=f"{MATCHED}: is no JSON"):
        read_release(folder, languages=TWO, counts=None)


def test_a_conditioned_pair_without_a_source_language_is_named(folder):
    def rename(content):
        content["topic_pairs"][0]["pair_id"] = "bridges"

    edit(folder / file_name("qa_variants", "en", "conditioned"), rename)
    with pytest.raises(KBookError, match="culture_specific.json, bridges: unknown source language"):
        read_release(folder, languages=TWO, counts=None)
    assert source_of(FRENCH, "conditioned") == "fr"
