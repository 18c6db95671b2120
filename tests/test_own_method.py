"""Tables about a method of one's own: its settings as it declares them, and what its fit reported."""

import pytest

from kbook.methods.registry import description, method_class
from kbook.report.own_method import fit_frame, setting_frame, steps_in_words


def test_settings_are_those_of_the_class():
    frame = setting_frame(description(method_class("noise"))).set_index("setting")
    assert list(frame.index) == ["sigma"] and float(frame.loc["sigma", "default"]) > 0 and frame.loc["sigma", "meaning"]
    assert setting_frame(description(method_class("none")))["meaning"].tolist() == ["it has no settings"]


def test_a_fit_is_shown_by_what_it_did_to_likelihoods():
    nll = {"before": {"forget": 0.1, "retain": 0.2}, "after": {"forget": 2.1, "retain": 0.3}}
    frame = fit_frame({"nll": nll}).set_index("pool")
    assert frame.loc["forget", "change"] == pytest.approx(2.0) and frame.loc["retain", "change"] == pytest.approx(0.1)
    assert fit_frame({})["pool"].tolist() == ["none: the fit reports no likelihoods"]


@pytest.mark.parametrize(
    ("extra", "words"),
    [
        ({"steps": 40, "stopped": ""}, "40 steps, to the end"),
        ({"steps": 7, "stopped": "the loss rose"}, "7 steps, stopped early: the loss rose"),
        ({}, "nothing was trained"),
    ],
)
def test_how_a_fit_ended_in_words(extra, words):
    assert steps_in_words(extra) == words
