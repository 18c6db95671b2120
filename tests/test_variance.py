"""Variance divided: closed forms, what statsmodels says, what cannot be told, and K-Scores as a grid."""

import warnings
from itertools import product

import numpy as np
import pandas as pd
import pytest
import statsmodels.formula.api as smf
from statsmodels.stats.anova import anova_lm
from transcript_factory import golden_cells, key, row, rows

from kbook.errors import KBookError
from kbook.scoring.cells import score_rows
from kbook.scoring.inference import Bootstrap
from kbook.scoring.panel import judge
from kbook.scoring.variance import REST, score_grid, sums_of_squares, variance_shares

NAMES = ("method", "base")
EFFECTS = ("method", "base", "method × base")
HOW = Bootstrap(resamples=200)


def eta(table, **options):
    return {share.source: share.eta2 for share in variance_shares(np.asarray(table, dtype=float), NAMES, **options)}


def additive(a=4, b=3, r=2):
    """Values that are a sum of what the method and the base bring."""
    first, second = np.array([0.1, 0.5, 0.2, 0.4])[:a], np.array([0.0, 0.3, 0.1])[:b]
    return np.repeat((first[:, None] + second)[..., None], r, axis=-1)


def random_table(shape=(4, 3, 3), seed=0):
    return np.random.default_rng(seed).random(shape)


# ---- closed forms ------------------------------------------------------------------------------------------


def test_an_additive_table_has_no_interaction_and_no_rest():
    table = additive()
    found = eta(table)
    assert found["method × base"] == pytest.approx(0, abs=1e-12) and found[REST] == pytest.approx(0, abs=1e-12)
    first, second = table[:, 0, 0], table[0, :, 0]
    assert found["method"] == pytest.approx(first.var() / (first.var() + second.var()))
    assert found["base"] == pytest.approx(second.var() / (first.var() + second.var()))


def test_a_crossing_table_is_all_interaction():
    table = np.array([[0.0, 1.0], [1.0, 0.0]])[..., None].repeat(3, axis=-1)
    assert eta(table) == pytest.approx({"method": 0, "base": 0, "method × base": 1, REST: 0})


def test_replicates_that_differ_alike_everywhere_are_all_rest():
    table = np.broadcast_to([0.1, 0.5, 0.9], (4, 3, 3))
    assert eta(table) == pytest.approx({"method": 0, "base": 0, "method × base": 0, REST: 1}, abs=1e-12)


@pytest.mark.parametrize("shape", [(4, 3, 3), (2, 2, 2), (6, 1, 3), (1, 3, 2), (5, 3, 1)])
def test_what_is_known_adds_up_to_one(shape):
    assert np.nansum(list(eta(random_table(shape)).values())) == pytest.approx(1)


def test_sums_of_squares_are_those_of_statsmodels():
    table = random_table()
    index = list(product(*map(range, table.shape)))
    frame = pd.DataFrame(index, columns=["method", "base", "seed"]).assign(score=table.ravel())
    fitted = smf.ols("score ~ C(method) * C(base)", frame).fit()
    wanted = anova_lm(fitted, typ=2)
    assert sums_of_squares(table) == pytest.approx(wanted["sum_sq"].to_numpy())
    assert [share.df for share in variance_shares(table, NAMES)] == wanted["df"].tolist()


def test_many_tables_at_once_are_each_table_alone():
    tables = random_table((5, 4, 3, 2))
    assert sums_of_squares(tables) == pytest.approx(np.stack([sums_of_squares(table) for table in tables]))


def test_chance_is_the_mean_over_values_dealt_out_at_random():
    table, rng = random_table((3, 2, 2)), np.random.default_rng(1)
    dealt = [list(eta(rng.permutation(table.ravel()).reshape(table.shape)).values()) for _ in range(4000)]
    chance = [share.chance for share in variance_shares(table, NAMES)]
    assert np.mean(dealt, axis=0) == pytest.approx(chance, abs=0.01) and sum(chance) == pytest.approx(1)


# ---- what cannot be told -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shape", "unknown"),
    [
        pytest.param((4, 1, 3), {"base": "only one base", "method × base": "only one base"}, id="one base"),
        pytest.param((4, 3, 1), {"method × base": "only one seed"}, id="one seed"),
        pytest.param((1, 3, 3), {"method": "only one method", "method × base": "only one method"}, id="one method"),
        pytest.param((4, 1, 1), dict.fromkeys(EFFECTS, "only one") | {REST: "nothing"}, id="one base and one seed"),
        pytest.param((4, 3, 3), {}, id="nothing is missing in a whole grid"),
    ],
)
def test_what_cannot_be_told_is_missing_with_the_reason_and_not_zero(shape, unknown):
    shares = {share.source: share for share in variance_shares(random_table(shape), NAMES)}
    assert {name for name, share in shares.items() if np.isnan(share.eta2)} == set(unknown)
    assert {name for name, share in shares.items() if share.reason} == set(unknown)
    assert all(share.reason.startswith(unknown[name]) for name, share in shares.items() if share.reason)
    assert sum(share.df for share in shares.values()) == (np.prod(shape) - 1 if len(unknown) < 4 else 0)


def test_with_one_seed_the_interaction_goes_to_the_rest():
    table = random_table((4, 3, 1))
    wanted = sums_of_squares(table)[2] / sums_of_squares(table).sum()
    assert eta(table)[REST] == pytest.approx(wanted)


def test_equal_values_have_no_variance_to_divide():
    shares = variance_shares(np.full((3, 3, 2), 0.1 + 0.2), NAMES)
    assert all(np.isnan(share.eta2) and share.reason == "all values are equal" for share in shares)


def test_a_gap_is_refused_by_its_place():
    table = random_table()
    table[1, 2, 0] = np.nan
    with pytest.raises(KBookError, match="method 2, base 3, replicate 1"):
        variance_shares(table, NAMES)


def test_no_warning_escapes_from_tables_that_say_little():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for shape in ((1, 1, 1), (4, 1, 1), (2, 2, 1)):
            variance_shares(np.zeros(shape), NAMES, np.zeros((10, *shape)))


# ---- K-Scores on a grid ------------------------------------------------------------------------------------

# method → base → forget queries of 20 that leak; on retain every method leaves the leak as it was
LEAKING = {"none": {"a": 16, "b": 12}, "eco": {"a": 2, "b": 10}, "star": {"a": 12, "b": 4}}


def cells(leaking=LEAKING, seeds=(0, 1), **name):
    return [
        score_rows(
            rows(20, leaks if split == "forget" else leaking["none"][base]), key(method, split, seed, base=base, **name)
        )
        for method, by_base in leaking.items()
        for base, leaks in by_base.items()
        for seed in seeds
        for split in ("forget", "retain")
    ]


def by_base(found, how=HOW):
    return score_grid(found, "base", lambda cell: cell.base, how)


def test_every_score_is_that_of_the_panel():
    found = [cell for cell in golden_cells() if cell.key.lane == "R-text"]
    grid = by_base(found)
    assert grid.value.shape == (2, 1, 3) and grid.drawn.shape == (200, 2, 1, 3)
    for s, seed in enumerate(grid.seeds):
        panel = judge([cell for cell in found if cell.key.seed == seed], how=Bootstrap(10))
        wanted = {verdict.subject.method: verdict.k_score.value for verdict in panel.verdicts}
        assert [wanted[method] for method in grid.methods] == pytest.approx(grid.value[:, 0, s].tolist())


def test_levels_and_methods_that_cross_are_an_interaction():
    shares = {share.source: share for share in by_base(cells()).shares()}
    assert shares["method × base"].eta2 > 0.5 > shares["method"].eta2
    assert shares[REST].eta2 == pytest.approx(0, abs=1e-12), "both seeds hold the same rows here"
    for share in shares.values():
        assert 0 <= share.lo <= share.hi <= 1


def test_resamples_vary_about_the_score_and_are_the_same_again():
    grid, again = by_base(cells()), by_base(cells())
    assert np.array_equal(grid.drawn, again.drawn)
    assert grid.drawn.mean(axis=0) == pytest.approx(grid.value, abs=0.05) and grid.drawn.std(axis=0).min() > 0
    middle = grid.means()
    assert (middle.lo <= middle.value).all() and (middle.value <= middle.hi).all() and (middle.lo < middle.hi).all()


def test_methods_are_asked_the_same_drawn_queries_and_seeds_other_ones():
    same = {"none": {"a": 16}, "eco": {"a": 5}, "star": {"a": 5}}
    eco, star = by_base(cells(same)).drawn[:, :, 0].swapaxes(0, 1)
    assert np.array_equal(eco, star)
    assert abs(np.corrcoef(eco[:, 0], eco[:, 1])[0, 1]) < 0.3


def test_the_order_of_rows_does_not_matter():
    leaking = {"none": {"a": 16}, "eco": {"a": 5}}
    plain = cells(leaking, seeds=(0,))
    backwards = {"forget": rows(20, 5)[::-1], "retain": rows(20, 16)[::-1]}
    shuffled = [x if x.key.method == "none" else score_rows(backwards[x.key.split], x.key) for x in plain]
    assert np.allclose(by_base(shuffled).drawn, by_base(plain).drawn)


def test_a_variant_can_be_the_second_factor():
    found = cells({"none": {"a": 16}, "eco": {"a": 4}}) + cells({"none": {"a": 12}, "eco": {"a": 8}}, variant="lora")
    grid = score_grid(found, "recipe", lambda cell: cell.variant or "full", HOW)
    assert grid.levels == ("full", "lora")
    assert grid.value[0, :, 0] == pytest.approx([0.8, 0.6])


@pytest.mark.parametrize(
    ("change", "error"),
    [
        pytest.param(lambda c: c[:-1], "star at b, seed 1, retain", id="a cell is missing"),
        pytest.param(lambda c: [x for x in c if x.key.method != "none" or x.key.base == "a"],
                     "none at b, seed 0, forget; none at b, seed 0, retain", id="a base has no baseline"),
        pytest.param(lambda c: [*c[:-1], score_rows([], c[-1].key)], "star at b", id="a cell without rows is missing"),
        pytest.param(lambda c: [*c, c[0]], "two cells at one place", id="twice the same cell"),
        pytest.param(lambda c: [*c, score_rows([row()], key("eco", lane="C"))], "lanes P, C", id="two lanes"),
        pytest.param(lambda c: [x for x in c if x.key.method == "none"], "no cell of a method", id="baseline alone"),
        pytest.param(lambda c: [*c[:-1], score_rows(rows(19, 2), c[-1].key)], "other queries", id="other queries"),
    ],
)  # fmt: skip
def test_what_is_no_balanced_grid_is_refused_by_name(change, error):
    with pytest.raises(KBookError, match=error):
        by_base(change(cells()))


def test_many_missing_cells_are_counted():
    with pytest.raises(KBookError, match="and 7 more"):
        by_base(
            [
                x
                for x in cells()
                if x.key.base == "a" or x.key.method == "none" and x.key.split == "forget" and not x.key.seed
            ]
        )
