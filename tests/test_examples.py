"""The example transcripts are what their module writes, and each invented agent shows what it was invented for."""

import pytest

from kbook.corpora.examples import AGENTS, N, write_examples
from kbook.paths import data_folder
from kbook.scoring.folder import score_folder
from kbook.scoring.panel import Subject

SHIPPED = data_folder() / "examples" / "transcripts"


@pytest.fixture(scope="module")
def panels():
    scored = {rule: score_folder(SHIPPED, rule=rule) for rule in ("published", "strict")}
    return {rule: each.panels["demo"] for rule, each in scored.items()}


def verdict(panel, lane, method):
    (found,) = [v for v in panel.verdicts if v.subject == Subject("demo", lane, method)]
    return found


def test_the_shipped_files_are_those_that_are_written(tmp_path):
    write_examples(tmp_path)
    assert {f.name: f.read_bytes() for f in tmp_path.iterdir()} == {f.name: f.read_bytes() for f in SHIPPED.iterdir()}


def test_every_agent_answers_every_query(panels):
    cells = panels["published"].cells
    assert {cell.key.method for cell in cells} == set(AGENTS) and {cell.n for cell in cells} == {N}


def test_who_forgets_whom_it_should_is_refused_nothing(panels):
    for panel in panels.values():
        vague = verdict(panel, "P", "vague")
        assert vague.k_class.kind == "K-REF ∞" and vague.selectivity.kind == "preserved" and vague.rank == 1


def test_who_only_spells_otherwise_forgets_under_one_matcher_alone(panels):
    assert verdict(panels["published"], "P", "spell").k_class.kind == "K-REF"
    assert verdict(panels["strict"], "P", "spell").k_class.kind == "measured failure"


def test_who_stammers_leaks_nothing_and_is_not_eligible(panels):
    stammer = verdict(panels["published"], "P", "stammer")
    assert stammer.k_class.kind == "K-REF ∞" and stammer.k_score.value == 0 and stammer.eligible is False


def test_who_hushes_is_clean_for_the_observer_of_the_answer_only(panels):
    hush = verdict(panels["published"], "R-struct", "hush")
    assert hush.flipped and hush.k_class.kind == "K-SUP" and "no retain cell" in " ".join(hush.reasons)
