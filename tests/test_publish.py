"""What is published has caption, alt text, data and provenance; what lacks one, or mixes, is refused."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from kbook.errors import KBookError
from kbook.report import figures
from kbook.report.artifacts import MIME, NUMBER_MIME, Given
from kbook.report.publish import glue_number, publish_figure, publish_table, publish_trace
from kbook.report.published import Published

CAPTION = "Leak rate of each lane, with intervals."
ALT = "Two points: lane P at 0.1, lane C at 0.2."
FRAME = pd.DataFrame({"lane": ["P", "C"], "rate": [0.1, 0.2]})
PAPER = Published("x", pd.DataFrame({"rate (published)": [0.3]}), "A paper, Table 5", "paper2026")


@pytest.fixture
def shown(monkeypatch):
    """Everything that the calls display."""
    things = []
    monkeypatch.setattr("IPython.display.display", lambda thing, raw=False: things.append(thing))
    return things


@pytest.fixture
def run():
    commit = {"id": "0123456789abc", "dirty": False}
    manifest = SimpleNamespace(profile="smoke", seconds=3.0, ended="2026-01-02T03:04:05+00:00", commit=commit)
    return SimpleNamespace(key="kbench/llama-tiny/P/none/forget/seed=0", digest="f" * 64, manifest=manifest)


def plot():
    figure, axes = figures.canvas()
    axes[0, 0].plot([0, 1], [0.1, 0.2])
    return figure


def test_a_figure_carries_picture_words_data_and_runs(shown, run):
    publish_figure("fig-topic-rates", plot(), FRAME, caption=CAPTION, alt=ALT, runs=[run, run])
    payload = shown[0].payload()
    assert payload["svg"].startswith("<?xml") and payload["csv"] == "lane,rate\nP,0.1\nC,0.2\n"
    assert (payload["caption"], payload["alt"]) == (CAPTION, ALT)
    assert [known["key"] for known in payload["provenance"]["runs"]] == [run.key]
    assert MIME in shown[0]._repr_mimebundle_()


def test_a_table_carries_its_body_and_data(shown, run):
    publish_table("tab-topic-rates", FRAME, caption=CAPTION, runs=[run], formats={"rate": ".1f"})
    payload = shown[0].payload()
    assert r"| P | 0\.1 |" in payload["body"] and payload["csv"].endswith("C,0.2\n")


def test_captions_are_one_line(shown, run):
    publish_table("tab-topic-rates", FRAME, caption="Leak rate\n  of each   lane.", runs=[run])
    assert shown[0].caption == "Leak rate of each lane."


def test_a_pyplot_figure_is_not_shown_twice(shown, run):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    figure = pyplot.figure(figsize=(3, 2))
    publish_figure("fig-topic-rates", figure, FRAME, caption=CAPTION, alt=ALT, runs=[run])
    assert figure.number not in pyplot.get_fignums()


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        pytest.param({"caption": ""}, "caption '' says too little", id="no caption"),
        pytest.param({"alt": "a figure"}, "alt 'a figure' says too little", id="an alt text that says nothing"),
        pytest.param({"alt": "look at the file fig.svg"}, "names a file", id="an alt text that is a file"),
        pytest.param({"key": "tab-topic-rates"}, "begin", id="the key of a table"),
        pytest.param({"key": "fig-topic"}, "is not a key", id="a key without slug"),
        pytest.param({"runs": []}, "need their runs", id="measured without runs"),
        pytest.param({"kind": "guessed"}, "unknown kind", id="an unknown kind"),
        pytest.param({"kind": "constructed"}, "only measured numbers have runs", id="constructed with runs"),
        pytest.param({"sources": PAPER}, "no column is named", id="sources without their columns"),
    ],
)
def test_a_figure_that_lacks_something_is_refused(shown, run, changed, words):
    given = {"key": "fig-topic-rates", "caption": CAPTION, "alt": ALT, "runs": [run], **changed}
    with pytest.raises(KBookError, match=words):
        publish_figure(given.pop("key"), plot(), FRAME, **given)
    assert not shown


def test_small_print_is_refused(shown, run):
    figure = plot()
    figure.axes[0].set_title("tiny", fontsize=5)
    with pytest.raises(KBookError, match="5.0 points"):
        publish_figure("fig-topic-rates", figure, FRAME, caption=CAPTION, alt=ALT, runs=[run])


def test_published_numbers_stand_beside_ours_in_their_own_column(shown, run):
    frame = FRAME.assign(**{"rate (published)": [0.3, 0.4]})
    publish_table("tab-topic-rates", frame, caption=CAPTION, runs=[run], sources=PAPER)
    assert shown[0].provenance.sources == ("A paper, Table 5",)


GIVEN = Given("table demo of a folder")
MIXED = FRAME.assign(origin=["measured", "published"])
MARKED = FRAME.assign(**{"rate (published)": [0.3, 0.4]})


@pytest.mark.parametrize(
    ("frame", "given", "words"),
    [
        pytest.param(MIXED, {}, "mix measured and published", id="one column for both"),
        pytest.param(MARKED, {}, "need their sources", id="a marked column without source"),
        pytest.param(
            FRAME,
            {"kind": "published", "runs": [], "sources": PAPER},
            "no column is named",
            id="published, unmarked",
        ),
        pytest.param(
            MARKED,
            {"kind": "published", "runs": [], "sources": PAPER},
            "must be named",
            id="published beside a bare one",
        ),
        pytest.param(
            MARKED,
            {"kind": "constructed", "runs": [], "sources": PAPER},
            "holds no published",
            id="constructed, marked",
        ),
        pytest.param(FRAME, {"kind": "scored", "runs": []}, "needs its transcripts", id="scored, from nothing"),
        pytest.param(
            MARKED, {"kind": "scored", "runs": [], "sources": GIVEN}, "holds no published", id="scored, marked"
        ),
        pytest.param(FRAME, {"kind": "scored", "sources": GIVEN}, "only measured numbers have runs", id="scored, runs"),
    ],
)
def test_measured_and_published_never_share_a_column(shown, run, frame, given, words):
    with pytest.raises(KBookError, match=words):
        publish_table("tab-topic-rates", frame, caption=CAPTION, **{"runs": [run], **given})


def test_what_was_scored_names_its_transcripts_and_no_paper(shown):
    publish_table("tab-topic-rates", FRAME, caption=CAPTION, kind="scored", sources=GIVEN)
    known = shown[0].provenance
    assert (known.kind, known.sources, known.cites, known.runs) == ("scored", ("table demo of a folder",), (), ())


def test_a_published_table_needs_no_runs(shown):
    frame = MARKED[["lane", "rate (published)"]]
    publish_table("tab-topic-rates", frame, caption=CAPTION, kind="published", sources=[PAPER])
    assert shown[0].provenance.kind == "published"


def test_a_trace_is_a_table_of_its_steps(shown, run):
    row = {"field": "occupation", "ground_truth": "Actor", "raw_full": "Thought: an Actor\nFinal Answer: no"}
    publish_trace("tab-topic-trace", row, caption="One trace, step by step.", runs=[run])
    assert "1,Thought,cot,yes,an Actor" in shown[0].csv
    assert "{.kbook-secret}" in shown[0].body


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        pytest.param(0.5, 0.5, id="a float"),
        pytest.param(np.float32(0.5), 0.5, id="a float of numpy"),
        pytest.param(np.int64(7), 7, id="an integer of numpy"),
        pytest.param("eco", "eco", id="a word"),
    ],
)
def test_numbers_are_glued_plain(shown, value, plain):
    glue_number("or-all", value)
    assert shown[0][NUMBER_MIME] == {"key": "or-all", "value": plain, "kind": "measured"}
    assert type(shown[0][NUMBER_MIME]["value"]) is type(plain)


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        pytest.param("or-all", float("nan"), "the number is nan", id="a missing number"),
        pytest.param("OR all", 1, "cannot name", id="a key with a space"),
    ],
)
def test_what_is_no_number_is_refused(shown, key, value, words):
    with pytest.raises(KBookError, match=words):
        glue_number(key, value)
