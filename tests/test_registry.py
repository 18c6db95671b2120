"""The registry: methods by name, their settings and lanes, and methods from a reader's own file."""

import json

import pytest

from kbook.digests import source_digests
from kbook.errors import KBookError
from kbook.keys import LANES
from kbook.methods import registry
from kbook.methods.contract import FitContext, Intervention, Verdict
from kbook.methods.registry import (
    METHODS,
    brought_digest,
    described,
    make_method,
    method_class,
    source_modules,
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


def test_a_new_method_leaves_the_runs_of_others_as_they_are():
    """No run depends on the registry, and a method on no other family's module."""
    for name in METHODS:
        assert "kbook.methods.registry" not in source_digests(source_modules(name))
    assert "kbook.methods.preference" not in source_digests(source_modules("eco"))
    assert "kbook.methods.preference" in source_digests(source_modules("npo"))


def test_a_brought_file_is_an_input_of_its_runs(own):
    name = f"{own}::Mute"
    assert source_modules(name) == ("kbook.methods", "kbook.methods.contract")
    before = brought_digest(name)
    own.write_text(OWN + "# changed\n")
    assert set(before) == {"method"} and brought_digest(name) != before
    assert brought_digest("eco") == {}


def test_what_a_brought_file_imports_is_source_of_its_runs(tmp_path):
    file = tmp_path / "own.py"
    file.write_text("import torch\nfrom kbook.methods.weights import TrainedMethod\n" + OWN)
    assert "kbook.methods.weights" in source_modules(f"{file}::Mute")
    assert "kbook.models.tuning" in source_digests(source_modules(f"{file}::Mute"))
    assert not [name for name in source_modules(f"{file}::Mute") if name.startswith("torch")]


def test_a_path_is_taken_from_where_one_is_or_from_the_checkout(monkeypatch, tmp_path):
    (tmp_path / "own.py").write_text(OWN)
    monkeypatch.setattr(registry, "project_root", lambda: tmp_path)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert method_class("own.py::Mute").name == "mute"
    (tmp_path / "elsewhere" / "own.py").write_text(OWN.replace('"mute"', '"nearer"'))
    assert method_class("own.py::Mute").name == "nearer"


WHOLE = {"name": "mine", "title": "Mine", "family": "text", "source": "a test"}
WRONG = {
    "a name that is taken": ({"name": "npo"}, "bears the name npo, which the book gives to another"),
    "no such family": ({"family": "magic"}, "is of no family: one of weights, embeddings"),
    "no such lane": ({"lanes": ("P", "Q")}, "names no lane: some of P, C, R-text, R-struct, and gives no reason"),
    "no lane": ({"lanes": (), "reason": "?"}, "names no lane"),
    "no reason": ({"lanes": ("P",)}, "gives no reason why it cannot reach the other lanes"),
    "no edit": ({"family": "weights"}, "edits weights without a method edit"),
    "settings of another kind": ({"Parameters": dict}, "has Parameters that are no pydantic model"),
}


@pytest.mark.parametrize(("change", "problem"), WRONG.values(), ids=WRONG)
def test_each_part_of_the_contract_is_checked(tmp_path, change, problem):
    file = tmp_path / "own.py"
    head = "from kbook.methods.contract import Intervention\nclass Mine(Intervention):\n"

    def write(parts):
        settings = parts.pop("Parameters", None)
        body = "".join(f"    {name} = {value!r}\n" for name, value in parts.items())
        file.write_text(head + body + (f"    Parameters = {settings.__name__}\n" if settings else ""))

    write(dict(WHOLE))
    assert method_class(f"{file}::Mine").title == "Mine"
    write(WHOLE | change)
    with pytest.raises(KBookError, match=f"own.py: class Mine .*{problem}"):
        method_class(f"{file}::Mine")


def test_a_class_that_leaves_something_open_is_refused(tmp_path):
    file = tmp_path / "own.py"
    head = "from kbook.methods.weights import TrainedMethod\nclass Mine(TrainedMethod):\n"
    file.write_text(head + "    name, title, source = 'mine', 'Mine', 'a test'\n")
    with pytest.raises(KBookError, match="class Mine does not define loss"):
        method_class(f"{file}::Mine")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("import torch\nx = (\n", r"own.py, line \d: SyntaxError"),
        ("\nimport no_such_module\n", "own.py, line 2: ModuleNotFoundError: No module named 'no_such_module'"),
        ("def f():\n    return 1 / 0\nf()\n", "own.py, line 2: ZeroDivisionError"),
        ("raise ValueError\n", "own.py, line 1: ValueError"),
    ],
    ids=["syntax", "a package that is not there", "in a function", "no message"],
)
def test_a_file_that_cannot_be_imported_is_named_with_the_line(tmp_path, text, problem):
    file = tmp_path / "own.py"
    file.write_text(text)
    with pytest.raises(KBookError, match=problem):
        method_class(f"{file}::Mine")


def test_a_method_is_described_by_its_class():
    found = {entry["name"]: entry for entry in described()}
    assert list(found) == list(METHODS)
    assert json.loads(json.dumps(found["eco"]["settings"]["k"])) == {
        "default": 1,
        "meaning": "first dimensions of the embedding that are corrupted",
    }
    assert found["npo"]["lanes"] == ("P",) and "weights" in found["npo"]["reason"]
