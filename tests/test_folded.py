"""Names are compared by what they say, not by how they are typed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbook.text import folded


@pytest.mark.parametrize(
    "written",
    ["Ana Smith", "ANA SMITH", "  ana   smith\t", "Ana\u00a0Smith", "\uff21\uff4e\uff41 Smith", "Ana\nSmith"],
    ids=["plain", "capitals", "spaces", "no-break space", "full-width letters", "line break"],
)
def test_spellings_of_one_name_are_equal(written: str) -> None:
    assert folded(written) == "ana smith"


@pytest.mark.parametrize("other", ["Anna Smith", "AnaSmith", "Ana-Smith", ""], ids=repr)
def test_other_names_stay_other(other: str) -> None:
    assert folded(other) != "ana smith"


@given(st.text())
def test_folding_twice_changes_no_spacing(text: str) -> None:
    assert folded(text) == " ".join(folded(text).split())
