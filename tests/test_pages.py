"""An executed notebook becomes a page: published things are typeset, ordinary output is inert, nothing is lost."""

from pathlib import Path

import nbformat.v4 as v4
import pytest

from kbook.errors import KBookError
from kbook.report.artifacts import MIME, NUMBER_MIME, Artifact, Provenance, RunRecord
from kbook.report.pages import artifact_markdown, make_page, rerun_command
from kbook.report.parameters import read_parameters

RUN = RunRecord("kbench/llama-tiny/P/none/forget/seed=0", "d" * 64, "smoke", 30.0, "2026-01-02T03:04:05", "abc")
MEASURED = Provenance("measured", (RUN,))
FIGURE = Artifact("fig-topic-rates", "Rates of `x`.", MEASURED, "x\n1\n", svg="<svg/>", alt='Say "a: b" # c \\d')
TABLE = Artifact("tab-topic-rates", "Rates.", MEASURED, "x\n1\n", body="| x |\n| ---: |\n| 1 |")
CELL = 'profile: str = "smoke"  # sizes\nn: int = 3  # rows [1..9]\nlanes: list[str] = ["P"]  # lanes'


def show(bundle):
    return v4.new_output("display_data", data=bundle)


def executed(*outputs, prose="# Title", source="f()"):
    cells = [
        v4.new_markdown_cell(prose, id="cell-1"),
        v4.new_code_cell(CELL, metadata={"tags": ["parameters"]}, id="cell-2"),
        v4.new_code_cell("n = 3", metadata={"tags": ["injected-parameters"]}),
        v4.new_code_cell(source, outputs=list(outputs), execution_count=3, id="cell-3"),
    ]
    cells[3].metadata["papermill"] = {"duration": 1.25}
    return v4.new_notebook(cells=cells, metadata={"papermill": {"start_time": "now"}})


def page_of(*outputs, root=Path("/checkout"), **changed):
    notebook = executed(*outputs, **changed)
    parameters = read_parameters(notebook, "topic")
    return make_page(notebook, "topic", parameters, {"profile": "smoke", "n": 3, "lanes": ["P"]}, root)


def sources(page):
    return [cell.source for cell in page.notebook.cells]


def test_a_figure_becomes_a_numbered_figure_with_its_files():
    page = page_of(show({MIME: FIGURE.payload(), "text/html": "<b>preview</b>"}))
    (markdown,) = [s for s in sources(page) if s.startswith("```{figure}")]
    assert markdown.startswith("```{figure} topic/fig-topic-rates.svg\n:name: fig-topic-rates\n")
    assert ':alt: "Say \\"a: b\\" # c \\\\d"' in markdown
    assert "{download}`data (CSV) <topic/fig-topic-rates.csv>`" in markdown
    assert page.files == {"fig-topic-rates.svg": "<svg/>", "fig-topic-rates.csv": "x\n1\n"}
    assert page.runs == (RUN,) and "preview" not in str(page.notebook)


def test_a_table_has_its_provenance_below():
    markdown = artifact_markdown(TABLE, "topic")
    assert markdown.index("| 1 |") < markdown.index("kbook-measured") < markdown.index("tab-topic-rates.csv")


def test_a_fence_is_longer_than_any_within():
    caption = "A caption with ```` inside of it."
    assert artifact_markdown(Artifact("tab-a-b", caption, MEASURED, "x\n", body="| x |"), "a").startswith(
        "`````{table}"
    )


def test_what_is_long_stands_whole_in_a_box_with_an_inert_title():
    folded = Artifact("tab-a-b", "A caption.", MEASURED, "x\n1\n", body="| x |", fold="All <b>rows</b>\n`now`")
    opening, *body, closing = artifact_markdown(folded, "a").split("\n")
    assert opening.endswith(r"{dropdown} All \<b\>rows\<\/b\> ↵ \`now\`")
    fence = opening.split("{")[0]
    assert closing == fence and not any(line.startswith(fence) for line in body)
    opened = Artifact("tab-a-b", "A caption.", MEASURED, "x\n1\n", body="| x |")
    assert artifact_markdown(opened, "a") in "\n".join(body)


def test_numbers_reach_prose_and_published_ones_are_marked():
    ours = show({NUMBER_MIME: {"key": "rate", "value": 0.123, "kind": "measured"}, "text/plain": "rate"})
    theirs = show({NUMBER_MIME: {"key": "paper", "value": 0.5, "kind": "published"}, "text/plain": "paper"})
    page = page_of(ours, theirs, prose="{glue:text}`rate:.1%` and {glue:text}`paper` and {glue:text}`x.ipynb::y:.1f`")
    assert sources(page)[0] == (
        r"12\.3\% and [0\.5 {sup}`published`]{.kbook-published-number} and {glue:text}`x.ipynb::y:.1f`"
    )


def test_measured_numbers_stay_readable_for_other_pages_and_published_ones_do_not():
    ours = show({NUMBER_MIME: {"key": "rate", "value": 0.123, "kind": "measured"}})
    theirs = show({NUMBER_MIME: {"key": "paper", "value": 0.5, "kind": "published"}})
    (output,) = page_of(ours, theirs).notebook.cells[-2].outputs
    assert output.metadata["scrapbook"]["name"] == "rate"
    assert output.data == {"application/papermill.record/text/plain": "0.123"}


@pytest.mark.parametrize(
    ("prose", "outputs", "words"),
    [
        pytest.param("{glue:text}`rat`", [], "topic, cell-1: unknown glued number 'rat'", id="a number never glued"),
        pytest.param(
            "{glue:text}`rate:d`",
            [show({NUMBER_MIME: {"key": "rate", "value": 0.5, "kind": "measured"}})],
            "the format 'd' does not fit 0.5",
            id="a format that does not fit",
        ),
        pytest.param("x", [show({"image/png": "aGk=", "text/plain": "fig"})], "without caption", id="a bare picture"),
        pytest.param("x", [show({MIME: TABLE.payload()})] * 2, "'tab-topic-rates' is used twice", id="a key twice"),
    ],
)
def test_what_readers_could_not_use_is_refused(prose, outputs, words):
    with pytest.raises(KBookError, match=words):
        page_of(*outputs, prose=prose)


def test_ordinary_output_is_plain_text_and_nothing_else():
    page = page_of(
        show({"text/html": "<script>x</script>", "text/plain": "a frame"}),
        show({"application/javascript": "alert(1)"}),
        v4.new_output("stream", name="stdout", text="at /checkout/data/x \x1b[31mred\x1b[0m \x07\n" + "y" * 10_000),
    )
    first, second = page.notebook.cells[-2].outputs
    assert first.data == {"text/plain": "a frame"}
    assert second.text.startswith("at data/x red ␇\n") and second.text.endswith("more characters]")


def test_no_times_ids_or_papermill_traces_are_left():
    first, second = page_of(), page_of()
    assert first.notebook == second.notebook
    assert "papermill" not in str(first.notebook) and "duration" not in str(first.notebook)


def test_the_injected_cell_is_hidden_and_the_run_is_told_in_a_box():
    cells = page_of().notebook.cells
    tags = [tag for cell in cells for tag in cell.metadata.get("tags", [])]
    assert "hide-input" in tags and "remove-cell" in tags
    (box,) = [cell.source for cell in cells if "Rerun this chapter" in cell.source]
    assert ".venv/bin/kbook run topic --profile smoke\n" in box and "| n | 3 | 3 | 1 to 9 | rows |" in box


def test_the_command_names_what_differs_and_is_safe_to_paste():
    parameters = read_parameters(executed(), "topic")
    values = {"profile": "laptop", "n": 5, "lanes": ["P", "$(rm -rf x)"]}
    command = rerun_command("topic", parameters, values)
    assert command == "kbook run topic --profile laptop -p n=5 -p 'lanes=P,$(rm -rf x)'"


def test_the_end_of_the_page_lists_its_runs_or_says_there_are_none():
    assert r"llama\-tiny\/P" in sources(page_of(show({MIME: TABLE.payload()})))[-1]
    assert "No run of this book" in sources(page_of())[-1]
