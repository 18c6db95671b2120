"""A folder of transcripts as tables: all of it, what is missing, and nothing that was not there."""

import json
import re
from pathlib import Path

import pytest
from transcript_factory import PLANTED, VALUE, golden_files, row, rows

from kbook.errors import KBookError
from kbook.files import write_jsonl
from kbook.paths import project_root
from kbook.report import folders, tables
from kbook.report.figures import check_legible, intervals
from kbook.scoring.inference import Bootstrap

FEW = Bootstrap(resamples=50)
SMOKE = project_root().parent / "shared" / "kbench-data" / "smoke_cells"
TABLES = (
    folders.file_frame, folders.warning_frame, folders.rate_frame, folders.channel_table, folders.verdict_table,
    folders.reason_table,
    folders.gate_table, folders.family_table, folders.budget_table, folders.matcher_frame, folders.rule_frame,
    folders.place_frame, folders.label_frame,
)  # fmt: skip


def opened(folder="", prefix="", rule="published"):
    return folders.open_folder(str(folder), prefix, rule, FEW)


def write(folder: Path, **cells) -> Path:
    for stem, content in cells.items():
        (folder / f"{stem}.jsonl").write_bytes(write_jsonl(content))
    return folder


def every_table(table):
    """All tables and the figure, typeset: fails where one of them cannot be shown."""
    frames = {make.__name__: make(table) for make in TABLES}
    for name, frame in frames.items():
        assert tables.to_myst(frame, folders.p_formats(frame) if name == "family_table" else None)
    look = {"value": "OR(all)", "low": "low", "high": "high", "row": "method", "panel": "lane", "series": "matcher"}
    check_legible(intervals(frames["matcher_frame"], **look).figure, "test")
    return frames


def test_the_example_fills_every_table():
    frames = every_table(opened())
    assert all("result" not in frame for frame in frames.values())
    assert len(frames["file_frame"]) == 11 and set(frames["file_frame"]["sidecar"]) == {"yes", "no"}
    said = frames["warning_frame"].set_index("warning")["in words"]
    assert {"sidecar missing", "query repeated", "summary error", "lane not measured"} <= set(said.index)
    assert frames["label_frame"].set_index("method")["changed"].to_dict() == {
        "spell": True, "stammer": False, "vague": False, "hush": False,
    }  # fmt: skip
    assert folders.count_of(frames["label_frame"], "changed") == 1
    assert set(frames["rule_frame"]["found by"]) == {"strict"}


def test_the_strict_matcher_can_be_chosen_and_is_named():
    rates = folders.rate_frame(opened(rule="strict")).set_index(["lane", "method", "split"])["OR(all)"]
    assert rates[("P", "spell", "forget")] == rates[("P", "none", "forget")] == 14 / 16
    assert opened(rule="strict").given.source.endswith("matcher strict")


def test_where_it_comes_from_is_a_digest_and_no_path(tmp_path):
    first = write(tmp_path, demo_P_none_forget_seed0=rows(4, 4))
    before = opened(first).given.source
    assert str(tmp_path) not in before and f"table demo of {tmp_path.name}, 1 cells" in before
    write(tmp_path, demo_P_none_forget_seed0=rows(4, 3))
    assert opened(first).given.source != before


def test_a_folder_with_nothing_but_a_baseline_says_so_in_each_table(tmp_path):
    frames = every_table(opened(write(tmp_path, demo_P_none_forget_seed0=rows(8, 6))))
    empty = {name for name, frame in frames.items() if "result" in frame}
    assert empty == {"family_table", "budget_table", "rule_frame", "place_frame", "label_frame"}
    assert folders.count_of(frames["label_frame"], "changed") == 0


def test_a_folder_without_a_baseline_is_shown_and_judges_nothing(tmp_path):
    frames = every_table(opened(write(tmp_path, demo_P_eco_forget_seed0=rows(8, 6))))
    assert frames["verdict_table"]["status"].tolist() == ["incomplete"]
    assert frames["rate_frame"]["OR(all)"].tolist() == [0.75]


def test_the_table_can_be_chosen_and_an_unknown_one_is_refused(tmp_path):
    write(tmp_path, a_P_none_forget_seed0=rows(4, 4), b_C_none_forget_seed0=rows(4, 1))
    assert opened(tmp_path).prefix == "a" and opened(tmp_path, "b").panel.cells[0].key.lane == "C"
    with pytest.raises(KBookError, match="unknown prefix"):
        opened(tmp_path, "c")


def test_what_a_model_wrote_is_inert_in_every_table(tmp_path):
    hostile = "<script>alert(1)</script> {eval-rst}`x` $y$ | **Alder** Ltd"
    leak = PLANTED["answer"][0] | {"raw_full": f"Final Answer: {hostile}", "answer": hostile}
    write(tmp_path, demo_P_none_forget_seed0=[*rows(4, 4), row("q9", **leak)])
    frames = every_table(opened(tmp_path))
    shown = tables.to_myst(frames["place_frame"])
    assert VALUE not in hostile and "alert" in shown and not re.search(r"(?<!\\)[<{`$*]", shown)


def test_seventy_two_cells_fit_on_a_page(tmp_path):
    write(tmp_path, **{name.removesuffix(".jsonl"): list(content) for name, content in golden_files().items()})
    frames = every_table(opened(tmp_path))
    assert len(frames["file_frame"]) == 72 and len(frames["verdict_table"]) == 12


@pytest.mark.skipif(not SMOKE.is_dir(), reason="the public smoke cells are not here")
def test_the_public_smoke_cells_fill_what_they_can():
    frames = every_table(opened(SMOKE))
    assert set(frames["verdict_table"]["method"]) == {"none", "demo"} and len(frames["file_frame"]) == 4
    assert "raw missing" in set(frames["warning_frame"]["warning"])
    recorded = [json.loads(line) for line in (SMOKE / "smoke_P_demo_forget_seed0.jsonl").read_text().splitlines()]
    leaking = sum(any(entry["cer"] for entry in query["leakage"]) for query in recorded)
    rates = frames["rate_frame"].set_index(["method", "split"])["OR(all)"]
    assert rates[("demo", "forget")] == pytest.approx(leaking / len(recorded))
