"""The parameters cell is the schema: what it says is read, what it forbids is refused."""

import nbformat.v4 as v4
import pytest

from kbook.errors import KBookError
from kbook.report.parameters import check, read_parameters

CELL = """\
profile: str = "laptop"  # sizes and seeds
n: int = 100  # queries per split and seed [1..600]
lane: str = "R-text"  # where the secret is {P, C, R-text, R-struct}
rate: float = 0.5  # fraction kept [0..1]
lanes: list[str] = ["P", "C"]  # lanes to compare {P, C, R-text}
seeds: list[int] = [0, 137]  # seeds [0..999]
fast: bool = False  # skip the slow part
sigmas: list[float] = [0.5, 2.0]  # strengths [0..9]"""


def notebook(source, tags=("parameters",)):
    cell = v4.new_code_cell(source, metadata={"tags": list(tags)})
    return v4.new_notebook(cells=[v4.new_markdown_cell("# A"), cell])


@pytest.fixture
def parameters():
    return read_parameters(notebook(CELL), "chapter")


def test_each_line_gives_name_type_default_meaning_and_rule(parameters):
    n, lane = parameters[1], parameters[2]
    assert (n.name, n.kind, n.default, n.meaning) == ("n", "int", 100, "queries per split and seed")
    assert (n.low, n.high, n.allowed) == (1, 600, "1 to 600")
    assert lane.choices == ("P", "C", "R-text", "R-struct")
    assert parameters[6].allowed == ""


@pytest.mark.parametrize(
    ("given", "read"),
    [
        pytest.param({"n": "5"}, {"n": 5}, id="text is read as typed by hand"),
        pytest.param({"n": 600}, {"n": 600}, id="a bound is allowed"),
        pytest.param({"rate": 1}, {"rate": 1.0}, id="a whole number is a float"),
        pytest.param({"lanes": "C,P"}, {"lanes": ["C", "P"]}, id="a list is separated by commas"),
        pytest.param({"seeds": "[1, 2]"}, {"seeds": [1, 2]}, id="brackets do not matter"),
        pytest.param({"sigmas": "1,2.5"}, {"sigmas": [1.0, 2.5]}, id="a list of numbers"),
        pytest.param({"fast": "true"}, {"fast": True}, id="truth is written true"),
        pytest.param({}, {}, id="nothing given, nothing returned"),
    ],
)
def test_good_values_are_returned_typed(parameters, given, read):
    assert check(given, parameters, "chapter") == read


@pytest.mark.parametrize(
    ("given", "words"),
    [
        pytest.param({"lan": "P"}, ["unknown parameter 'lan'", "Did you mean lane"], id="unknown name"),
        pytest.param({"n": 0}, ["n = 0", "1 to 600", "queries"], id="below the range"),
        pytest.param({"n": 601}, ["n = 601"], id="above the range"),
        pytest.param({"sigmas": "1,10"}, ["sigmas", "0 to 9"], id="one of a list above the range"),
        pytest.param({"sigmas": "1,much"}, ["sigmas", "list[float]"], id="a word in a list of numbers"),
        pytest.param({"n": "many"}, ["'many'", "int"], id="a word for a number"),
        pytest.param({"n": 1.5}, ["1.5"], id="a fraction for a whole number"),
        pytest.param({"n": True}, ["True"], id="truth for a number"),
        pytest.param({"lane": "r-text"}, ["'r-text'", "Did you mean R-text"], id="a choice in lower case"),
        pytest.param({"lanes": ["Q"]}, ["'Q'", "Known: P, C, R-text"], id="a wrong element"),
        pytest.param({"seeds": "1,x"}, ["seeds"], id="a word among the seeds"),
        pytest.param({"profile": 3}, ["profile = 3"], id="a number for a name"),
    ],
)
def test_bad_values_are_refused_with_name_and_remedy(parameters, given, words):
    with pytest.raises(KBookError) as caught:
        check(given, parameters, "chapter")
    assert all(word in str(caught.value) for word in ["chapter", *words])


@pytest.mark.parametrize(
    ("source", "words"),
    [
        pytest.param("n = 3  # how many", "typed assignment", id="no type"),
        pytest.param("n: int = 3", "no comment", id="no comment"),
        pytest.param("n: int = 3  # [1..9]", "no comment", id="a range is no meaning"),
        pytest.param("n: int = f()  # how many", "literal", id="computed default"),
        pytest.param("n: complex = 3j  # how many", "unknown type", id="type of another kind"),
        pytest.param(CELL + "\nm: int = 3  # how many [4..9]", "m = 3", id="default outside its range"),
        pytest.param("import os", "typed assignment", id="a statement"),
        pytest.param("api_key: str = ''  # a key", "looks like a secret", id="a secret"),
        pytest.param("n: int = 3  # how many", "no 'profile'", id="no profile"),
    ],
)
def test_a_bad_cell_is_refused_by_line(source, words):
    with pytest.raises(KBookError, match=words):
        read_parameters(notebook(source), "chapter")


def test_ordinary_names_with_token_in_them_are_no_secrets():
    source = CELL + "\nmax_new_tokens: int = 5  # tokens a turn"
    assert read_parameters(notebook(source), "chapter")[-1].name == "max_new_tokens"


def test_exactly_one_cell_is_tagged():
    with pytest.raises(KBookError, match="no cell is tagged"):
        read_parameters(notebook(CELL, tags=()), "chapter")
    twice = notebook(CELL)
    twice.cells.append(twice.cells[1])
    with pytest.raises(KBookError, match="2 cells are tagged"):
        read_parameters(twice, "chapter")
