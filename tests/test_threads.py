"""Another number of threads is for a while, also where something goes wrong."""

import pytest
import torch

from kbook.models.threads import threads


@pytest.fixture(autouse=True)
def two_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize("n", [1, 3])
def test_inside_there_are_as_many_and_afterwards_as_before(n):
    with threads(n):
        assert torch.get_num_threads() == n
    assert torch.get_num_threads() == 2


def test_an_error_inside_changes_nothing_for_good():
    with pytest.raises(RuntimeError), threads(1):
        raise RuntimeError
    assert torch.get_num_threads() == 2
