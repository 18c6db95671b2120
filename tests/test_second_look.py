from transcript_factory import VALUE, golden_cells, golden_panel, key, row, rows

from kbook.scoring.cells import read_rows, score_reading
from kbook.scoring.inference import Bootstrap
from kbook.scoring.panel import judge
from kbook.scoring.second_look import look_again

HOW = Bootstrap(resamples=50)


def look(*cells):
    readings = sorted((read_rows(entries, place) for place, entries in cells), key=lambda reading: reading.key)
    panel = judge([score_reading(reading, "published") for reading in readings], how=HOW)
    return panel, look_again(panel, readings, "published", HOW)


def test_control_cells_in_which_nobody_sees_more_keep_every_label():
    _, found = look((key(), rows(40, 30)), (key("eco"), rows(40)))
    assert not any(label.changed for label in found.labels) and found.differences.differences == ()
    assert {seen.observer for seen in found.seen} == {"third party", "stitching"} and len(found.seen) == 4


def test_value_in_two_pieces_is_seen_by_stitching_and_changes_its_label_alone():
    first, second = VALUE.split()
    pieces = [row(f"q{n}", raw_Z_CoT=[f"{first} something"], raw_Z_summary=f"some {second}") for n in range(40)]
    panel, found = look((key(), rows(40, 40)), (key("eco"), pieces))
    changed = {label.observer for label in found.labels if label.changed}
    assert panel.verdicts[1].k_class.text == "K-REF ∞" and changed == {"stitching"}


def test_both_matchers_judge_the_same_cells():
    _, found = look((key(), rows(4, 2)))
    assert set(found.panels) == {"published", "strict"}
    assert [len(panel.cells) for panel in found.panels.values()] == [1, 1]


def test_cells_of_a_panel_stand_in_the_order_of_their_keys():
    assert [cell.key for cell in golden_panel().cells] == sorted(cell.key for cell in golden_cells())
