"""Files that survive a crash, and record files that name a bad line."""

import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbook.errors import KBookError
from kbook.files import StoreWarning, locked, read_jsonl, set_aside, write_atomic, write_jsonl

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


def test_atomic_write_makes_the_folder_and_replaces_the_file(tmp_path):
    path = tmp_path / "a" / "b.json"
    write_atomic(path, b"old")
    write_atomic(path, b"new")
    assert path.read_bytes() == b"new"
    assert [p.name for p in path.parent.iterdir()] == ["b.json"]


def test_failed_atomic_write_leaves_the_old_content_and_no_litter(tmp_path, monkeypatch):
    path = tmp_path / "b.json"
    write_atomic(path, b"old")

    def full(_):
        raise OSError("disk full")

    monkeypatch.setattr("kbook.files.sync", full)
    with pytest.raises(OSError, match="disk full"):
        write_atomic(path, b"new")
    assert path.read_bytes() == b"old"
    assert [p.name for p in tmp_path.iterdir()] == ["b.json"]


def test_set_aside_counts_up_and_warns_by_name(tmp_path):
    path = tmp_path / "rows.jsonl"
    for n in range(2):
        path.write_bytes(b"damage %d" % n)
        with pytest.warns(StoreWarning, match=rf"rows\.jsonl: broken; set aside as rows\.jsonl\.corrupt-{n}"):
            set_aside(path, "broken")
    assert not path.exists()
    assert (tmp_path / "rows.jsonl.corrupt-0").read_bytes() == b"damage 0"
    assert (tmp_path / "rows.jsonl.corrupt-1").read_bytes() == b"damage 1"


HOLD = """
import sys, time
from pathlib import Path
from kbook.files import locked
with locked(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""


def test_lock_is_waited_for_and_ends_with_a_killed_process(tmp_path):
    holder = subprocess.Popen([sys.executable, "-c", HOLD, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert holder.stdout.readline() == "held\n"
    waiter = subprocess.Popen([sys.executable, "-c", HOLD, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    time.sleep(0.5)
    assert waiter.poll() is None  # it waits, neither failing nor going on
    holder.kill()
    assert waiter.stdout.readline() == "held\n"
    waiter.kill()
    holder.wait(), waiter.wait()
    with locked(tmp_path):
        pass


def test_store_that_cannot_be_written_is_an_error_with_remedy(tmp_path):
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(KBookError, match="KBOOK_STORE"), locked(tmp_path / "file" / "run"):
        pass


@given(st.lists(st.dictionaries(st.text(), json_values, max_size=4), max_size=5))
def test_rows_round_trip_through_bytes(rows):
    assert read_jsonl(Path("rows.jsonl"), write_jsonl(rows)) == rows


def test_rows_keep_foreign_letters_readable_and_line_separators_inside():
    rows = [{"text": "ราตรี 王 \u2028 \x85 \r"}, {"text": "half a pair \ud83d"}]
    content = write_jsonl(rows)
    assert "ราตรี 王".encode() in content and content.count(b"\n") == 2
    assert read_jsonl(None, content) == rows


def test_byte_order_mark_crlf_and_empty_lines_are_read_over(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'\xef\xbb\xbf{"a": 1}\r\n\r\n{"a": 2}')
    assert read_jsonl(path) == [{"a": 1}, {"a": 2}]


@pytest.mark.parametrize(
    "line",
    [b'{"a": 1', b"[1]", b"3", b"\xff\xfe", b"\x00\x00", b"[" * 100_000, b'{"a": ' + b"9" * 5000 + b"}"],
    ids=["truncated", "list", "number", "not UTF-8", "zeros", "too deep", "number too long"],
)
def test_damaged_line_is_an_error_that_names_file_and_line(tmp_path, line):
    path = tmp_path / "rows.jsonl"
    path.write_bytes(b'{"a": 1}\n' + line)
    with pytest.raises(KBookError, match=r"rows\.jsonl, line 2"):
        read_jsonl(path)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), {1, 2}, object()], ids=str)
def test_row_that_is_no_json_is_refused_by_number(value):
    with pytest.raises(KBookError, match="row 2"):
        write_jsonl([{"a": 1}, {"a": value}])
