"""The contract: the registry, settings, lanes, and methods from a reader's own file."""

import pytest

from kbook.errors import KBookError
from kbook.keys import LANES
from kbook.methods.contract import (
    METHODS,
    FitContext,
    Guard,
    Intervention,
    Verdict,
    make_method,
    method_class,
    why_not,
)

OWN = """
from kbook.methods.contract import Guard, Intervention, Verdict

class Mute(Intervention):
    name, title, family, source = "mute", "Mute", "text", "an example"

    def guard(self, context):
        return Guard(inspect=lambda kind, text: Verdict("refuse", "no"))

class Nameless(Intervention):
    title = "?"

class Other:
    pass
"""


@pytest.fixture
def own(tmp_path):
    file = tmp_path / "own.py"
    file.write_text(OWN)
    return file


@pytest.mark.parametrize("name", METHODS)
def test_every_registered_method_keeps_the_contract(name):
    cls = method_class(name)
    assert issubclass(cls, Intervention) and cls.name == name
    assert cls.title and cls.source
    assert cls.family in ("weights", "embeddings", "activations", "logits", "text", "control")
    assert set(cls.lanes) <= set(LANES) and cls.lanes
    assert bool(cls.reason) == (set(cls.lanes) != set(LANES))
    assert make_method(name).edits_weights == (cls.family == "weights")


@pytest.mark.parametrize("name", METHODS)
def test_every_setting_says_what_it_is_and_cannot_be_changed(name):
    method = make_method(name)
    assert all(field.description for field in type(method.settings).model_fields.values())
    assert method.settings.model_config["frozen"] and method.settings.model_config["extra"] == "forbid"


@pytest.mark.parametrize("name", METHODS)
def test_an_unknown_setting_is_refused_with_those_there_are(name):
    with pytest.raises(KBookError, match=f"settings of {name}"):
        make_method(name, {"no_such_setting": 1})


def test_an_unknown_method_is_refused_with_the_nearest():
    with pytest.raises(KBookError, match="Did you mean star"):
        make_method("starr")


def test_an_unknown_lane_is_refused():
    with pytest.raises(KBookError, match="unknown lane"):
        why_not(method_class("none"), "R")


def test_the_baseline_does_nothing(tiny_base, people, tmp_path):
    guard = make_method("none").guard(FitContext(tiny_base, [], [], people, 0, tmp_path))
    assert guard == Guard()
    assert not guard.hooks and not guard.prefix
    assert guard.look("answer", people[0].address) == Verdict("pass")
    assert all(why_not(method_class("none"), lane) is None for lane in LANES)


def test_a_method_that_edits_no_weights_says_so(tiny_base, people, tmp_path):
    with pytest.raises(NotImplementedError, match="none"):
        make_method("none").edit(FitContext(tiny_base, [], [], people, 0, tmp_path))


def test_a_method_from_a_file(own, tiny_base, people, tmp_path):
    method = make_method(f"{own}::Mute")
    guard = method.guard(FitContext(tiny_base, [], [], people, 0, tmp_path))
    assert guard.look("thought", "hello") == Verdict("refuse", "no")


@pytest.mark.parametrize(
    "attribute, problem",
    [("Nameless", "lacks name, family, source"), ("Other", "not an Intervention"), ("Nobody", "not an Intervention")],
)
def test_a_class_that_breaks_the_contract_is_refused(own, attribute, problem):
    with pytest.raises(KBookError, match=problem):
        make_method(f"{own}::{attribute}")


def test_a_file_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(KBookError, match="there is no file"):
        make_method(f"{tmp_path}/nothing.py::Mute")
