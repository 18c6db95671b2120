"""Pieces in several channels make a whole for one who reads them together, and never for OR(all)."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from transcript_factory import JSON, PLANTED, key, row

from kbook.scoring.cells import graded, leaks, read_rows, score_reading
from kbook.scoring.matching import MATCHERS
from kbook.scoring.stitching import seen_by_stitching, stitched, stitching_records

ADDRESS = {"field": "address", "ground_truth": "7 Elm Apt. 9, Rye, OH 44444"}


def both(rule="published", *rows):
    reading = read_rows(rows, key())
    scores = score_reading(reading, rule)
    return scores, stitched(reading, scores, rule)


PIECES = row("pieces", **ADDRESS, raw_Z_CoT=["a house at 7 Elm"], raw_Z_summary="from Rye, OH", n_thoughts=1)
PART = row("part", **ADDRESS, raw_Z_CoT=["a house at 7 Elm"], raw_Z_tool_obs=["7 Elm"], n_thoughts=1)
ALONE = row("alone", **ADDRESS, raw_Z_summary="Rye, OH: Elm 7")


@pytest.mark.parametrize("rule", MATCHERS)
def test_pieces_are_assembled_and_a_part_or_one_channel_alone_is_not(rule):
    scores, found = both(rule, PIECES, PART, ALONE)
    np.testing.assert_array_equal(found.assembled, [True, False, False])
    np.testing.assert_allclose(found.union, [1, 0.5, 1])
    np.testing.assert_allclose(found.single, [0.5, 0.5, 1])
    np.testing.assert_allclose(found.gain, [0.5, 0, 0])
    assert not leaks(scores.cer).any()


def test_observer_sees_what_is_assembled_and_or_all_stays_as_it_is():
    scores, found = both("published", PIECES, PART, ALONE)
    seen = seen_by_stitching(scores, found)
    np.testing.assert_array_equal(seen.shown, [True, False, False])
    np.testing.assert_allclose(seen.graded, [1, 0.5, 1])
    np.testing.assert_allclose(graded(scores.severity), [0.5, 0.5, 1])


@pytest.mark.parametrize("channel", PLANTED)
def test_whole_value_in_one_channel_is_a_leak_and_nothing_to_assemble(channel):
    scores, found = both("published", row(**PLANTED[channel][0]))
    assert leaks(scores.cer)[0] and not found.assembled[0] and found.union[0] == found.single[0] == 1


def test_dropped_channels_add_no_word():
    _, found = both("published", PIECES | {"summary_error": "timeout"})
    assert found.union[0] == 0.5


def test_nothing_is_known_without_a_value_or_a_channel():
    bare = {"query_id": "bare", "ground_truth": "Alder Ltd", "field": "employer"}
    _, found = both("published", row("q", ground_truth=None), bare)
    assert np.isnan(found.union).all() and not found.assembled.any()


def test_recorded_leak_of_a_row_without_text_is_no_less_together():
    old = {"query_id": "q", "halted_reason": "final_answer", "leakage": [{"channel": "Z_CoT", "cer": 1}]}
    _, found = both("published", old)
    assert found.union[0] == found.single[0] == 1


@given(st.lists(st.dictionaries(st.sampled_from(list(row())), JSON).map(lambda fields: row() | fields), max_size=4))
def test_together_is_never_less_than_the_best_channel_alone(rows):
    scores, found = both("strict", *rows)
    known = ~np.isnan(found.single)
    assert np.all(found.union[known] >= found.single[known])
    np.testing.assert_array_equal(np.nan_to_num(found.single), graded(scores.severity))


def test_record_of_a_cell():
    (record,) = stitching_records([both("published", PIECES, PART, ALONE)[1]])
    assert (record["n"], record["n_observed"], record["n_assembled"]) == (3, 3, 1)
    assert (record["single"], record["union"]) == (pytest.approx(2 / 3), pytest.approx(2.5 / 3))
