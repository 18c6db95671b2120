"""The panel's tables say what the panel says: every cell once, methods as given, and nothing idle is a success."""

import math

import pandas as pd
import pytest
from planted_panel import planted_cells, planted_panel
from transcript_factory import golden_panel, key, rows

from kbook.keys import LANES
from kbook.methods.registry import METHODS, method_class
from kbook.report import method_panel as tables
from kbook.report.fits import NO_OP, STOPPED, Note
from kbook.scoring.cells import score_rows
from kbook.scoring.panel import judge

N = 40
PLANTED = {
    "none": (30, 0, 30, 0),
    "forgets": (2, 0, 30, 0),
    "wrecks": (0, 40, 0, 40),
    "idle": (30, 0, 30, 0),
}
METHOD_NAMES = ["wrecks", "forgets", "idle"]


@pytest.fixture(scope="module")
def panel():
    return planted_panel(N, PLANTED, not_applicable={("C", "npo"): "no weights there"})


def cells_of(frame, **labels):
    for name, value in labels.items():
        frame = frame[frame[name] == value]
    return frame


def test_methods_stand_in_the_order_given_and_the_untreated_agent_in_no_row(panel):
    frame = tables.matrix_frame(panel, METHOD_NAMES)
    assert frame.loc[frame["lane"] == "P", "method"].tolist() == METHOD_NAMES


def test_what_does_not_apply_is_no_failure_and_gives_its_reason(panel):
    (cell,) = cells_of(tables.matrix_frame(panel, METHOD_NAMES), lane="C").to_dict("records")
    assert cell["K-class"] == cell["selectivity"] == "n/a" and math.isnan(cell["K-Score"])
    assert "no weights there" in cell["reasons"]


def test_a_fit_that_did_nothing_is_called_so_and_one_that_broke_off_is_marked(panel):
    notes = [Note("demo", "P", "idle", NO_OP, ""), Note("demo", "P", "forgets", STOPPED, "")]
    frame = tables.matrix_frame(panel, METHOD_NAMES, notes).set_index("method")
    assert frame.loc["idle", ["K-class", "selectivity"]].tolist() == [NO_OP, NO_OP]
    assert frame.loc["forgets", "K-class"].startswith("K-REF") and frame.loc["forgets", "K-class"].endswith("†")
    assert "†" not in frame.loc["wrecks", "K-class"]
    without = tables.matrix_frame(panel, METHOD_NAMES).set_index("method")
    assert without.loc["idle", "K-class"] == "measured failure"


def test_a_verdict_that_lacks_retain_rows_says_why():
    forget = [cell for cell in planted_cells(N, PLANTED) if cell.key.split == "forget"]
    frame = tables.matrix_frame(judge(forget), METHOD_NAMES)
    assert set(frame["selectivity"]) == {"no retain rows"} and frame["K-Score"].isna().all()


def test_what_retain_lost_altogether_is_broken_by_an_infinite_factor():
    silent = planted_panel(N, {"none": (36, 0, 36, 0), "eco": (0, 0, 0, 0)})
    (cell,) = tables.matrix_frame(silent, []).to_dict("records")
    assert cell["selectivity"] == "broken (∞)"


def test_a_figure_has_both_verdicts_of_every_cell(panel):
    matrix = tables.matrix_frame(panel, METHOD_NAMES)
    long = tables.judged_frame(matrix)
    assert len(long) == 2 * len(matrix)
    assert set(tables.tints(long["verdict"])) == set(matrix["K-class"]) | set(matrix["selectivity"])


def test_the_tally_counts_each_method_once_and_only_the_healthy_as_clean(panel):
    frame = tables.tally_frame([panel]).set_index("lane")
    row = frame.loc["P"]
    assert (row["measured"], row["K-REF"], row["failure"], row["eligible"], row["clean"]) == (3, 2, 1, 2, 1)
    assert frame.loc["C", "not judged"] == "1 n/a" and list(frame.index) == ["P", "C"]
    assert tables.clean_in_words([panel]) == "forgets in P on demo"


def test_an_idle_fit_is_tallied_as_idle_and_not_as_a_failure(panel):
    row = tables.tally_frame([panel], [Note("demo", "P", "idle", NO_OP, "")]).set_index("lane").loc["P"]
    assert (row["measured"], row["not judged"], row["failure"]) == (2, "1 no-op", 0)


def test_nothing_clean_is_said_in_words():
    panel = planted_panel(N, {"none": (30, 0, 30, 0), "wrecks": (0, 40, 0, 40)})
    assert tables.clean_in_words([panel]) == "none of them"


def test_a_fit_that_did_nothing_is_never_clean(panel):
    notes = [Note("demo", "P", "forgets", NO_OP, "")]
    assert tables.clean_in_words([panel], notes) == "none of them"
    assert tables.tally_frame([panel], notes).set_index("lane").loc["P", "clean"] == 0


def test_rates_of_all_bases_stand_in_one_table_the_untreated_agent_first():
    panels = [planted_panel(N, PLANTED, base=base) for base in ("one", "two")]
    frame = tables.rates_frame(panels, METHOD_NAMES)
    assert frame["base"].drop_duplicates().tolist() == ["one", "two"]
    assert frame.groupby("base")["method"].first().tolist() == ["none", "none"]
    leak = cells_of(frame, base="two", method="forgets", quantity=tables.LEAK)["share"]
    assert leak.tolist() == [2 / N]


def test_the_plane_shows_where_a_method_acts_and_that_a_wreck_leaks_nothing(panel):
    frame = tables.plane_frame(tables.rates_frame([panel], METHOD_NAMES), {"wrecks": "weights", "forgets": "text"})
    frame = frame.set_index("method")
    assert frame.loc["wrecks", [tables.LEAK, tables.BROKEN, "acts on"]].tolist() == [0.0, 1.0, "weights"]
    assert frame.loc["none", "acts on"] == "untreated" and frame.loc["idle", "acts on"] == "unknown"


def test_scores_have_a_reference_and_ranks_only_for_the_eligible():
    frame = tables.score_frame([golden_panel()], [])
    assert set(frame[frame["method"] == "none"]["eligible"]) == {"reference"}
    assert (frame["rank"].notna() == (frame["eligible"] == "yes")).all()
    assert list(frame["lane"].drop_duplicates()) == [lane for lane in LANES if lane in set(frame["lane"])]


def test_a_reason_is_given_once_for_all_methods_that_share_it():
    frame = tables.reach_frame([method_class(name) for name in ("eco", "ga", "npo", "o3")])
    assert frame["methods"].tolist() == ["ga, npo", "o3"] and set(frame["lanes that do not apply"]) == {
        "C, R-text, R-struct"
    }
    everywhere = tables.reach_frame([method_class("eco")])
    assert everywhere["methods"].tolist() == ["none"]


def test_every_method_of_the_registry_can_stand_in_the_roster():
    frame = tables.method_frame([method_class(name) for name in METHODS])
    assert frame["method"].is_unique and frame.notna().all(axis=None)


def test_published_figures_are_of_methods_and_marked_as_published():
    frame = tables.published_figures().frame
    assert {"NPO Llama P K-Score", "Qwen R-text ECO degeneration"} <= set(frame["quantity"])
    assert not frame["quantity"].str.contains("eta|paraphrase|LUME").any()
    assert "value (published)" in frame and isinstance(frame, pd.DataFrame)


def test_a_lane_in_which_nothing_leaks_is_excluded_for_every_method():
    cells = [score_rows(rows(N, 0), key(m, s)) for m in ("none", "eco") for s in ("forget", "retain")]
    frame = tables.matrix_frame(judge(cells), ["eco"])
    assert frame["selectivity"].tolist() == ["excluded"] and frame["K-class"].tolist() == ["substrate-broken"]
    assert tables.tally_frame([judge(cells)])["not judged"].tolist() == ["1 excluded"]
