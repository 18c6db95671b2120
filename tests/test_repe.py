"""RepE: the direction it finds, and what taking it out does."""

import pytest
import torch
from planted import linear_accuracy, shifted, states

from kbook.errors import KBookError
from kbook.methods.registry import make_method


def fitted(data, **settings):
    return make_method("repe", settings).fit(data, 0)


def direction(data):
    return fitted(data).edit.right[0]


def test_a_planted_shift_is_recovered():
    data = shifted(4000, axis=3)
    assert abs(float(direction(data)[3])) > 0.99
    assert float(fitted(data).facts["length"]) == pytest.approx(3.0, abs=0.1)


def test_the_whole_component_goes_and_nothing_is_left_to_take():
    data = shifted()
    erase, v = fitted(data).edit, direction(data)
    after = erase(data.values)
    assert (data.values @ v).abs().max() > 1
    assert (after @ v).abs().max() < 1e-9
    assert torch.allclose(erase(after), after)
    rest = data.values - torch.outer(data.values @ v, v)
    assert torch.allclose(after, rest)


def test_strength_nought_is_the_identity_and_two_mirrors():
    data = shifted()
    v = direction(data)
    assert torch.equal(fitted(data, alpha=0.0).edit(data.values), data.values)
    mirrored = fitted(data, alpha=2.0).edit(data.values)
    assert torch.allclose(mirrored @ v, -(data.values @ v))
    assert torch.allclose(mirrored.norm(dim=1), data.values.norm(dim=1))


def test_without_centring_the_common_part_goes_as_well():
    data = shifted()
    v, middle = direction(data), (data.of(True).mean(0) + data.of(False).mean(0)) / 2
    plain, centred = (fitted(data, centred=c).edit(data.values).mean(0) for c in (False, True))
    assert float(middle @ v) > 2
    assert abs(float(plain @ v)) < 1e-9
    assert float(centred @ v) == pytest.approx(float(middle @ v))


def test_a_linear_probe_falls_to_chance_and_another_direction_does_not_do_that():
    data = shifted()
    assert linear_accuracy(data.values, data.forget) > 0.9
    assert linear_accuracy(fitted(data).edit(data.values), data.forget) < 0.56
    elsewhere = fitted(shifted(axis=7, seed=1)).edit
    assert linear_accuracy(elsewhere(data.values), data.forget) > 0.9


def test_equal_means_are_no_direction():
    half = torch.randn(20, 8, dtype=torch.float64)
    same = states(torch.cat([half, half]), torch.arange(40) < 20)
    assert fitted(same).edit is None and fitted(same).facts["length"] == 0


def test_each_layer_has_its_own_direction(tiny_base, people, tmp_path):
    from kbook.methods.contract import FitContext

    context = FitContext(tiny_base, people[:3], people[3:6], people[:6], 0, tmp_path)
    [hook] = make_method("repe", {"depths": (0.0, 1.0)}).guard(context).hooks
    assert set(hook.edits) == {0, 1}
    assert not torch.allclose(hook.edits[0].right, hook.edits[1].right, atol=1e-3)


@pytest.mark.parametrize("settings", [{"depths": ()}, {"depths": (2,)}, {"alpha": float("nan")}, {"depth": 0.5}])
def test_bad_settings_are_refused(settings):
    with pytest.raises(KBookError, match="method repe"):
        make_method("repe", settings)
