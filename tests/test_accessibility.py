"""Accessibility: closed forms of the measures, and the averages by hand."""

import doctest
import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbook.construction.providers import NoUsableReply
from kbook.construction.world_provider import WorldProvider
from kbook.corpora.languages import LANGUAGES
from kbook.corpora.units import FAMILY, QA
from kbook.corpora.worlds import load_world
from kbook.scoring import accessibility as module
from kbook.scoring.accessibility import (
    COLUMNS,
    RuleJudge,
    accessibility,
    answer_values,
    cross_mean,
    exact_match,
    judged,
    normalised,
    repeat_references,
    rouge_l_f1,
    similarity,
    source_and_cross,
    source_and_cross_by,
    source_mean,
    unit_means,
)

NAN = float("nan")


class Letters:
    """An encoder whose vector is the text's share of a and b."""

    name = "letters"

    def encode(self, texts):
        counts = np.array([[text.count("a"), text.count("b"), 1e-9] for text in texts], dtype=np.float32)
        return counts / np.linalg.norm(counts, axis=1, keepdims=True)


def qa(language="en", answer="14 September", role="forget", layer="core"):
    return QA("q", role, layer, language, "When?", answer)


def frame(*rows):
    """Rows of source, language, role, layer, unit and value."""
    full = [("npo", "common-goal", s, t, r, la, "em", "pair", u, v) for s, t, r, la, u, v in rows]
    return pd.DataFrame(full, columns=list(COLUMNS))


# ---- measures ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("expected", "said", "em"),
    [
        ("14 September 2032", "14. SEPTEMBER, 2032!", 1),
        ("the Ark", "Ａｒｋ", 0),
        ("Straße 5", "strasse 5", 1),
        ("48,213", "48 213", 1),
        ("48213", "48,213", 0),
        ("১৪", "14", 0),
        ("東京", "東京。", 1),
        ("a+b", "a b", 1),
        ("yes", "yes it is", 0),
        ("yes", None, 0),
        ("yes", "", 0),
        ("?!", "...", 0),
    ],
)
def test_exact_match_looks_past_case_width_and_punctuation_and_nothing_else(expected, said, em):
    assert exact_match(expected, said) == em


@given(st.text())
def test_normalising_twice_changes_nothing_more(text):
    once = normalised(text)
    assert exact_match(once, once) == float(once != "") and "  " not in once


def test_rouge_l_is_of_words_or_characters():
    """Two of four words; two of three characters and two of two."""
    assert rouge_l_f1("one two three four", "two four") == pytest.approx(2 * 1 * 0.5 / 1.5)
    assert rouge_l_f1("東京都", "東京") == pytest.approx(0.8)
    assert rouge_l_f1("x", None) == 0


def test_similarity_is_the_cosine_and_an_empty_answer_has_none():
    found = similarity(Letters(), ["a", "a", "aab", "a", "a"], ["aa", "b", "abb", None, " ?! "])
    assert found == pytest.approx([1, 0, 4 / 5, 0, 0], abs=1e-6)
    assert len(similarity(Letters(), [], [])) == 0


@pytest.mark.parametrize(
    ("said", "right"),
    [("It was on 14 September, they say", 1), ("September 14", 0), ("14", 0), (None, 0), ("1 14 September", 1)],
)
def test_the_rule_judge_wants_the_answer_said_unbroken(said, right):
    assert judged(RuleJudge(), qa(), said) == right


@pytest.mark.parametrize("code", LANGUAGES)
def test_the_provider_of_a_world_judges_in_every_language(code):
    world = load_world("almanac")
    fact = world.facts(world.topics[0])[0]
    asked = QA("q", "forget", "core", code, world.question(fact, code, 0), world.answer(fact, code))
    judge = WorldProvider(world)
    assert judged(judge, asked, world.answer(fact, code)) == 1
    assert judged(judge, asked, world.topics[1].name[code]) == 0


def test_a_judge_without_a_usable_reply_leaves_a_gap():
    class Mute:
        name = "mute"

        def judge(self, *_):
            raise NoUsableReply

    assert math.isnan(judged(Mute(), qa(), "something"))
    assert judged(Mute(), qa(), "  ") == 0


def test_answers_are_scored_by_all_measures_at_hand():
    values = answer_values(["14 September", "aab"], [None, "abb"], Letters())
    assert list(values) == ["em", "rouge-l", "s"]
    assert [list(each) for each in values.values()] == [[0, 0], [0, 0], [0, pytest.approx(4 / 5, abs=1e-6)]]
    assert list(answer_values(["x"], ["x"])) == ["em", "rouge-l"]


# ---- averages ----------------------------------------------------------------------------------------------


def test_realisations_are_averaged_before_units():
    """A unit of four (mean 1/4) and one of one (1): 5/8, where a mean over answers would be 2/5."""
    four = [("de", "en", "forget", layer, "u1", v) for layer, v in zip(FAMILY, [1, 0, 0, 0], strict=True)]
    scores = frame(*four, ("de", "en", "forget", "core", "u2", 1.0))
    assert unit_means(scores)["value"].tolist() == [0.25, 1.0]
    assert accessibility(scores)[["value", "n"]].values.tolist() == [[0.625, 2]]


def test_a_gap_is_left_out_of_its_unit_and_an_empty_unit_of_the_mean():
    scores = frame(
        ("de", "en", "forget", "core", "u1", 1.0),
        ("de", "en", "forget", "surface", "u1", NAN),
        ("de", "en", "forget", "core", "u2", NAN),
        ("de", "en", "forget", "core", "u3", 0.0),
    )
    assert accessibility(scores)[["value", "n"]].values.tolist() == [[0.5, 2]]


def test_source_is_the_diagonal_and_cross_the_rest():
    matrix = np.array([[0.1, 0.5, 0.6], [0.4, 0.2, 0.8], [1.0, 0.0, 0.3]])
    assert source_mean(matrix, [0, 1, 2]) == pytest.approx(0.2)
    assert cross_mean(matrix, [0, 1, 2]) == pytest.approx((0.55 + 0.6 + 0.5) / 3)
    assert source_mean(matrix[:1], [2]) == pytest.approx(0.6) and cross_mean(matrix[:1], [2]) == pytest.approx(0.3)


def test_a_matrix_with_a_gap_has_no_mean():
    assert math.isnan(cross_mean(np.array([[0.1, NAN]]), [0])) and source_mean(np.array([[0.1, NAN]]), [0]) == 0.1
    assert math.isnan(source_mean(np.empty((0, 0)), [])) and math.isnan(cross_mean(np.array([[0.1]]), [0]))
    lacking = frame(*[(s, t, "forget", "core", "u", 0.5) for s, t in ("ab", "ac", "bb", "bc")])
    lacking = lacking.replace({"source": {"a": "ar", "b": "bn"}, "language": {"b": "bn", "c": "de"}})
    found = source_and_cross(accessibility(lacking)).iloc[0]
    assert math.isnan(found["source"]) and math.isnan(found["cross"])


def test_cells_give_source_and_cross_of_each_role():
    cells = {("de", "de"): 0.0, ("de", "en"): 0.4, ("en", "de"): 0.2, ("en", "en"): 0.1}
    rows = [(s, t, "forget", "core", "u", v) for (s, t), v in cells.items()]
    rows += [(s, t, "retain", "core", "v", 1.0) for s, t in cells]
    found = source_and_cross(accessibility(frame(*rows))).set_index("role")
    assert found.loc["forget", ["source", "cross", "n_sources"]].tolist() == pytest.approx([0.05, 0.3, 2])
    assert found.loc["retain", ["source", "cross"]].tolist() == [1, 1]


@given(st.lists(st.floats(0, 1), min_size=2, max_size=10))
def test_a_model_that_no_language_made_has_one_number_for_source_and_cross(values):
    rows = [("", t, "forget", "core", "u", v) for t, v in zip(LANGUAGES, values, strict=False)]
    cells = accessibility(frame(*rows))
    found = source_and_cross(cells).iloc[0]
    assert found["source"] == pytest.approx(found["cross"]) == pytest.approx(np.mean(values))
    assert found["n_sources"] == len(values) and len(repeat_references(cells)) == len(values) ** 2


def test_a_model_that_a_language_made_is_not_repeated():
    cells = accessibility(frame(("de", "de", "forget", "core", "u", 0.1), ("de", "en", "forget", "core", "u", 0.5)))
    assert repeat_references(cells).equals(cells)
    found = source_and_cross(cells).iloc[0]
    assert (found["source"], found["cross"]) == (0.1, 0.5)


@pytest.mark.parametrize(("by", "values"), [("layer", ("core", "surface")), ("topic", ("p1", "p2"))])
def test_a_part_of_the_questions_has_a_source_and_a_cross_of_its_own(by, values):
    cells = {("de", "de"): 0.0, ("de", "en"): 0.4, ("en", "de"): 0.2, ("en", "en"): 0.1}
    first = frame(*[(s, t, "forget", "core", "u", v) for (s, t), v in cells.items()])
    first, second = (first.assign(**{by: value}, unit=value) for value in values)
    found = source_and_cross_by(pd.concat([first, second.assign(value=1.0)]), by).set_index(by)
    assert found.loc[values[0], ["source", "cross"]].tolist() == pytest.approx([0.05, 0.3])
    assert found.loc[values[1], ["source", "cross", "n_sources"]].tolist() == [1, 1, 2]
    assert by in source_and_cross_by(first[:0], by).columns


def test_the_example_holds():
    assert doctest.testmod(module).failed == 0
