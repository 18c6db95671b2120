"""The three commands end to end: what is printed, what is written, and what never is."""

import json

import pytest
from transcript_factory import rows, write_cell

from kbook.cli import main

STEM = "demo_P_eco_forget_seed0"


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "cells"
    folder.mkdir()
    for method, leaking in (("none", 6), ("eco", 0)):
        for split in ("forget", "retain"):
            entries = rows(10, leaking if split == "forget" else 5)
            write_cell(folder, f"demo_P_{method}_{split}_seed0", entries, {"model": "m", "base_model": "m"})
    return folder


def everything(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_score_prints_the_report_and_writes_the_object(folder, tmp_path, capsys):
    assert main(["score", "--cells", str(folder), "--json", str(tmp_path / "new" / "o.json")]) == 0
    assert "demo P eco: measured" in capsys.readouterr().out
    card = json.loads((tmp_path / "new" / "o.json").read_text())
    assert card["schema"] == "kbook-score@1" and card["source"]["path"] == str(folder)


def test_page_is_written_into_its_folder_and_may_be_made_again(folder, tmp_path):
    for _ in range(2):
        assert main(["score", "--cells", str(folder), "--html", str(tmp_path / "h")]) == 0
    assert [path.name for path in (tmp_path / "h").iterdir()] == ["index.html"]
    assert "demo" in (tmp_path / "h" / "index.html").read_text()


def test_page_of_somebody_else_is_left_alone_and_then_nothing_is_written(folder, tmp_path, capsys):
    (tmp_path / "index.html").write_text("<p>mine")
    asked = ["--html", str(tmp_path), "--json", str(tmp_path / "o.json")]
    assert main(["score", "--cells", str(folder), *asked]) == 2
    assert "is a page that this command did not make" in capsys.readouterr().err
    assert (tmp_path / "index.html").read_text() == "<p>mine" and not (tmp_path / "o.json").exists()


def test_object_on_standard_output_stands_alone(folder, capsys):
    assert main(["score", "--cells", str(folder), "--json", "-"]) == 0
    assert json.loads(capsys.readouterr().out)["tables"][0]["prefix"] == "demo"


def test_matcher_is_chosen_and_noted(folder, capsys):
    assert main(["score", "--cells", str(folder), "--json", "-", "--matcher", "strict"]) == 0
    assert json.loads(capsys.readouterr().out)["settings"]["matcher"] == "strict"


def test_only_the_table_that_was_asked_for_is_scored(folder, capsys):
    write_cell(folder, "other_P_none_forget_seed0", rows(2, 1))
    main(["score", "--cells", str(folder), "--prefix", "other"])
    assert "demo" not in capsys.readouterr().out


def test_bundle_is_written_and_its_report_is_that_of_its_cells(folder, tmp_path, capsys):
    main(["score", "--cells", str(folder)])
    before = capsys.readouterr().out
    assert main(["bundle", "--cells", str(folder), "--out", str(tmp_path / "b")]) == 0
    assert capsys.readouterr().out == f"{tmp_path / 'b'}: 4 cells\n"
    assert main(["report", str(tmp_path / "b")]) == 0
    assert capsys.readouterr().out == before


def test_what_a_bundle_lacks_is_printed_by_name(folder, tmp_path, capsys):
    (folder / f"{STEM}.config.json").unlink()
    assert main(["bundle", "--cells", str(folder), "--out", str(tmp_path / "b")]) == 0
    assert "  [sidecar_missing] demo: 1 of 4 cells have no sidecar" in capsys.readouterr().out


BAD = {
    "truncated last line": (lambda path: path.write_bytes(path.read_bytes()[:-9]), f"{STEM}.jsonl, line 10"),
    "invalid UTF-8": (lambda path: path.write_bytes(b'{"query_id": "\xff"}'), f"{STEM}.jsonl, line 1"),
    "no object": (lambda path: path.write_bytes(b"[1]\n"), "not a JSON object"),
    "a sidecar of another cell": (
        lambda path: path.with_name(f"{STEM}.config.json").write_text('{"seed": 137}'),
        "the sidecar says seed 137",
    ),
    "another base": (
        lambda path: path.with_name(f"{STEM}.config.json").write_text('{"base_model": "x"}'),
        "comes from another base",
    ),
}


@pytest.mark.parametrize("command", ["score", "bundle"])
@pytest.mark.parametrize(("damage", "message"), BAD.values(), ids=BAD)
def test_bad_input_is_status_2_with_one_line_and_nothing_is_written(folder, tmp_path, capsys, command, damage, message):
    damage(folder / f"{STEM}.jsonl")
    before = everything(tmp_path)
    outputs = ["--json", str(tmp_path / "o.json")] if command == "score" else ["--out", str(tmp_path / "b")]
    assert main([command, "--cells", str(folder), *outputs]) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.count("\n") == 1 and message in err
    assert everything(tmp_path) == before


def test_folder_that_is_none_and_one_that_is_no_bundle_are_refused(folder, tmp_path, capsys):
    assert main(["score", "--cells", str(tmp_path / "no")]) == 2
    assert "no: is not a folder." in capsys.readouterr().err
    assert main(["report", str(folder)]) == 2
    assert "is no bundle. Make one with kbook bundle --cells" in capsys.readouterr().err


def test_transcripts_are_never_written_over(folder, capsys):
    before = everything(folder)
    assert main(["score", "--cells", str(folder), "--json", str(folder / f"{STEM}.jsonl")]) == 2
    assert "is one of the transcripts that were scored" in capsys.readouterr().err
    assert main(["score", "--cells", str(folder), "--json", str(folder)]) == 2
    assert everything(folder) == before


def test_place_that_cannot_be_written_is_an_error_in_words(folder, capsys):
    assert main(["score", "--cells", str(folder), "--json", str(folder / f"{STEM}.jsonl" / "o.json")]) == 2
    assert "cannot be written" in capsys.readouterr().err
