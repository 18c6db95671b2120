import pandas as pd
import pytest
from transcript_factory import golden_panel

from kbook.scoring import frames

COUNTS = {
    "cell_frame": 72,
    "channel_frame": 72 * 6,
    "comparison_frame": 16,
    "verdict_frame": 12,
    "gate_frame": 4 * 2 + 8 * 3,
    "budget_frame": 8 * 5,
    "topology_frame": 6,
}


@pytest.mark.parametrize("name", COUNTS)
def test_frame_is_tidy_with_one_row_a_thing(name):
    frame = getattr(frames, name)(golden_panel())
    assert len(frame) == COUNTS[name]
    assert frame.columns.is_unique and frame.columns.nlevels == 1


@pytest.mark.parametrize(("name", "count"), [("cell_frame", 24), ("channel_frame", 24 * 6)])
def test_seeds_together(name, count):
    frame = getattr(frames, name)(golden_panel(), pooled=True)
    assert len(frame) == count and set(frame["seeds"]) == {"0, 137, 271"} and set(frame["n"]) == {90}


def test_both_denominators_stand_beside_each_other():
    frame = frames.channel_frame(golden_panel())
    assert (frame["cer_available"] >= frame["cer_all"]).all()
    gated = frame[frame["n_observed"] < frame["n"]]
    assert set(gated["channel"]) == {"answer", "summary"}
    assert (frame["cer_all_lo"] <= frame["cer_all"]).all() and (frame["cer_all"] <= frame["cer_all_hi"]).all()


def test_verdict_frame_holds_plain_words_and_numbers():
    frame = frames.verdict_frame(golden_panel())
    measured = frame[frame["status"] == "measured"]
    assert set(measured["eligible"]) == {True} and measured["k_class"].notna().all()
    assert pd.api.types.is_numeric_dtype(frame["k_score"])
    assert (frame.loc[frame["method"] == "none", "status"] == "baseline").all()
