"""The papers' numbers come back as facts: marked in their columns, with source, equal to the file."""

import csv

import pytest

from kbook.errors import KBookError
from kbook.paths import data_folder
from kbook.report.published import MARK, published

FOLDER = data_folder() / "published"
NAMES = sorted(path.stem for path in FOLDER.glob("*.csv"))


@pytest.mark.parametrize("name", NAMES)
def test_every_table_has_a_source_and_marked_numbers(name):
    table = published(name)
    assert "arXiv" in table.source and table.cite == f"{name.split('_')[0]}2026"
    numbers = table.frame.select_dtypes("number").columns
    assert len(numbers) and all(column.endswith(MARK) for column in numbers)


@pytest.mark.parametrize("name", NAMES)
def test_the_numbers_are_those_of_the_file(name):
    with (FOLDER / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    frame = published(name).frame
    assert len(frame) == len(rows)
    for column in frame.columns:
        plain = column.removesuffix(MARK)
        kind = float if column.endswith(MARK) else str
        stated = [kind(row[plain]) for row in rows]
        assert repr(stated) == repr(frame[column].map(kind).tolist())  # as text, in which nan equals nan


def test_one_number_is_found_by_its_labels():
    table = published("kbench_baseline_channels")
    assert table.number("cer", base="Llama-3.1-8B", lane="P", channel="or_all") == 0.682
    assert table.number("cer", base="Llama-3.1-8B", lane="P", channel="summary") == 0.728


@pytest.mark.parametrize("labels", [{"lane": "P"}, {"lane": "Q"}])
def test_a_number_without_exactly_one_row_is_refused(labels):
    with pytest.raises(KBookError, match="Name exactly one row"):
        published("kbench_baseline_channels").number("cer", **labels)


def test_an_unknown_table_is_refused_with_its_neighbours():
    with pytest.raises(KBookError, match="Did you mean kbench_text_figures"):
        published("kbench_text_figure")


def test_a_table_without_source_is_refused(tmp_path):
    (tmp_path / "x.csv").write_text("a\n1\n")
    (tmp_path / "x.toml").write_text('cite = "y"\n')
    with pytest.raises(KBookError, match="no source"):
        published("x", tmp_path)
