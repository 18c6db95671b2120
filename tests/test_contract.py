"""The contract: the default of each part does nothing, and says so where it cannot."""

import pytest

from kbook.errors import KBookError
from kbook.keys import LANES
from kbook.methods.contract import FitContext, Guard, Verdict
from kbook.methods.registry import make_method, method_class, why_not


def test_the_baseline_does_nothing(tiny_base, people, tmp_path):
    guard = make_method("none").guard(FitContext(tiny_base, [], [], people, 0, tmp_path))
    assert guard == Guard()
    assert not guard.hooks and not guard.prefix
    assert guard.look("answer", people[0].address) == Verdict("pass")
    assert all(why_not(method_class("none"), lane) is None for lane in LANES)


def test_an_edit_depends_on_all_settings_unless_a_method_says_less():
    npo = make_method("npo", {"epochs": 3})
    assert npo.edit_settings == npo.settings.model_dump(mode="json") and npo.edit_settings["epochs"] == 3


def test_people_are_required_of_each_pool(tiny_base, people, tmp_path):
    context = FitContext(tiny_base, people[:2], people[2:3], people, 0, tmp_path)
    context.require("here", forget=2)
    with pytest.raises(
        KBookError, match="here: too few people in the forget fitting pool: 2, where 3 are needed.*n_fit_forget"
    ):
        context.require("here", forget=3)
    with pytest.raises(
        KBookError, match="here: too few people in the retain fitting pool: 1, where 2 are needed.*n_fit_retain"
    ):
        context.require("here", retain=2)


def test_a_method_that_edits_no_weights_says_so(tiny_base, people, tmp_path):
    with pytest.raises(NotImplementedError, match="none"):
        make_method("none").edit(FitContext(tiny_base, [], [], people, 0, tmp_path))
