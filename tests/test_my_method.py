"""The example of a brought method: it keeps the contract, and is what it says, negation of a task vector."""

from dataclasses import replace

import pytest
import torch

from kbook.errors import KBookError
from kbook.methods.registry import make_method, method_class, why_not
from kbook.models.bases import load_base
from kbook.paths import data_folder

NAME = f"{data_folder() / 'examples' / 'my_method.py'}::TaskVector"
FAST = {"epochs": 4, "learning_rate": 1e-3, "warmup_steps": 0}


def edit(fitting, **settings):
    method = make_method(NAME, {**FAST, **settings})
    work = fitting.work / str(settings["scale"])
    work.mkdir(parents=True)
    facts = method.edit(replace(fitting, work=work))
    return facts, load_base(str(work)).model


def weights(model):
    return torch.cat([p.detach().flatten() for p in model.parameters()])


def test_it_keeps_the_contract_and_is_not_in_the_registry():
    cls = method_class(NAME)
    assert (cls.name, cls.family) == ("task_vector", "weights")
    assert why_not(cls, "P") is None and "the fact is not in the weights" in str(why_not(cls, "C"))
    with pytest.raises(KBookError, match="unknown method"):
        method_class("task_vector")


@pytest.mark.parametrize("settings", [{"scale": -1}, {"scal": 1}], ids=["out of range", "misspelt"])
def test_its_settings_are_checked(settings):
    with pytest.raises(KBookError, match="settings of task_vector: .*scale"):
        make_method(NAME, settings)


def test_forget_people_become_less_likely(fitting):
    facts, _ = edit(fitting, scale=1.0)
    nll = facts["nll"]
    assert nll["after"]["forget"] > nll["before"]["forget"] + 0.05
    assert facts["stopped"] == "" and facts["steps"] > 0


def test_without_a_scale_nothing_changes_and_twice_the_scale_goes_twice_as_far(fitting):
    start = weights(fitting.base.model)
    _, still = edit(fitting, scale=0.0)
    assert torch.equal(weights(still), start)
    moved = [weights(edit(fitting, scale=scale)[1]) - start for scale in (1.0, 2.0)]
    assert moved[0].abs().max() > 1e-4
    torch.testing.assert_close(moved[1], 2 * moved[0], rtol=1e-3, atol=1e-6)
