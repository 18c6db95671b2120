"""The reference pages on scoring: what they name is there, and what is there is named."""

import ast
import re

import pytest

from kbook.paths import PACKAGE, project_root
from kbook.scoring.notices import NOTICES
from kbook.scoring.transcripts import NOTES

BOOK = project_root() / "book"
RULES, FILES = ((BOOK / f"{name}.md").read_text(encoding="utf-8") for name in ("scoring_rules", "score_files"))
PINNED = re.findall(r"\{download\}`(test_\w+) </(tests/test_\w+\.py)>`", RULES + FILES)


@pytest.mark.parametrize(("name", "file"), PINNED, ids=[name for name, _ in PINNED])
def test_test_that_a_page_names_is_in_the_file_that_it_links(name, file):
    tree = ast.parse((project_root() / file).read_bytes())
    assert name in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


def test_every_rule_has_a_source_and_a_test():
    rules = re.findall(r"^- (.+(?:\n  .+)*)$", RULES, re.MULTILINE)
    assert len(rules) > 35
    for rule in rules:
        source = re.search(r"\\\n  \*(.+)\* · \{download\}`test_\w+ </tests/test_\w+\.py>`$", rule)
        assert source and re.search(r"paper|public|ours", source[1]), rule


@pytest.mark.parametrize(("name", "text"), [*NOTICES.items(), *NOTES.items()])
def test_every_warning_is_explained(name, text):
    assert f"| `{name}` | {text} |" in FILES


def test_every_warning_that_is_given_is_in_the_list_and_the_other_way_round():
    given = set()
    for path in (PACKAGE / "scoring").glob("*.py"):
        given |= set(re.findall(r'Notice\(\s*"(\w+)"', path.read_text(encoding="utf-8")))
    assert given == set(NOTICES)
