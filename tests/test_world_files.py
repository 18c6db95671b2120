"""The files of a world: what is refused, and how a refusal names file and field."""

import shutil
from pathlib import Path

import pytest

from kbook.corpora.languages import LANGUAGES
from kbook.corpora.world_files import bare_words, read_world_files
from kbook.corpora.worlds import read_world
from kbook.errors import KBookError
from kbook.paths import data_folder

STORMS = "domains/storms.toml"


@pytest.fixture
def folder(tmp_path):
    """A copy of the authored world with one domain only."""
    copy = tmp_path / "almanac"
    shutil.copytree(data_folder() / "worlds" / "almanac", copy)
    for path in (copy / "domains").glob("*.toml"):
        if path.stem != "storms":
            path.unlink()
    return copy


def edit(folder: Path, file: str, old: str, new: str) -> None:
    path = folder / file
    text = path.read_text(encoding="utf-8")
    assert old in text, f"{old!r} is not in {file}"
    path.write_text(text.replace(old, new, 1), encoding="utf-8")


def test_an_untouched_copy_is_read(folder):
    assert len(read_world(folder).topics) == 8


LEAD = 'sw = "{topic} kilikuwa kimbunga kikali cha kitropiki."'
CORE = 'en = ["When did Storm {topic} form?", "On what date did Storm {topic} take shape?"'
ORVANE = 'name = { latin = "Orvane", ar = "أورفان"'

REFUSED = {
    "a missing language": (STORMS, LEAD, "", r"storms\.toml.*lead lacks sw"),
    "an unknown language": (STORMS, LEAD, f'{LEAD}\npt = "{{topic}} foi."', "unknown languages pt"),
    "a missing template": (STORMS, "[relations.formation-date.statement]", "[lead_]", "statement Field required"),
    "a missing wording": (STORMS, CORE, 'en = ["When did Storm {topic} form?"', "en has 3 questions, not 4"),
    "two wordings that differ by punctuation": (
        STORMS,
        CORE,
        'en = ["When did Storm {topic} form?", "When did Storm {topic} form ...?"',
        "en asks twice in the same words",
    ),
    "a question without its topic": (STORMS, CORE, CORE.replace(" {topic} form", " form"), "en must hold topic"),
    "a question with its answer": (STORMS, "take shape?", "take shape, {answer}?", "en must hold topic"),
    "a statement without its answer": (STORMS, "made landfall on {answer}", "made landfall", "en must hold"),
    "an empty form": (STORMS, ORVANE, ORVANE.replace("أورفان", ""), "ar is empty"),
    "a form in another script": (STORMS, ORVANE, ORVANE.replace("أورفان", "Orvane"), "ar has no letter of its script"),
    "a form that mixes scripts": (STORMS, ORVANE, ORVANE.replace("أورفان", "أورفاn"), "ar mixes scripts: n"),
    "a digit outside an answer": (STORMS, "take shape?", "take shape in 2032?", "en has a digit"),
    "a number without range": (STORMS, "range = [120, 290]\n", "", "a number needs measure and range"),
    "an unknown field": (STORMS, "title =", "titel = 1\ntitle =", "titel"),
    "an unknown person": (STORMS, '"Ilse Varnholt"', '"Ilse Nobody"', r"names\.toml.*unknown person 'Ilse Nobody'"),
    "an unknown place": (STORMS, '"Sulmere"', '"Nowhere"', "landfall-town = Nowhere is no place"),
    "a number out of range": (STORMS, "peak-wind = 212", "peak-wind = 2120", "peak-wind = 2120 is no number"),
    "a value of another type": (STORMS, "peak-wind = 212", 'peak-wind = "fast"', "peak-wind = fast is no number"),
    "a date before the one it follows": (STORMS, "landfall-date = 2032-09-14", "landfall-date = 2032-09-01", "no date"),
    "a topic that lacks a fact": (STORMS, "peak-wind = 212\n", "", "topic orvane: lacks peak-wind"),
    "a fact of no relation": (STORMS, "peak-wind = 212\n", "peak-wind = 212\nmood = 3\n", "unknown relation mood"),
    "an unknown measure": (STORMS, '"hectopascals"', '"bars"', "unknown measure bars"),
    "a topic in two pairs": (STORMS, 'target = "tamrek"', 'target = "orvane"', "orvane stands for two things"),
    "a pair of an unknown topic": (STORMS, 'target = "tamrek"', 'target = "tamrak"', "unknown topic tamrak"),
    "a conditioned pair without evidence": (STORMS, 'category = "public safety"', "", "needs source, category and"),
    "an unknown source language": (STORMS, 'source = "bn"', 'source = "xx"', "unknown source language xx"),
    "a name of two places": ("names.toml", "كالدوفا", "سولمير", "ar, place: سولمير stands for two things"),
    "one name for two topics": (STORMS, 'ja = "ベリスト"', 'ja = "オルヴェーン"', "ja, topics"),
    "one answer for target and neighbour": (STORMS, "peak-wind = 187", "peak-wind = 212", "have the same answer"),
    "an answer inside its question": (
        STORMS,
        "At which town did Storm {topic} come",
        "Past Sulmere, at which town did Storm {topic} come",
        "orvane/landfall-town is answered by its own question",
    ),
    "two relations asked alike": (
        STORMS,
        '"When did Storm {topic} make landfall?"',
        '"When did Storm {topic} form?"',
        "stands for two things",
    ),
    "broken TOML": (STORMS, "title =", "title", "is not TOML"),
}


@pytest.mark.parametrize("file, old, new, message", REFUSED.values(), ids=REFUSED)
def test_is_refused(folder, file, old, new, message):
    edit(folder, file, old, new)
    with pytest.raises(KBookError, match=message):
        read_world(folder)


@pytest.mark.parametrize("file", ["world.toml", "names.toml", "titles.toml"])
def test_a_missing_file_is_named(folder, file):
    (folder / file).unlink()
    with pytest.raises(KBookError, match=f"{file}.*missing"):
        read_world_files(folder)


def test_latin_stands_for_the_languages_in_latin_script_unless_they_have_their_own_form(folder):
    edit(folder, STORMS, ORVANE, ORVANE.replace('"Orvane"', '"Orvane", fr = "Orvène"'))
    name = read_world_files(folder).domains["storms"].topics["orvane"].name
    assert list(name) == list(LANGUAGES)
    assert {code for code, form in name.items() if form == "Orvane"} == {"de", "en", "es", "sw"}
    assert name["fr"] == "Orvène"


def test_wordings_are_compared_without_punctuation_and_case():
    assert bare_words("When, did {topic} form?") == bare_words("when did {topic} form") != bare_words("{topic} form")
