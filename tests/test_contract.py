"""The contract: the default of each part does nothing, and says so where it cannot."""

import pytest

from kbook.keys import LANES
from kbook.methods.contract import FitContext, Guard, Verdict
from kbook.methods.registry import make_method, method_class, why_not


def test_the_baseline_does_nothing(tiny_base, people, tmp_path):
    guard = make_method("none").guard(FitContext(tiny_base, [], [], people, 0, tmp_path))
    assert guard == Guard()
    assert not guard.hooks and not guard.prefix
    assert guard.look("answer", people[0].address) == Verdict("pass")
    assert all(why_not(method_class("none"), lane) is None for lane in LANES)


def test_a_method_that_edits_no_weights_says_so(tiny_base, people, tmp_path):
    with pytest.raises(NotImplementedError, match="none"):
        make_method("none").edit(FitContext(tiny_base, [], [], people, 0, tmp_path))
