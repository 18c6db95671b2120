"""Tables of variance: who leads where, what is shared out, and what a small grid cannot tell."""

import numpy as np
import pytest
from transcript_factory import key, rows

from kbook.report import variance
from kbook.scoring.cells import score_rows
from kbook.scoring.inference import Bootstrap
from kbook.scoring.panel import judge

HOW = Bootstrap(resamples=100)
# method → base → forget queries of 20 that leak; on retain every method leaves the leak as it was
CROSSED = {"none": {"a": 16, "b": 16}, "eco": {"a": 2, "b": 12}, "star": {"a": 10, "b": 4}}
ALIKE = {"none": {"a": 16, "b": 16}, "eco": {"a": 2, "b": 4}, "star": {"a": 10, "b": 12}}


def judged(leaking, seeds=(0, 1), **name):
    return judge(
        score_rows(
            rows(20, leaks if split == "forget" else leaking["none"][base]), key(m, split, seed, base=base, **name)
        )
        for m, by_base in leaking.items()
        for base, leaks in by_base.items()
        for seed in seeds
        for split in ("forget", "retain")
    )


@pytest.fixture(scope="module")
def grid():
    return variance.base_grid(judged(CROSSED), HOW)


def test_scores_stand_base_by_base_between_their_ends(grid):
    frame = variance.score_frame(grid)
    assert list(zip(frame["base"], frame["method"], strict=True)) == [(b, m) for b in "ab" for m in ("eco", "star")]
    assert frame["K-Score"].tolist() == pytest.approx([0.9, 0.5, 0.4, 0.8])
    assert (frame["low"] <= frame["K-Score"]).all() and (frame["K-Score"] <= frame["high"]).all()
    assert frame["smallest seed"].tolist() == pytest.approx(frame["largest seed"].tolist())


def test_each_base_has_its_leader_and_methods_that_change_places_are_counted(grid):
    frame = variance.leader_frame(grid).set_index("base")
    assert frame["leader"].to_dict() == {"a": "eco", "b": "star"} and frame["next"].to_dict() == {
        "a": "star",
        "b": "eco",
    }
    assert frame.loc["a", "its K-Score"] == pytest.approx(0.5) and frame["leads in resamples"].between(0.9, 1).all()
    assert variance.order_in_words(grid) == "1 of 1 pairs of methods change places between two bases"
    same = variance.base_grid(judged(ALIKE), HOW)
    assert variance.order_in_words(same) == "0 of 1 pairs of methods change places between two bases"


def test_a_single_base_and_a_single_method_are_no_error_and_promise_nothing():
    one = variance.base_grid(judged({"none": {"a": 16}, "eco": {"a": 2}}, seeds=(0,)), HOW)
    assert variance.order_in_words(one).startswith("it takes two methods and two bases")
    assert variance.leader_frame(one)["next"].tolist() == [None]
    frame = variance.beside_published(variance.share_frame(one), variance.BASES)
    assert frame["η²"].isna().all()
    words = variance.unknown_in_words(frame)
    assert all(name in words for name in ("method (only one method)", "base (only one base)"))


def test_with_one_base_and_one_seed_nothing_is_told_and_each_source_says_why():
    found = judged({method: {"a": by_base["a"]} for method, by_base in CROSSED.items()}, seeds=(0,))
    frame = variance.share_frame(variance.base_grid(found, HOW)).set_index("source")
    assert frame["η²"].isna().all() and (frame[variance.WHY] != "").all()
    assert "only one seed" in frame.loc["method", variance.WHY] and frame.loc["base", variance.WHY] == "only one base"


def test_shares_stand_beside_the_published_ones_in_a_column_of_their_own(grid):
    frame = variance.beside_published(variance.share_frame(grid), variance.BASES).set_index("source")
    assert frame["η²"].sum() == pytest.approx(1) and frame[variance.CHANCE].sum() == pytest.approx(1)
    assert frame.loc["method × base", "η²"] > 0.5 and variance.unknown_in_words(frame.reset_index()) == "nothing"
    paper = frame["η² (published)"]
    assert paper[["method", "base", "method × base"]].tolist() == [0.64, 0.09, 0.24] and np.isnan(paper["the rest"])


def test_a_base_that_fails_its_gate_is_left_out_and_named():
    weak = {"none": {"a": 16, "b": 1}, "eco": {"a": 2, "b": 0}}
    panel = judged(weak)
    assert variance.base_grid(panel, HOW).levels == ("a",)
    assert variance.validity_in_words([panel]).endswith("left out where another passes: b.")
    gates = variance.validity_frame(panel)
    assert list(gates["base"]) == ["a", "a", "b", "b"] and gates["passed"].tolist() == [True, True, False, False]
    assert "variant" not in gates


def test_where_no_base_passes_the_words_say_that_nothing_is_shown_about_methods():
    panel = judged({"none": {"a": 1, "b": 1}, "eco": {"a": 0, "b": 0}})
    assert variance.base_grid(panel, HOW).levels == ("a", "b")
    assert variance.validity_in_words([panel]).startswith("No untreated agent passes")
    assert variance.validity_in_words([judged(CROSSED)]).startswith("Every untreated agent passes")


def test_recipes_are_levels_of_one_base():
    plain = judged({"none": {"a": 16}, "eco": {"a": 4}})
    lora = judged({"none": {"a": 12}, "eco": {"a": 8}}, variant="lora")
    both = judge([*plain.cells, *lora.cells], how=HOW)
    found = variance.recipe_grid(both, "full", HOW)
    assert found.levels == ("full", "lora") and found.value[0, :, 0] == pytest.approx([0.8, 0.6])
    frame = variance.by_base({"a": variance.share_frame(found)})
    assert list(frame.columns[:2]) == ["base", "source"] and set(frame["base"]) == {"a"}
    assert frame.set_index("source").loc["recipe", "η²"] == pytest.approx(1)
    gates = variance.untreated_frame({"a": both}, "full")
    assert gates["recipe"].tolist() == ["full", "full", "lora", "lora"] and list(gates.columns[:2]) == [
        "base",
        "recipe",
    ]
    assert gates["value"].tolist() == pytest.approx([0.8, 0.8, 0.6, 0.6])


def test_a_recipe_after_which_nothing_is_known_is_no_effect_but_left_out():
    """An adapter that stored nothing leaks nothing under any method: its K-Scores are high and say nothing."""
    plain, lora = (
        judged({"none": {"a": 16}, "eco": {"a": 4}}),
        judged({"none": {"a": 0}, "eco": {"a": 0}}, variant="lora"),
    )
    panel = judge([*plain.cells, *lora.cells], how=HOW)
    grid = variance.recipe_grid(panel, "full", HOW)
    assert grid.levels == ("full",)
    frame = variance.share_frame(grid).set_index("source")
    assert np.isnan(frame.loc["recipe", "η²"]) and frame.loc["recipe", variance.WHY] == "only one recipe"
    assert variance.validity_in_words([panel, plain], "full").endswith("passes: a lora.")


def test_published_leaders_and_shares_are_marked():
    leaders = variance.published_leaders().set_index("base")
    assert leaders.loc["Llama-3.1-8B", "leader"] == "UNDIAL-corrected"
    assert leaders["K-Score (published)"].tolist() == [0.343, 0.753, 0.496]
    shares = variance.published_shares()
    assert len(shares) == 7 and list(shares.columns) == ["quantity", "value (published)", "where"]
