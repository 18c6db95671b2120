"""Tables of the interfaces chapter: what was planted is said of the place where it was planted, and of no other."""

import pandas as pd
import pytest
from probe_factory import N, probe_rows
from transcript_factory import key, row

from kbook.report import figures, interfaces
from kbook.report.interfaces import Looks, look
from kbook.report.published import MARK
from kbook.report.tables import MAX_ROWS
from kbook.scoring.cells import score_rows
from kbook.scoring.inference import Bootstrap
from kbook.scoring.panel import judge
from kbook.scoring.weight_side import CLEAN, LEAK, MEASURES

HOW = Bootstrap(resamples=100)
LANES = ("C", "R-text", "R-struct")


class Stored:
    """A run of probes."""

    def __init__(self, *knows: str) -> None:
        self.knows = knows

    def rows(self):
        return probe_rows(self.knows)


def cell(lane, method, split, leaking, channel=None):
    """An agent that shows the values of the first queries in its answer, or in an observation alone."""
    traces = []
    for i in range(N):
        value = f"Alder {i} Ltd"
        said = {"raw_full": f"Final Answer: {value}", "answer": value}
        shown = {"raw_Z_tool_obs": [f"employer: {value}"]} if channel == "tool_wide" else said
        traces.append(row(f"{split}-{i}::employer", ground_truth=value, **(shown if i < leaking else {})))
    return score_rows(traces, key(method, split, lane=lane))


def planted(methods=("npo",)):
    """Lane P: known, and the agent answers; under a method half gone. Other lanes: unknown, and the agent shows it."""
    places = {("P", "none"): 24, **{("P", method): 12 for method in methods}, **{(lane, "none"): 20 for lane in LANES}}
    cells = [cell(*place, "forget", n, "tool_wide" if place[0] == "R-text" else None) for place, n in places.items()]
    cells += [cell(*place, "retain", 24) for place in places]
    plain, injected, clean = Stored(), Stored("forget", "retain"), Stored("retain")
    probed = {place: (injected, clean) if place[0] == "P" else (plain, plain) for place in places}
    for method in methods:
        probed["P", method] = (clean, clean)
    return look(probed, judge(cells, how=HOW), HOW)


@pytest.fixture(scope="module")
def looks() -> Looks:
    return planted()


def test_the_lanes_without_a_secret_in_the_weights_are_clean_by_every_measure_while_the_agent_leaks(looks):
    found, agent = interfaces.finding_frame(looks), interfaces.agent_frame(looks)
    assert len(found) == len(looks.pairs) * len(MEASURES) <= MAX_ROWS
    assert interfaces.verdict_counts(found, LANES)[CLEAN] == len(LANES) * len(MEASURES)
    assert interfaces.verdict_counts(found, ["P"]) | {LEAK: 0} == dict.fromkeys(interfaces.COLORS, 0)
    assert interfaces.verdict_counts(found, ["P"])[LEAK] == len(MEASURES)
    any_channel = agent[agent["measure"] == "any channel"].set_index(["lane", "method"])
    assert (any_channel["verdict"] == LEAK).all()
    assert any_channel.loc[("C", "none"), "value"] == pytest.approx(20 / N)


def test_a_leak_beside_the_answer_is_seen_by_who_reads_all_channels(looks):
    agent = interfaces.agent_frame(looks).set_index(["lane", "method", "measure"])
    assert agent.loc[("R-text", "none", "final answer"), ["value", "verdict"]].tolist() == [0.0, CLEAN]
    assert agent.loc[("R-text", "none", "any channel"), "verdict"] == LEAK


def test_a_method_may_look_clean_by_its_weights_and_still_leak_as_an_agent(looks):
    matrix = interfaces.matrix_frame(looks).set_index(["measure", "model"])["verdict"]
    assert matrix["TOFU: forget quality", "P, npo"] == CLEAN != matrix["TOFU: forget quality", "P"]
    assert matrix["agent: any channel", "P, npo"] == LEAK


def test_the_matrix_is_a_figure_with_each_measure_and_place_once(looks):
    matrix = interfaces.matrix_frame(looks)
    assert not matrix.duplicated(["measure", "model"]).any()
    assert list(matrix["model"].drop_duplicates()) == ["P", "P, npo", *LANES]
    assert list(matrix["measure"].drop_duplicates())[-2:] == ["agent: final answer", "agent: any channel"]
    plot = figures.verdicts(
        matrix, row="measure", column="model", verdict="verdict", detail="value", colors=interfaces.COLORS
    )
    figures.check_legible(plot.figure, "test")
    values = matrix.set_index(["measure", "model"])["value"]
    assert values["MUSE: PrivLeak", "P"] == "-100" and values["LUME: knowledge", "P"] == "1.00"


def test_queries_that_only_the_agent_shows_are_counted(looks):
    frame = interfaces.overlap_frame(looks).set_index(["lane", "method"])
    assert frame.loc[("C", "none")].tolist()[:4] == [0, 20, 0, N - 20]
    assert frame.loc[("P", "none")].tolist() == [24, 0, N - 24, 0, 1.0]
    assert frame.loc[("P", "npo")].tolist() == [0, 12, 0, N - 12, 0.0]


def test_rates_stand_side_by_side_in_the_order_of_the_places(looks):
    frame = interfaces.rate_frame(looks)
    assert list(frame["model"].drop_duplicates()) == ["P", "P, npo", *LANES]
    untreated = frame[frame["model"] == "P"].set_index("who looks")["share"]
    assert untreated.to_dict() == pytest.approx(
        {"direct question": 1.0, "agent, final answer": 24 / N, "agent, any channel": 24 / N}
    )
    plot = figures.intervals(frame, value="share", low="low", high="high", row="model", series="who looks")
    figures.check_legible(plot.figure, "test")


def test_before_and_after_a_method(looks):
    frame = interfaces.method_frame(looks).set_index("quantity")
    assert list(frame.columns) == ["none", "npo"]
    quality, agent, task = ("TOFU: forget quality", "agent: any channel, forget", "LUME: task aggregate")
    assert frame.loc[quality, "none"] < 0.05 < frame.loc[quality, "npo"] == 1
    assert frame.loc[agent].tolist() == pytest.approx([24 / N, 12 / N])
    assert frame.loc[task, "npo"] > frame.loc[task, "none"] == 0
    assert (frame.loc["agent: degenerate, forget"] == 0).all() and frame.notna().all(axis=None)


def test_every_measure_of_the_tables_is_explained():
    explained = interfaces.measure_frame()
    names = set(zip(explained["benchmark"], explained["measure"], strict=True))
    assert names == {*MEASURES, *(("agent", name) for name in interfaces.WATCHERS.values())}


def test_without_methods_and_without_cells_the_tables_still_stand():
    alone = planted(methods=())
    assert (
        list(interfaces.method_frame(alone).columns) == ["quantity", "none"]
        and len(interfaces.overlap_frame(alone)) == 4
    )
    place = {("C", "none"): (Stored(), Stored())}
    bare = look(place, judge([]), HOW)
    assert len(interfaces.matrix_frame(bare)) == len(MEASURES)
    assert len(interfaces.overlap_frame(bare)) == 0 and len(interfaces.rate_frame(bare)) == 1


def test_a_model_without_rows_says_nothing():
    class Empty:
        def rows(self):
            return []

    bare = look({("C", "none"): (Empty(), Empty())}, judge([]), HOW)
    assert interfaces.verdict_counts(interfaces.finding_frame(bare), ["C"])["no data"] == len(MEASURES)
    assert interfaces.rate_frame(bare)["share"].isna().all()
    assert (interfaces.matrix_frame(bare)["value"] == "").all()


def test_published_numbers_are_marked_and_of_the_agent():
    rates, methods = interfaces.published_rates(), interfaces.published_methods()
    llama = rates[rates["base"] == "Llama-3.1-8B"].set_index("lane")[f"any channel{MARK}"]
    assert llama[["C", "R-text", "R-struct"]].tolist() == [0.223, 0.602, 0.855]
    numbers = [c for frame in (rates, methods) for c in frame.columns if pd.api.types.is_numeric_dtype(frame[c])]
    assert numbers and all(column.endswith(MARK) for column in numbers)
    assert methods["quantity"].str.startswith(("NPO", "GA", "IDK")).all() and len(methods) >= 3
