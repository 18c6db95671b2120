"""Tables of the construction chapter: they count what the funnel and the release hold, and nothing twice."""

from dataclasses import replace

import pytest
from tiny_world import TinyWorld, subjects
from unit_factory import COMMON, FRENCH, release, topic_pair

from kbook.construction.faults import Faults
from kbook.construction.judged import Funnel
from kbook.construction.pipeline import construct
from kbook.construction.stages import Settings
from kbook.construction.world_provider import WorldProvider
from kbook.corpora.languages import LANGUAGES, language
from kbook.corpora.units import ROLES, SETTINGS, Unit
from kbook.report import construction as tables
from kbook.report.figures import check_legible, shares
from kbook.report.published import MARK, published
from kbook.store import Store

WORLD = TinyWorld()
PAPER = published("cllpu_table4_statistics")


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    settings = Settings(quota=4, attempts=6)
    provider = WorldProvider(WORLD, Faults(0.15, 1))
    return construct(subjects(WORLD), provider, settings, store=Store(tmp_path_factory.mktemp("built")))


@pytest.mark.parametrize(
    ("reason", "who"),
    [
        ("", tables.KEPT),
        ("beyond the quota", tables.UNNEEDED),
        ("not drawn", tables.UNNEEDED),
        ("back-translation: role not kept", tables.BY_BACK),
        ("review: stiff", tables.BY_REVIEW),
        ("no usable reply", tables.SILENT),
        ("duplicate statement", tables.BY_RULE),
    ],
)
def test_every_reason_has_one_fate(reason, who):
    assert tables.fate(reason) == who


def test_the_funnel_shows_every_thing_once(built):
    frame = tables.funnel_frame(built.funnel)
    assert frame["n"].sum() == len(built.funnel.rows)
    assert frame.groupby("stage", sort=False)["share"].sum().tolist() == pytest.approx([1.0] * len(tables.STAGES))
    n = sum(step.n_kept for step in built.funnel.steps if step.stage == "translations")
    row = frame[frame["stage"].str.startswith("translations") & (frame["fate"] == tables.KEPT)]
    assert row["n"].item() == n
    check_legible(shares(frame, row="stage", part="fate", share="share").figure, "test")


def test_reasons_add_up_to_what_was_refused_in_either_setting(built):
    frame = tables.reason_frame(built.funnel)
    refused = frame[~frame["reason"].str.startswith("flagged")]
    for setting, column in (("common-goal", "common goal"), ("conditioned", "language-conditioned")):
        steps = [step for step in built.funnel.steps if step.setting == setting]
        assert refused[column].sum() == sum(step.n_in - step.n_kept for step in steps)
    assert not frame.duplicated(["stage", "reason"]).any()


def test_the_control_shows_what_was_planted_and_by_what_it_was_caught(built):
    frame = tables.control_frame(built.funnel)
    assert frame["planted"].sum() == sum(bool(row["fault"]) for row in built.funnel.rows)
    assert (frame[list(tables.CATCHERS)].sum(axis=1) == frame["planted"]).all() and (frame["missed"] == 0).all()
    by_fault = frame.set_index("fault")
    assert by_fault.loc["answer widened", tables.BY_BACK] == by_fault.loc["answer widened", "planted"]
    assert by_fault.loc["answer untranslated", tables.BY_REVIEW] == by_fault.loc["answer untranslated", "planted"]


def test_a_fault_that_was_kept_is_missed():
    row = {"stage": "translations", "setting": "conditioned", "reason": "", "flag": "", "fault": "f"}
    made = (row, row | {"flag": "odd"}, row | {"reason": "review: stiff"}, row | {"fault": ""})
    (found,) = tables.control_frame(Funnel(made)).to_dict("records")
    assert (found["planted"], found["missed"], found["flagged"], found[tables.BY_REVIEW]) == (3, 1, 1, 1)


def test_where_there_is_nothing_to_show_one_row_says_so():
    control, reasons = tables.control_frame(Funnel(())), tables.reason_frame(Funnel(()))
    assert control["fault"].tolist() == ["none planted"] and control["missed"].sum() == 0
    assert reasons["reason"].tolist() == ["nothing was refused"] and reasons["common goal"].sum() == 0
    assert tables.topic_frame(release(topic_pair(COMMON)))["target"].tolist() == ["none"]


def test_counts_stand_beside_the_published_ones_in_columns_of_their_own(built):
    frame = tables.statistics_frame(built.release, built.funnel, PAPER).set_index("product")
    assert len(frame) == len(PAPER.frame)
    ours, theirs = frame["common goal"], frame[f"common goal{MARK}"]
    assert theirs["all multilingual QAs"] == 45000
    n_pairs, n_spare = (len(built.release.units(role, "common-goal")) for role in ("forget", "holdout"))
    assert ours["canonical articles"] == 2 * ours["curated target-neighbour topic pairs"] == 4
    assert ours["selected relation-matched knowledge-unit pairs"] == n_pairs
    assert ours["canonical English QAs (core + variants)"] == 8 * n_pairs
    assert ours["multilingual forget QAs"] == ours["multilingual retain QAs"] == 40 * n_pairs
    assert ours["all multilingual QAs"] == 80 * n_pairs + 10 * n_spare
    assert ours["extracted knowledge units"] == built.funnel.n_kept("candidates", "common-goal")


def test_what_is_not_known_of_a_release_that_was_read_is_missing():
    frame = tables.statistics_frame(release(languages=("th", "sw")), None, PAPER).set_index("product")
    missing = frame.index[frame["common goal"].isna()].tolist()
    assert missing == [
        "extracted knowledge units",
        "canonical English QAs (core + variants)",
        "canonical English holdout QAs (core only)",
    ]
    assert frame["common goal"]["all multilingual QAs"] == 2 * (2 * 2 * 4 + 1)


def test_a_unit_is_shown_in_every_language():
    unit = release().units("forget", "common-goal")[0]
    frame = tables.unit_frame(unit)
    assert frame["language"].tolist() == [language(code).name for code in LANGUAGES]
    assert frame["question"].tolist() == [qas[0].question for qas in unit.qas.values()]
    assert tables.unit_frame(unit, "surface")["question"].tolist() == [qas[1].question for qas in unit.qas.values()]


def test_pairs_and_topics_are_shown_as_they_are():
    made = release(topic_pair(COMMON, n=3), topic_pair(FRENCH, n=3))
    assert [len(tables.pair_frame(made, setting)) for setting in SETTINGS] == [2, 2]
    assert tables.pair_frame(made, "conditioned", most=1)["topic pair"].tolist() == [FRENCH]
    assert tables.topic_frame(made)[["source", "rationale"]].values.tolist() == [["French", "why not"]]


def test_rounds_of_the_audit_are_summed_up(built):
    sheet = tables.audit_frame(built.release, 3, 50)
    rounds = tables.round_frame(sheet)
    assert rounds["questions"].tolist() == [50, 50, 50]
    assert (rounds[["forget units", "retain units", "holdout units"]].sum(axis=1) == 50).all()


def test_differing_questions_are_counted_among_the_facts_that_both_have(built, tmp_path):
    sound = construct(subjects(WORLD), WorldProvider(WORLD), Settings(quota=4), store=Store(tmp_path)).release
    n, wrong = tables.differing(built.release, sound)
    assert n > 100 and wrong == 0
    assert tables.differing(sound, release()) == (0, 0)
    other = replace(sound, topic_pairs=(_reworded(sound.topic_pairs[0]), *sound.topic_pairs[1:]))
    whole = sum(
        len(qas) for pair in sound.topic_pairs for role in ROLES for u in pair.units(role) for qas in u.qas.values()
    )
    assert tables.differing(other, sound) == (whole, 1)


def _reworded(pair):
    first = pair.pairs[0]
    core, *rest = first.forget.qas["th"]
    forget = Unit(first.forget.card, {**first.forget.qas, "th": (replace(core, answer="x"), *rest)})
    return replace(pair, pairs=(replace(first, forget=forget), *pair.pairs[1:]))
