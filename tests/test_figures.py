"""Every builder draws what its frame says, legibly, the same bytes twice, and gives the frame back."""

import matplotlib as mpl
import pandas as pd
import pytest

from kbook.errors import KBookError
from kbook.keys import CHANNELS
from kbook.report import figures

RATES = pd.DataFrame(
    {
        "lane": ["P", "P", "C", "C"],
        "channel": ["answer", "summary"] * 2,
        "rate": [0.1, 0.2, 0.3, float("nan")],
        "low": [0.05, 0.1, 0.2, float("nan")],
        "high": [0.2, 0.3, 0.4, float("nan")],
        "rate (published)": [0.15, float("nan"), 0.2, float("nan")],
        "loss": [3.0, 2.0, 1.0, 0.5],
    }
)
BUILDERS = {
    "intervals": lambda f: figures.intervals(
        f, value="rate", low="low", high="high", row="channel", panel="lane", published="rate (published)"
    ),
    "intervals with series": lambda f: figures.intervals(
        f, value="rate", low="low", high="high", row="channel", series="lane"
    ),
    "shares": lambda f: figures.shares(f, row="lane", part="channel", share="rate"),
    "verdicts": lambda f: figures.verdicts(f, row="lane", column="channel", verdict="rate", colors={"0.1": "#009E73"}),
    "heat": lambda f: figures.heat(f, row="lane", column="channel", value="rate"),
    "scatter": lambda f: figures.scatter(f, x="rate", y="loss", name="channel", series="lane"),
    "curves": lambda f: figures.curves(f, x="loss", y="rate", series="lane", low="low", high="high"),
    "curves in panels": lambda f: figures.curves(f, x="channel", y="rate", panel="lane"),
}


@pytest.mark.parametrize("name", BUILDERS)
def test_the_frame_behind_a_figure_holds_its_numbers(name):
    plot = BUILDERS[name](RATES)
    assert len(plot.data) == len(RATES)
    assert plot.data["rate"].tolist()[:3] == [0.1, 0.2, 0.3]


@pytest.mark.parametrize("name", BUILDERS)
def test_a_figure_is_legible_and_the_same_twice(name):
    first, second = BUILDERS[name](RATES).figure, BUILDERS[name](RATES).figure
    figures.check_legible(first, name)
    assert figures.to_svg(first, "fig-a-b") == figures.to_svg(second, "fig-a-b")


def test_text_is_drawn_as_paths_and_never_as_mathematics():
    hostile = RATES.assign(lane=["$\\frac{$", "$\\frac{$", "<script>", "<script>"])
    svg = figures.to_svg(BUILDERS["intervals"](hostile).figure, "fig-a-b")
    assert (
        "<text" not in svg
        and "<script" not in svg
        and "http"
        not in svg.replace("http://www.w3.org", "")
        .replace("http://purl.org", "")
        .replace("http://creativecommons.org", "")
    )


def test_small_text_is_refused_and_eight_points_are_not():
    figure, axes = figures.canvas()
    axes[0, 0].set_title("readable", fontsize=8)
    figures.check_legible(figure, "fig-a-b")
    axes[0, 0].set_title("too small", fontsize=6)
    with pytest.raises(KBookError, match="'too small' has 6.0 points"):
        figures.check_legible(figure, "fig-a-b")


def test_a_figure_wider_than_a_page_is_refused():
    with pytest.raises(KBookError, match="9.0 inches"):
        figures.check_legible(mpl.figure.Figure(figsize=(9, 2)), "fig-a-b")


def test_a_channel_looks_the_same_in_every_figure():
    alone, among = figures.looks(["summary"]), figures.looks(CHANNELS)
    assert alone["summary"] == among["summary"]
    assert len({look.marker for look in among.values()}) == len({look.color for look in among.values()}) == 6


def test_more_series_than_can_be_told_apart_are_refused():
    with pytest.raises(KBookError, match="9 series"):
        figures.looks([f"method {n}" for n in range(9)])


def test_numbers_can_name_rows():
    plot = figures.intervals(RATES.assign(seed=[0, 1, 2, 3]), value="rate", low="low", high="high", row="seed")
    assert [label.get_text() for label in plot.figure.axes[0].get_yticklabels()] == ["0", "1", "2", "3"]


def test_the_look_ends_with_the_figure():
    before = mpl.rcParams["font.size"]
    BUILDERS["heat"](RATES)
    assert mpl.rcParams["font.size"] == before


def test_an_unknown_width_is_refused():
    with pytest.raises(KBookError, match="unknown width"):
        figures.canvas(width="huge")


def test_curves_have_one_panel_a_group_with_its_own_points():
    plot = figures.curves(RATES, x="loss", y="rate", panel="lane")
    assert [axis.get_title("left") for axis in plot.figure.axes] == ["P", "C"]
    assert [line.get_xdata().tolist() for axis in plot.figure.axes for line in axis.lines] == [[3.0, 2.0], [1.0, 0.5]]


def test_panels_of_intervals_can_share_their_limits():
    look = {"value": "rate", "low": "low", "high": "high", "row": "channel", "panel": "lane"}
    shared = figures.intervals(RATES, **look, limits=figures.FRACTIONS).figure
    assert {axis.get_xlim() for axis in shared.axes} == {figures.FRACTIONS}
    assert len({axis.get_xlim() for axis in figures.intervals(RATES, **look).figure.axes}) == 2


WORDS = pd.DataFrame(
    [
        {"judged": judged, "method": method, "lane": lane, "verdict": "measured failure", "note": "0.35"}
        for judged in ("forget", "retain")
        for method in ("eco", "npo", "star")
        for lane in ("P", "C", "R-text", "R-struct")
    ]
)
WORD_LOOK = {"row": "method", "column": "lane", "verdict": "verdict", "colors": {"measured failure": "#E59A8A"}}


def test_words_are_broken_into_lines_that_fit_their_cell_and_rows_grow_with_them():
    wide = figures.verdicts(WORDS[WORDS["judged"] == "forget"], **WORD_LOOK).figure
    narrow = figures.verdicts(WORDS, **WORD_LOOK, panel="judged").figure
    (text, *_), (broken, *_) = (figure.axes[0].texts for figure in (wide, narrow))
    assert text.get_text() == "measured failure" and broken.get_text() == "measured\nfailure"
    assert narrow.get_figheight() > wide.get_figheight()
    for axis in narrow.axes:
        cell = axis.get_window_extent().width / 4
        assert all(text.get_window_extent().width < cell for text in axis.texts)


def test_matrices_side_by_side_have_a_title_and_all_their_cells():
    plot = figures.verdicts(WORDS, **WORD_LOOK, panel="judged", detail="note")
    assert [axis.get_title("left") for axis in plot.figure.axes] == ["forget", "retain"]
    assert [len(axis.patches) for axis in plot.figure.axes] == [12, 12] and len(plot.data) == len(WORDS)
    assert plot.figure.axes[1].texts[0].get_text().endswith("\n0.35")


@pytest.mark.parametrize("name", BUILDERS)
def test_nothing_to_show_gives_an_empty_figure_and_no_error(name):
    plot = BUILDERS[name](RATES.iloc[:0])
    assert plot.data.empty
    figures.to_svg(plot.figure, "fig-a-b")
