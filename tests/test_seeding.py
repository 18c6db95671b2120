"""Generators by name."""

import torch

from kbook.methods.seeding import generator_for


def drawn(*names):
    return torch.rand(4, generator=generator_for(*names)).tolist()


def test_same_names_same_draws_and_other_names_other_draws():
    assert drawn(1, ("a", 2)) == drawn(1, ("a", 2))
    different = [drawn(1, ("a", 2)), drawn(1, ("a", 3)), drawn(2, ("a", 2)), drawn(1, "a", 2), drawn("1", ("a", 2))]
    assert len({tuple(d) for d in different}) == len(different)


def test_the_global_generator_is_not_touched():
    torch.manual_seed(3)
    expected = torch.rand(2)
    torch.manual_seed(3)
    drawn("x")
    assert torch.equal(torch.rand(2), expected)
