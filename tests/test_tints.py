from kbook.report.tints import TINTS, WHITE, tint


def test_label_has_the_tint_of_the_kind_that_it_begins_with():
    assert tint("K-REF 5×") == tint("K-REF ∞") == TINTS["K-REF"]
    assert tint("broken (3.0×)") == TINTS["broken"] != TINTS["preserved"]


def test_control_any_other_text_has_none():
    assert tint("baseline") == tint("<script>") == WHITE
