"""A record file that grows a batch at a time: torn tails are dropped, damage is named, the rest is kept."""

import warnings

import pytest

from kbook.errors import KBookError
from kbook.files import StoreWarning
from kbook.journal import JOURNAL, ROWS, Header, RowJournal, salvage

HEADER = Header("d" * 64, 3, "2026-01-01T00:00:00+00:00")
BATCHES = [[{"a": 1}, {"a": 2}], [], [{"a": "drei"}]]
WHOLE = b'{"a": 1}\n{"a": 2}\n{"a": "drei"}\n'


def fill(folder, batches=BATCHES):
    with RowJournal(folder, HEADER) as journal:
        for batch in batches[len(journal.batches) :]:
            journal.append(batch, seconds=1.5)
    return journal


@pytest.fixture
def quiet():
    """Turn any warning into a failure."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def test_rows_file_holds_the_rows_and_nothing_else(tmp_path, quiet):
    journal = fill(tmp_path)
    assert (tmp_path / ROWS).read_bytes() == WHOLE
    assert (journal.n_rows, journal.seconds, len(journal.batches)) == (3, 4.5, 3)


def test_reopened_journal_goes_on_after_its_last_batch(tmp_path, quiet):
    fill(tmp_path, BATCHES[:2])
    later = Header(HEADER.digest, 3, "2027-01-01T00:00:00+00:00")
    with RowJournal(tmp_path, later) as journal:
        assert len(journal.batches) == 2
        journal.append(BATCHES[2], seconds=1.0)
    assert journal.header.started == HEADER.started
    assert journal.seconds == 4.0
    assert (tmp_path / ROWS).read_bytes() == WHOLE


@pytest.mark.parametrize("cut", range(1, 60, 7))
def test_torn_journal_line_takes_its_batch_away_silently(tmp_path, quiet, cut):
    fill(tmp_path)
    journal = tmp_path / JOURNAL
    journal.write_bytes(journal.read_bytes()[:-cut])
    assert len(salvage(tmp_path)[1]) == 2
    fill(tmp_path)
    assert (tmp_path / ROWS).read_bytes() == WHOLE


@pytest.mark.parametrize("tail", [b"{", b'{"a": 9}\n', b"\x00" * 500], ids=["half a row", "a row", "zeros"])
def test_rows_beyond_the_last_finished_batch_are_cut_off_silently(tmp_path, quiet, tail):
    fill(tmp_path, BATCHES[:1])
    with open(tmp_path / ROWS, "ab") as file:
        file.write(tail)
    fill(tmp_path)
    assert (tmp_path / ROWS).read_bytes() == WHOLE


@pytest.mark.parametrize("at", range(len(WHOLE)))
def test_one_changed_byte_anywhere_is_set_aside_and_mended(tmp_path, at):
    fill(tmp_path)
    damaged = bytearray(WHOLE)
    damaged[at] ^= 1
    (tmp_path / ROWS).write_bytes(damaged)
    with pytest.warns(StoreWarning, match=r"rows\.jsonl: damaged at or after line [13]; set aside"):
        kept = salvage(tmp_path)[1]
    assert len(kept) == (0 if at < 18 else 2)  # the batches before the damage
    assert (tmp_path / f"{ROWS}.corrupt-0").read_bytes() == bytes(damaged)
    fill(tmp_path)
    assert (tmp_path / ROWS).read_bytes() == WHOLE


@pytest.mark.parametrize("size", [0, 5, 18, 25])
def test_rows_file_that_lost_its_end_is_damage_not_a_torn_tail(tmp_path, size):
    fill(tmp_path)
    (tmp_path / ROWS).write_bytes(WHOLE[:size])
    with pytest.warns(StoreWarning, match="set aside"):
        salvage(tmp_path)
    fill(tmp_path)
    assert (tmp_path / ROWS).read_bytes() == WHOLE


def test_lost_rows_file_is_computed_again(tmp_path):
    fill(tmp_path)
    (tmp_path / ROWS).unlink()
    with pytest.warns(StoreWarning, match=r"rows\.jsonl: missing"):
        fill(tmp_path)
    assert (tmp_path / ROWS).read_bytes() == WHOLE


@pytest.mark.parametrize("content", [None, b"", b"\x00\x00\n", b"[]\n", b'{"digest": 1}\n'], ids=str)
def test_rows_without_a_sound_journal_are_set_aside(tmp_path, content):
    fill(tmp_path)
    (tmp_path / JOURNAL).unlink()
    if content is not None:
        (tmp_path / JOURNAL).write_bytes(content)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fill(tmp_path)
    assert any("rows.jsonl: its journal is missing or damaged" in str(w.message) for w in caught)
    assert (tmp_path / ROWS).read_bytes() == WHOLE


def test_row_that_is_no_json_adds_nothing(tmp_path):
    with RowJournal(tmp_path, HEADER) as journal:
        with pytest.raises(KBookError):
            journal.append([{"a": 1}, {"a": object()}], seconds=1.0)
        assert journal.batches == [] and (tmp_path / ROWS).read_bytes() == b""


@pytest.mark.parametrize(
    "other",
    [Header("e" * 64, 3, ""), Header("d" * 64, 4, "")],
    ids=["another digest", "another number of batches"],
)
def test_journal_of_another_run_is_refused_and_kept(tmp_path, other):
    fill(tmp_path, BATCHES[:2])
    before = (tmp_path / ROWS).read_bytes()
    with pytest.raises(KBookError, match="among the parameters"):
        RowJournal(tmp_path, other)
    assert (tmp_path / ROWS).read_bytes() == before
