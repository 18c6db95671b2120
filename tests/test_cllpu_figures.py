"""Small matrices, pairs and gaps: legible, the same twice, with the frame of what they show."""

import pandas as pd
import pytest

from kbook.corpora.languages import LANGUAGES
from kbook.report import cllpu_figures, figures

CODES = LANGUAGES[:4]


def matrices(codes=CODES):
    frame = pd.DataFrame(
        [(r, m, s, t, (i + j) / 20) for r in ("target", "neighbour") for m in ("GA", "NPO")
         for i, s in enumerate(codes) for j, t in enumerate(codes)],
        columns=["role", "method", "source", "language", "value"],
    )  # fmt: skip
    names = {"row": "source", "column": "language", "value": "value", "panel": "method", "block": "role"}
    return cllpu_figures.matrices(frame, **names, label="ROUGE-L")


def pairs():
    frame = pd.DataFrame(
        {"setting": ["a", "a"], "role": ["target"] * 2, "method": ["GA", "mine"], "source": [0.1, 0.2],
         "cross": [0.3, 0.4], "source (published)": [0.0, None], "cross (published)": [0.05, None]}
    )  # fmt: skip
    return cllpu_figures.pairs(
        frame, row="method", panel="role", line="setting", ends=("source", "cross"), label="ROUGE-L"
    )


def gaps():
    frame = pd.DataFrame(
        {"what": ["target", "target"], "method": ["GA", "NPO"], "core": [0.1, None], "surface": [0.2, 0.3],
         "gap": [10.0, None]}
    )  # fmt: skip
    return cllpu_figures.gaps(frame, row="method", panel="what", bars=("core", "surface"), gap="gap", label="EM")


BUILDERS = {"matrices": matrices, "all languages": lambda: matrices(LANGUAGES), "pairs": pairs, "gaps": gaps}


@pytest.mark.parametrize("name", BUILDERS)
def test_a_figure_is_legible_and_the_same_twice(name):
    first, second = BUILDERS[name](), BUILDERS[name]()
    figures.check_legible(first.figure, name)
    assert figures.to_svg(first.figure, "fig-a-b") == figures.to_svg(second.figure, "fig-a-b")


def test_the_frame_behind_the_matrices_holds_every_cell():
    plot = matrices()
    assert len(plot.data) == 2 * 2 * len(CODES) ** 2 and plot.data["value"].max() == pytest.approx(6 / 20)


def test_every_matrix_has_its_title_and_the_languages_are_named_at_the_left():
    axes = matrices().figure.axes
    titles = [axis.get_title(loc="left") for axis in axes]
    assert titles[:4] == ["target: GA", "target: NPO", "neighbour: GA", "neighbour: NPO"]
    assert [label.get_text()[:2] for label in axes[0].get_yticklabels()] == list(CODES)


def test_a_gap_is_written_beside_its_bars_and_an_unknown_one_is_not():
    texts = [text.get_text() for text in gaps().figure.axes[0].texts]
    assert texts == ["+10.0", ""]
