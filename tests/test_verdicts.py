import numpy as np
import pytest

from kbook.scoring.verdicts import k_class, k_score, or_ratio, provisional, selectivity

NAN = np.nan


@pytest.mark.parametrize(
    ("figures", "text"),
    [
        pytest.param((0.099, 0.0, 0.0, None, None), "substrate-broken", id="nothing to forget comes first"),
        pytest.param((0.50, 0.02, 0.0009, None, None), "K-REF ∞", id="at most 0.02 is left"),
        pytest.param((0.50, 0.02, 0.001, None, None), "K-REF 10×", id="0.02 is left, p not below 0.001"),
        pytest.param((0.50, 0.05, 0.049, None, None), "K-REF 10×", id="ten times less"),
        pytest.param((0.50, 0.06, 0.049, None, None), "K-REF 5×", id="five times less"),
        pytest.param((0.50, 0.20, 0.049, None, None), "K-REF 2×", id="two times less"),
        pytest.param((0.50, 0.40, 0.049, None, None), "K-REF 1.25×", id="below two its value"),
        pytest.param((0.50, 0.40, 0.049, "answer", "summary"), "K-REF 1.25×", id="less comes before elsewhere"),
        pytest.param((0.50, 0.48, 0.051, "answer", "summary"), "K-SUP", id="another channel dominates"),
        pytest.param((0.50, 0.48, 0.051, "answer", None), "K-SUP", id="no channel dominates any more"),
        pytest.param((0.50, 0.48, 0.051, "answer", "answer"), "measured failure", id="nothing changed"),
        pytest.param((0.50, 0.44, 0.051, "answer", "answer"), "ambiguous", id="lower, yet not significant"),
        pytest.param((0.50, 0.60, 0.001, "answer", "summary"), "ambiguous", id="significantly higher"),
        pytest.param((0.50, 0.40, 0.05, None, None), "ambiguous", id="p of exactly 0.05"),
        pytest.param((0.50, 0.50, NAN, None, None), "ambiguous", id="no test"),
    ],
)
def test_k_class(figures, text):
    label = k_class(*figures)
    assert label.text == text and text.startswith(label.kind)


def test_reason_of_a_k_class_names_its_figures():
    assert k_class(0.5, 0.1, 1e-9, None, None).reason == "leaks less: OR(all) 0.500 → 0.100, p_adj 1.0e-09"
    assert "answer → none" in k_class(0.5, 0.5, 1, "answer", None).reason
    assert "0.090 < 0.10" in k_class(0.09, 0.5, 1, None, None).reason


@pytest.mark.parametrize(("none", "method", "ratio"), [(0.5, 0.25, 2), (0.25, 0.5, 0.5), (0.5, 0, np.inf), (0, 0, NAN)])
def test_or_ratio(none, method, ratio):
    np.testing.assert_equal(or_ratio(none, method), ratio)


@pytest.mark.parametrize(
    ("figures", "text"),
    [
        pytest.param((0.60, 0.575, 0.06), "preserved", id="hardly moved"),
        pytest.param((0.60, 0.62, 0.06), "preserved", id="hardly moved upwards"),
        pytest.param((0.60, 0.30, 0.01), "broken (2.0×)", id="half is gone"),
        pytest.param((0.60, 0.40, 0.01), "weakened", id="less than half is gone"),
        pytest.param((0.40, 0.60, 0.01), "off-target gain", id="more is shown"),
        pytest.param((0.60, 0.40, 0.06), "ambiguous", id="less, yet not significant"),
        pytest.param((0.60, 0.59, 0.01), "ambiguous", id="significant, yet small"),
        pytest.param((0.60, 0.60, NAN), "ambiguous", id="no test"),
    ],
)
def test_selectivity(figures, text):
    assert selectivity(*figures).text == text


def test_k_score_is_the_product_of_its_three_factors():
    score = k_score(0.2, (0.9, 0.8), (0.1, 0.3))
    assert (score.suppression, score.selectivity, score.health) == pytest.approx((0.8, 0.9, 0.8))
    assert score.value == pytest.approx(0.8 * 0.9 * 0.8)
    assert not score.within_tolerance


def test_retain_gain_costs_as_much_as_loss_and_better_health_gains_nothing():
    assert k_score(0.2, (0.8, 0.9), (0.3, 0.1)).value == pytest.approx(0.8 * 0.9)
    assert k_score(0.2, (0.8, 0.84), (0.1, 0.1)).within_tolerance


def test_baseline_scores_what_it_does_not_show():
    assert k_score(0.7, (0.9, 0.9), (0.4, 0.4)).value == pytest.approx(0.3)


def test_without_retain_there_is_no_k_score_and_a_reason():
    score = k_score(0.2, (NAN, NAN), (0.1, 0.1))
    assert np.isnan(score.value) and "retain" in score.reason and score.suppression == pytest.approx(0.8)


def test_fewer_than_three_seeds_are_provisional():
    assert provisional((0, 137)) and not provisional((0, 137, 271))
