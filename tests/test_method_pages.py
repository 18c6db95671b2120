"""The reference of methods: a page for each with all its parts, and facts that are the registry's."""

import json
import re
from typing import get_args

import pytest
import yaml

from kbook.chapters import toc_pages
from kbook.keys import LANES
from kbook.methods.registry import METHODS, described, method_class, source_modules
from kbook.paths import project_root
from kbook.report.method_pages import FACTS, INDEX, facts, generated_parts, in_order, overview, settings

ROOT = project_root()
FOLDER = ROOT / "book" / "methods"
PAGES = {path.stem: path.read_text(encoding="utf-8") for path in sorted(FOLDER.glob("*.md"))}
ENTRIES = {entry["name"]: entry for entry in described()}
SECTIONS = ["Idea", "Formula", "What to know"]
NO_SETTING = {"no_op", "stopped", "idk", "npo_KL"}
"""What pages name in code beside settings and their values: facts of runs, names in public code."""
SAMPLE = {
    "name": "own",
    "title": "<b>Own</b>",
    "family": "text",
    "lanes": ("C", "P"),
    "reason": "no *index* there",
    "source": "nobody",
    "settings": {"pair": {"default": (0.1, 2.0), "meaning": "two | numbers"}, "on": {"default": True, "meaning": "?"}},
}


def plain(text):
    """Take back the escapes of generated text."""
    return re.sub(r"\\([!-/:-@\[-`{-~])", r"\1", text)


def terms(part):
    return dict(re.findall(r"^(\S[^\n]*)\n: ([^\n]+)$", part, re.MULTILINE))


def rows(part):
    lines = [line for line in part.splitlines() if line.startswith("| ")]
    return [[plain(cell) for cell in line[2:-2].split(" | ")] for line in lines[2:]]


# ---- pages -------------------------------------------------------------------------------------------------


def test_every_method_has_a_page_and_every_page_a_method():
    assert set(PAGES) == {*METHODS, INDEX}


@pytest.mark.parametrize("name", METHODS)
def test_page_has_its_label_its_sections_and_both_generated_parts(name):
    page = PAGES[name]
    assert page.startswith(f"(method-{name})=\n```{{include}} ../chapters/{FACTS}/{name}.md\n```\n")
    assert page.endswith(f"\n```{{include}} ../chapters/{FACTS}/{name}-settings.md\n```\n")
    sections = re.findall(r"^## (.+)\n\n([^#]+)", page, re.MULTILINE)
    assert [title for title, _ in sections] == SECTIONS
    assert "$$" in sections[1][1] and re.search(r"\*\*Which variant\.\*\*.+\*\*Pitfalls\.\*\*", page, re.DOTALL)


def test_pages_stand_in_the_reference_in_the_order_of_the_table():
    content = yaml.safe_load((ROOT / "book" / "_toc.yml").read_text(encoding="utf-8"))
    (reference,) = (part["chapters"] for part in content["parts"] if part["caption"] == "Reference")
    (index,) = (entry for entry in reference if entry["file"] == "book/methods/index")
    listed = [entry["file"] for entry in index["sections"]]
    assert listed == [f"book/methods/{entry['name']}" for entry in in_order(ENTRIES.values())]
    assert [page for page in toc_pages(ROOT) if page.startswith("book/methods/")] == [index["file"], *listed]


@pytest.mark.parametrize("name", PAGES)
def test_what_a_page_refers_to_is_there(name):
    known = set(re.findall(r"^@\w+\{(\w+),$", (ROOT / "book" / "references.bib").read_text(), re.MULTILINE))
    cited = {key for keys in re.findall(r"\{cite\}`([^`]+)`", PAGES[name]) for key in keys.split(",")}
    assert cited <= known and (cited or name == INDEX)
    assert set(re.findall(r"\{ref\}`method-(\w+)`", PAGES[name])) <= set(METHODS)


@pytest.mark.parametrize("name", METHODS)
def test_prose_names_no_setting_that_the_method_lacks(name):
    fields = method_class(name).Parameters.model_fields
    known = {*fields, *(value for field in fields.values() for value in get_args(field.annotation))}
    prose = re.sub(r"\{\w+\}`[^`]*`", "", PAGES[name])
    assert set(re.findall(r"`([a-z]\w*)`", prose)) <= known | NO_SETTING


# ---- generated parts ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", METHODS)
def test_facts_are_those_of_the_registry(name):
    entry, module = ENTRIES[name], source_modules(name)[0]
    part = facts(entry, module)
    told = {term: plain(text) for term, text in terms(part).items()}
    assert plain(part).startswith(f"# {entry['title']}\n")
    assert told["Name"] == f"`{name}`, family *{entry['family']}*" and told["Source"] == entry["source"]
    assert told["Reaches"].startswith(", ".join(entry["lanes"]) + ": ")
    others = ", ".join(lane for lane in LANES if lane not in entry["lanes"])
    assert told.get("Does not reach") == (f"{others}: {entry['reason']}" if others else None)
    (file,) = re.findall(r"^\{download\}`(\S+) </\1>`$", told["Code"])
    assert f"class {method_class(name).__name__}(" in (ROOT / file).read_text(encoding="utf-8")


@pytest.mark.parametrize("name", METHODS)
def test_settings_are_those_of_the_registry(name):
    known = ENTRIES[name]["settings"]
    found = {setting: (json.loads(default), meaning) for setting, default, meaning in rows(settings(ENTRIES[name]))}
    as_json = {setting: json.loads(json.dumps(told["default"])) for setting, told in known.items()}
    assert found == {setting: (as_json[setting], told["meaning"]) for setting, told in known.items()}


def test_the_table_links_every_method_with_its_family_and_lanes():
    part = overview(in_order(ENTRIES.values()))
    lines = rows(part)
    assert [line[0] for line in lines] == [f"{{ref}}`method-{entry['name']}`" for entry in in_order(ENTRIES.values())]
    told = {name.strip("`"): (family, lanes) for _, name, family, lanes in lines}
    assert told == {name: (entry["family"], ", ".join(entry["lanes"])) for name, entry in ENTRIES.items()}
    assert {f"*{entry['family']}*" for entry in ENTRIES.values()} == set(terms(part))


def test_every_part_that_a_page_includes_is_made_and_no_other():
    made = generated_parts(ENTRIES.values(), {name: source_modules(name)[0] for name in METHODS})
    included = re.findall(rf"\{{include\}} \.\./chapters/{FACTS}/(\S+)\.md", "".join(PAGES.values()))
    assert sorted(made) == sorted(included)


def test_lanes_that_are_neither_all_nor_weights_get_no_reason_that_is_not_theirs():
    told = terms(facts(SAMPLE, "kbook.methods.own"))
    assert plain(told["Reaches"]) == "C, P"
    assert plain(told["Does not reach"]) == "R-text, R-struct: no *index* there"


def test_text_of_the_registry_is_no_markup():
    part = facts(SAMPLE, "kbook.methods.own")
    assert r"\<b\>Own\<\/b\>" in part and r"\*index\*" in part
    assert rows(settings(SAMPLE)) == [["pair", "[0.1, 2.0]", "two | numbers"], ["on", "true", "?"]]


def test_a_method_without_settings_says_so():
    assert "It has none." in settings({**SAMPLE, "settings": {}}) and "It has none." not in settings(SAMPLE)
