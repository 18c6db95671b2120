"""Observers are judged beside OR(all) by the same rules, and change nothing in it."""

import numpy as np
import pytest
from transcript_factory import golden_cells, golden_panel, key, rows

from kbook.scoring.cells import graded, leaks, score_rows
from kbook.scoring.frames import record_frame
from kbook.scoring.inference import Bootstrap
from kbook.scoring.observers import Seen, beside_records, observer_records, verdicts_beside
from kbook.scoring.panel import judge

FEW = Bootstrap(resamples=50)


def as_is(cell):
    return Seen("nobody new", cell, leaks(cell.cer), graded(cell.severity))


def table():
    """Untreated rows leak in 20 of 40, the method's in none; retain leaks in 20 either way."""
    return [
        score_rows(rows(40, 0 if (method, split) == ("eco", "forget") else 20), key(method, split))
        for method in ("none", "eco")
        for split in ("forget", "retain")
    ]


def test_observer_who_sees_nothing_more_gives_the_labels_of_the_panel():
    labels = verdicts_beside(golden_panel(), [as_is(cell) for cell in golden_cells()])
    assert labels and not any(label.changed for label in labels)
    scores = [(label.k_score, label.k_score_or_all) for label in labels if label.split == "forget"]
    np.testing.assert_allclose(*zip(*scores, strict=True))
    p_adj = {(test.subject, test.split): test.p_adj for test in golden_panel().tests}
    assert {(label.subject, label.split): label.p_adj for label in labels} == p_adj


def test_observer_who_sees_all_rows_turns_a_removal_into_a_mere_move():
    panel = judge(table(), how=FEW)
    everything = [Seen("all", cell, np.ones(cell.n, dtype=bool), np.ones(cell.n)) for cell in panel.cells]
    forget, retain = verdicts_beside(panel, everything)
    assert (forget.label_or_all, forget.label, forget.changed) == ("K-REF ∞", "K-SUP", True)
    assert (forget.or_none, forget.or_method, forget.k_score) == (1, 1, 0) and forget.k_score_or_all == 1
    assert (retain.label_or_all, retain.label, retain.changed) == ("preserved", "preserved", False)


def test_cell_that_the_observer_did_not_look_at_counts_as_before():
    panel = judge(table(), how=FEW)
    (forget, _) = verdicts_beside(panel, [])
    assert (forget.or_none, forget.or_method) == (0.5, 0) and not forget.changed


def test_table_itself_stays_as_it_is():
    cells = table()
    before = [cell.cer.copy() for cell in cells]
    verdicts_beside(judge(cells, how=FEW), [Seen("all", c, np.ones(c.n, dtype=bool), np.ones(c.n)) for c in cells])
    assert all(np.array_equal(cell.cer, cer) for cell, cer in zip(cells, before, strict=True))


def test_records_hold_both_figures():
    panel = judge(table(), how=FEW)
    cell = panel.cells[0]
    (record,) = observer_records([Seen("all", cell, np.ones(cell.n, dtype=bool), np.ones(cell.n))])
    assert (record["or_all"], record["or_seen"], record["graded_seen"]) == (0, 1, 1)
    frame = record_frame(beside_records(verdicts_beside(panel, [as_is(cell) for cell in panel.cells])))
    assert list(frame["changed"]) == [False, False] and list(frame["method"]) == ["eco", "eco"]
    assert frame["k_score"].tolist()[0] == pytest.approx(1)
