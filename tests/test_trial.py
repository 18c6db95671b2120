"""What is told of a class that breaks the contract: something for each, and nothing of one that keeps it."""

import pytest

from kbook.methods.trial import FAULTS, refusals, told

SOUND = 'class Mine(Intervention):\n    name, title, family, source = "mine", "Mine", "text", "a paper"\n'


def test_a_class_that_keeps_the_contract_is_told_nothing():
    assert told(SOUND) == ""


@pytest.mark.parametrize("what", FAULTS)
def test_each_fault_is_told_with_the_file_and_without_the_folder(what):
    said = told(FAULTS[what])
    assert said.startswith("mine.py") and "/tmp" not in said and said.count("\n") == 0


def test_each_is_told_something_else():
    found = refusals()
    assert [row["what is wrong"] for row in found] == list(FAULTS)
    assert len({row["what you are told"] for row in found}) == len(FAULTS)
