"""What a fit says of itself reaches the reader: nothing found, nothing changed, or stopped on the way."""

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from transcript_factory import key

from kbook.keys import AnyKey, ModelKey
from kbook.report.fits import NO_OP, NOTHING_TO_SAY, STOPPED, kinds_of, note_frame, notes_of

SAME = {"before": {"forget": 1.0, "retain": 2.0}, "after": {"forget": 1.0, "retain": 2.0}}
MOVED = {"before": {"forget": 1.0, "retain": 2.0}, "after": {"forget": 3.0, "retain": 2.0}}


@dataclass(frozen=True)
class FakeRun:
    key: AnyKey
    extra: dict[str, Any]
    digest: str = "d"
    manifest: Any = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "manifest", SimpleNamespace(extra=self.extra))


def cell(method, seed=0, lane="C", fit=(), base="demo"):
    return FakeRun(key(method, seed=seed, lane=lane, base=base), {"first prompt": "", "fit": list(fit)})


def model(method, **extra):
    return FakeRun(ModelKey("kbench", "demo", method, 0, "inject-full"), extra)


def test_a_hook_that_found_nothing_is_a_no_op_in_its_lane():
    (note,) = notes_of([cell("leace", fit=[{"no_op": True, "layers": {"2": {}}}])])
    assert (note.base, note.lane, note.method, note.kind) == ("demo", "C", "leace", NO_OP)


def test_one_seed_that_acts_makes_a_method_no_no_op():
    idle, acting = [{"no_op": True}], [{"no_op": False}]
    assert not notes_of([cell("leace", 0, fit=idle), cell("leace", 1, fit=acting)])
    assert notes_of([cell("leace", 0, fit=idle), cell("leace", 0, lane="P", fit=acting)])


def test_training_that_ended_early_says_why_and_where_none_began_nothing_was_changed():
    late, never = notes_of([
        model("ga", stopped="the loss rose from 1 to 9 by step 40", steps=30, nll=MOVED),
        model("memflex", stopped="nothing was selected that could be trained", steps=0, nll=SAME),
    ])  # fmt: skip
    assert (late.lane, late.kind, late.text) == ("P", STOPPED, "the loss rose from 1 to 9 by step 40")
    assert (never.method, never.kind) == ("memflex", NO_OP)


def test_an_edit_that_moved_no_loss_did_nothing_though_its_cells_say_nothing():
    (note,) = notes_of([model("law", nll=SAME), cell("law", lane="P")])
    assert (note.method, note.kind) == ("law", NO_OP)


def test_facts_are_found_at_any_depth():
    requests = {"requests": [{"stopped": "", "steps": 9}, {"stopped": "it diverged", "steps": 3}]}
    assert [note.text for note in notes_of([model("o3", **requests)])] == ["it diverged"]


def test_a_sound_fit_says_nothing_and_the_table_says_that():
    sound = [model("npo", stopped="", steps=9, nll=MOVED), cell("eco"), cell("leace", fit=[{"no_op": False}])]
    assert notes_of(sound) == []
    assert note_frame([]).iloc[0].tolist()[-1] == NOTHING_TO_SAY


def test_bases_of_which_the_same_is_to_be_said_share_a_row():
    idle = [{"no_op": True}]
    places = [("one", "C"), ("two", "C"), ("three", "P")]
    frame = note_frame(notes_of([cell("leace", lane=lane, fit=idle, base=base) for base, lane in places]))
    assert frame[["bases", "lanes"]].to_numpy().tolist() == [["one, two", "C"], ["three", "P"]]


def test_lanes_of_one_note_stand_in_one_row_in_their_order():
    idle = [{"no_op": True}]
    notes = notes_of([cell("leace", lane=lane, fit=idle) for lane in ("R-struct", "P", "C")])
    (row,) = note_frame(notes).to_dict("records")
    assert row["lanes"] == "P, C, R-struct" and row["note"] == NO_OP
    assert set(kinds_of(notes)) == {("demo", lane, "leace") for lane in ("P", "C", "R-struct")}
