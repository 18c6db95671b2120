import pytest
from transcript_factory import golden_panel, key, rows

from kbook.scoring.cells import score_rows
from kbook.scoring.notices import NOTICES, Notice
from kbook.scoring.panel import judge

SEEDS = (0, 137, 271)


def cells(method, seeds=SEEDS, splits=("forget", "retain"), n=4, **name):
    return [score_rows(rows(n, 2), key(method, split, seed, **name)) for split in splits for seed in seeds]


def notices(made, code, **more):
    return [str(warning) for warning in judge(made, **more).warnings if warning.code == code]


def verdict(made, method="eco"):
    return next(found for found in judge(made).verdicts if found.subject.method == method)


def test_control_complete_table_lacks_nothing():
    assert judge(cells("none") + cells("eco")).warnings == ()
    assert golden_panel().warnings == ()


def test_pool_without_a_seed_that_its_lane_has_is_named_with_both():
    made = cells("none") + cells("eco", seeds=(0,), splits=("forget",)) + cells("eco", splits=("retain",))
    assert notices(made, "seeds_missing") == [
        "demo P eco forget: an incomplete pool of seeds: 0, without 137, 271",
    ]


def test_baseline_without_a_seed_of_the_method_is_named_too():
    made = cells("none", seeds=(0, 137)) + cells("eco")
    assert [text.split(":")[0] for text in notices(made, "seeds_missing")] == [
        "demo P none forget",
        "demo P none retain",
    ]


def test_variants_and_lanes_have_pools_of_their_own():
    made = cells("none") + cells("none", seeds=(0,), variant="strong") + cells("none", seeds=(1,), lane="C")
    assert notices(made, "seeds_missing") == []


def test_rows_without_a_partner_are_counted_on_both_sides():
    made = cells("none", n=5) + cells("eco", n=4)
    assert notices(made, "rows_unpaired")[0] == (
        "demo P eco forget: 3 rows of the baseline have no partner and are left out (seeds compared: 0, 137, 271)"
    )


def test_lane_without_a_cell_of_a_method_is_named_unless_it_does_not_apply():
    made = cells("none") + cells("eco") + cells("none", lane="C")
    assert notices(made, "lane_not_measured") == [
        "demo C eco: no cell of this method in this lane, and no reason why it does not apply"
    ]
    assert notices(made, "lane_not_measured", not_applicable={("C", "eco"): "acts on weights"}) == []


@pytest.mark.parametrize(
    ("made", "reason"),
    [
        (cells("none") + cells("eco", splits=("forget",)), "there is no retain cell of eco"),
        (cells("none", splits=("forget",)) + cells("eco"), "there is no retain cell of the baseline"),
        (
            cells("none", seeds=(0,)) + cells("eco", splits=("forget",)) + cells("eco", (1,), ("retain",)),
            "no retain rows in common with the baseline",
        ),
    ],
    ids=["of the method", "of the baseline", "other seeds"],
)
def test_without_retain_the_verdict_says_what_is_missing_and_what_it_costs(made, reason):
    found = verdict(made)
    assert found.k_score.value != found.k_score.value, "nan"
    assert f"{reason}, hence no Δ_sel and no K-Score" in found.reasons


def test_baseline_without_retain_and_with_one_seed_says_both():
    found = verdict(cells("none", seeds=(0,), splits=("forget",)), "none")
    assert found.provisional and found.reasons[1:] == (
        "there is no retain cell of the baseline, hence no Δ_sel and no K-Score",
        "provisional: fewer than 3 seeds (0)",
    )


def test_notice_reads_as_place_and_matter():
    assert str(Notice("cell_empty", "demo", "no rows")) == "demo: no rows"
    assert str(Notice("cell_empty", "", "no rows")) == "no rows" and "cell_empty" in NOTICES
