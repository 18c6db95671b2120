"""R-LACE: the Fantope, both players' steps, what the game finds; and the variant that plays none."""

import pytest
import torch
from planted import linear_accuracy, shifted, states

from kbook.errors import KBookError
from kbook.methods.leace import leace
from kbook.methods.registry import make_method
from kbook.methods.rlace import Game, RLACEParameters, fantope, minimax, probe_accuracy
from kbook.methods.seeding import generator_for

SHORT = {"steps": 300}


def rlace(**settings):
    return make_method("rlace", {**SHORT, **settings})


def directions(edit):
    return edit.left


def symmetric(n=6, seed=0):
    drawn = torch.randn(n, n, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return drawn + drawn.T


# ---- the Fantope -------------------------------------------------------------------------------------------


def test_eigenvalues_are_lowered_and_cut_off():
    matrix = torch.diag(torch.tensor([2.0, 0.5, 0.0], dtype=torch.float64))
    assert torch.allclose(fantope(matrix, 1), torch.diag(torch.tensor([1.0, 0, 0], dtype=torch.float64)), atol=1e-9)


@pytest.mark.parametrize("rank", [1, 2, 5])
def test_what_comes_out_is_in_the_fantope_and_stays_there(rank):
    inside = fantope(symmetric(), rank)
    values = torch.linalg.eigvalsh(inside)
    assert torch.allclose(inside, inside.T)
    assert values.min() > -1e-9 and values.max() < 1 + 1e-9
    assert float(values.sum()) == pytest.approx(rank, abs=1e-6)
    assert torch.allclose(fantope(inside, rank), inside, atol=1e-6)


def test_it_is_the_nearest_such_matrix():
    matrix = symmetric()
    nearest = fantope(matrix, 2)
    others = [fantope(symmetric(seed=s), 2) for s in range(1, 30)]
    distance = (matrix - nearest).norm()
    assert all(distance <= (matrix - (nearest + 0.1 * (o - nearest))).norm() for o in others)


# ---- the game ----------------------------------------------------------------------------------------------


def test_each_player_steps_along_the_gradient_of_the_same_loss():
    data, settings = shifted(50, 6), RLACEParameters(batch=7, learning_rate=0.3, weight_decay=0.01)
    values, labels = data.values, data.forget.double()
    game = Game(values, labels, settings, generator_for("test"))
    game.probe = torch.linspace(-1, 1, 6, dtype=torch.float64)
    start, probe = game.projection.clone(), game.probe.clone()
    chosen = torch.randint(50, (7,), generator=_after_start(6))

    def loss(projection, weights, bias):
        symmetrised = (projection + projection.T) / 2
        logits = values[chosen] @ (weights - symmetrised @ weights) + bias
        return torch.nn.functional.binary_cross_entropy_with_logits(logits, labels[chosen])

    game.play()
    p = start.clone().requires_grad_()
    (uphill,) = torch.autograd.grad(loss(p, probe, 0.0), p)
    stepped = fantope(start + 0.3 * (uphill - 0.01 * start), 1)
    assert torch.allclose(game.projection, stepped, atol=1e-8)
    w, b = probe.clone().requires_grad_(), torch.zeros((), dtype=torch.float64, requires_grad=True)
    downhill, lean = torch.autograd.grad(loss(stepped, w, b), (w, b))
    assert torch.allclose(game.probe, probe - 0.3 * (downhill + 0.01 * probe), atol=1e-8)
    assert game.bias == pytest.approx(-0.3 * float(lean), abs=1e-8)


def _after_start(width):
    """The generator of the game above, after it has drawn its starting projection."""
    generator = generator_for("test")
    torch.randn((width, width), generator=generator, dtype=torch.float64)
    return generator


def test_a_fresh_probe_finds_what_there_is_and_no_more():
    data = shifted(2000, 6, by=2.0)
    labels = data.forget.double()
    found = probe_accuracy(data.values, labels, data.values, labels)
    assert found == pytest.approx(0.8413, abs=0.02)  # the normal distribution function at half the shift
    without = data.values.clone()
    without[:, 0] = 0
    assert probe_accuracy(without, labels, without, labels) < 0.56
    apart = shifted(40, 100)  # more dimensions than states: all of them can be told apart
    assert probe_accuracy(apart.values, apart.forget.double(), apart.values, apart.forget.double()) == 1


def test_a_label_of_one_axis_is_found_and_a_fresh_probe_falls_to_the_majority():
    data = shifted(1000, 10)
    found, facts = minimax(data, RLACEParameters(**SHORT), generator_for("test"))
    assert abs(float(found[0, 0])) > 0.99
    assert facts["accuracy_before"] > 0.9
    fit = rlace().fit(data, 0)
    assert linear_accuracy(fit.edit(data.values), data.forget) < 0.56
    assert abs(facts["accuracy_after"] - facts["majority"]) < 0.05


def test_another_direction_does_not_do_that():
    data = shifted(1000, 10)
    elsewhere = rlace().fit(shifted(1000, 10, axis=5, seed=1), 0).edit
    assert linear_accuracy(elsewhere(data.values), data.forget) > 0.9


@pytest.mark.parametrize("rank", [1, 3])
def test_what_is_erased_is_a_projection_of_the_rank_asked_for(rank):
    data = shifted(300, 10)
    kept = rlace(rank=rank).fit(data, 0).edit(torch.eye(10, dtype=torch.float64))
    assert torch.allclose(kept, kept.T) and torch.allclose(kept @ kept, kept)
    assert float(kept.trace()) == pytest.approx(10 - rank)


def test_for_white_states_it_is_the_direction_of_leace():
    data = shifted(2000, 6)
    centred = data.values - data.values.mean(0)
    scales, basis = torch.linalg.eigh(centred.T @ centred / len(centred))
    white = states(centred @ basis / scales.sqrt(), data.forget)
    ours = directions(rlace().fit(white, 0).edit)[:, 0]
    theirs = leace(white.values, white.forget, 0.01, shrinkage=False).edit.right[0]
    assert abs(float(ours @ theirs / theirs.norm())) > 0.98


def test_centred_or_not_is_about_the_common_part_alone():
    data = shifted(600, 8)
    plain, centred = (rlace(centred=c).fit(data, 0).edit for c in (False, True))
    u = directions(plain)[:, 0]
    assert torch.equal(plain.left, centred.left)
    assert abs(float(plain(data.values).mean(0) @ u)) < 1e-9
    assert torch.allclose(centred(data.values).mean(0), data.values.mean(0))


def test_more_directions_than_dimensions_are_all_of_them():
    found, facts = minimax(shifted(40, 3), RLACEParameters(rank=9, steps=20), generator_for("test"))
    assert found.shape == (3, 3) and facts["rank"] == 3


# ---- the covariance variant --------------------------------------------------------------------------------


def spread(n=600, width=10, axis=2):
    """States whose forget pool varies more along one axis, about the same mean."""
    data = shifted(n, width, by=0.0)
    values = data.values.clone()
    values[data.forget, axis] = 2 + 5 * (values[data.forget, axis] - 2)
    return states(values, data.forget)


def test_a_difference_of_covariance_is_found():
    fit = make_method("rlace_cov", {"rank": 1}).fit(spread(), 0)
    assert abs(float(directions(fit.edit)[2, 0])) > 0.99
    assert fit.facts["eigenvalues"][0] == pytest.approx(24, rel=0.2)


def test_directions_are_those_of_largest_size_whatever_the_sign():
    data = spread()
    turned = states(data.values, ~data.forget)  # now the retain pool varies more
    fit = make_method("rlace_cov", {"rank": 1}).fit(turned, 0)
    assert fit.facts["eigenvalues"][0] < -10
    assert abs(float(directions(fit.edit)[2, 0])) > 0.99


def test_it_is_blind_to_a_difference_of_means_which_the_game_is_not():
    data = shifted(1000, 10)
    blind, sighted = (m.fit(data, 0).edit for m in (make_method("rlace_cov", {"rank": 1}), rlace()))
    assert linear_accuracy(blind(data.values), data.forget) > 0.85
    assert linear_accuracy(sighted(data.values), data.forget) < 0.56


def test_equal_covariances_leave_nothing_to_erase():
    half = torch.randn(30, 6, dtype=torch.float64)
    fit = make_method("rlace_cov").fit(states(torch.cat([half, half + 1]), torch.arange(60) < 30), 0)
    assert fit.edit is None and fit.facts == {"eigenvalues": [], "rank": 0}


@pytest.mark.parametrize("settings", [{"rank": 0}, {"steps": 0}, {"learning_rate": 0}, {"components": 0}, {"k": 1}])
def test_bad_settings_are_refused(settings):
    with pytest.raises(KBookError, match="method rlace"):
        make_method("rlace", settings)
