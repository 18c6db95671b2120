"""The command line: who does the work, what it says when something is wrong, and how fast it answers."""

import json
import os
import subprocess
import sys
import types
import warnings
from pathlib import Path

import pytest

from kbook import __version__
from kbook.agent import card
from kbook.cli import main
from kbook.errors import KBookError
from kbook.files import StoreWarning
from kbook.keys import CellKey
from kbook.models.ability import Ability
from kbook.store import Spec, Store

KEY = CellKey("kbench", "llama-tiny", "R-text", "eco", "forget", 137)


@pytest.fixture
def calls(monkeypatch):
    """Put modules in place of those that do the work; each call is noted with its arguments."""
    noted = []

    def module(name, *functions):
        fake = types.ModuleType(name)
        for function in functions:
            setattr(fake, function, lambda *a, _name=function, **k: noted.append((_name, a, k)))
        monkeypatch.setitem(sys.modules, name, fake)

    module("kbook.scorecards", "score", "bundle", "report")
    module("kbook.chapters", "run_chapter", "build_book")
    return noted


def failing(monkeypatch, error):
    def run_chapter(*_):
        raise error

    fake = types.ModuleType("kbook.chapters")
    fake.run_chapter = run_chapter
    monkeypatch.setitem(sys.modules, "kbook.chapters", fake)


def test_run_passes_chapter_profile_and_parameters(calls):
    assert main(["run", "kbench_topology", "-p", "n=4", "-p", "note=a=b, c", "--profile", "smoke"]) == 0
    assert calls == [("run_chapter", ("kbench_topology", "smoke", {"n": "4", "note": "a=b, c"}), {})]


def test_laptop_is_the_default_profile(calls):
    main(["run", "kbench_topology"])
    main(["book"])
    assert calls == [
        ("run_chapter", ("kbench_topology", "laptop", {}), {}),
        ("build_book", ("laptop",), {"fresh": False}),
    ]


def test_book_may_be_built_afresh(calls):
    main(["book", "--profile", "smoke", "--fresh"])
    assert calls == [("build_book", ("smoke",), {"fresh": True})]


@pytest.mark.parametrize(("action", "function"), [("train", "train_and_install"), ("check", "check_base")])
@pytest.mark.parametrize(("answer", "status"), [(0.95, 0), (0.94, 1)], ids=["all passed", "one missed"])
def test_base_is_trained_or_checked(monkeypatch, capsys, action, function, answer, status):
    asked = []
    ability = Ability("admits it", 100, 1.0, None, answer, {"answer": 0.95})
    monkeypatch.setattr(card, function, lambda name: asked.append(name) or [ability])
    assert main(["base", action, "llama-tiny"]) == status and asked == ["llama-tiny"]
    said = capsys.readouterr().out
    assert f"{answer:.3f}" in said and ("below what is required" in said) == bool(status)


def test_score_takes_a_folder_a_prefix_a_matcher_and_outputs(calls, tmp_path):
    assert main(["score", "--cells", str(tmp_path)]) == 0
    asked = ["--prefix", "p", "--matcher", "strict", "--json", "a.json", "--html", "h"]
    assert main(["score", "--cells", "x", *asked]) == 0
    assert calls == [
        ("score", (tmp_path, None), {"rule": "published", "json": None, "html": None}),
        ("score", (Path("x"), "p"), {"rule": "strict", "json": Path("a.json"), "html": Path("h")}),
    ]


def test_bundle_takes_a_folder_and_a_place_and_report_a_bundle(calls):
    assert main(["bundle", "--cells", "x", "--out", "b", "--prefix", "p"]) == 0
    assert main(["report", "b", "--json", "-"]) == 0
    assert calls == [
        ("bundle", (Path("x"), Path("b"), "p"), {}),
        ("report", (Path("b"),), {"rule": "published", "json": Path("-"), "html": None}),
    ]


def test_sweep_tries_the_methods_of_the_profile_or_those_that_are_named(monkeypatch, capsys):
    from kbook import sweeps
    from kbook.scoring import selection

    ran = []
    monkeypatch.setattr(sweeps, "run_sweep", lambda bench, method: ran.append((bench.base_name, method)))
    monkeypatch.setattr(selection, "report", lambda sweep: "a line")
    assert main(["sweep", "--profile", "smoke"]) == 0
    assert main(["sweep", "leace", "--profile", "smoke", "--base", "other"]) == 0
    assert ran == [("llama-tiny", "npo"), ("llama-tiny", "leace"), ("other", "leace")]
    assert capsys.readouterr().out == "a line\n" * 3
    assert main(["sweep", "npo", "eco", "--profile", "smoke"]) == 2 and len(ran) == 3  # nothing was run
    assert "unknown sweep 'eco'. Known: npo, leace" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["score", "bundle", "report"])
def test_help_of_the_commands_on_transcripts_says_what_the_exit_status_means(command):
    out = " ".join(python("-m", "kbook", command, "--help").stdout.split())
    assert "Exit status: 0, done, with or without warnings; 2, bad input" in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "x", "-p", "n"], "'n' sets no parameter. Write -p name=value."),
        (["run", "x", "-p", "=4"], "'=4' sets no parameter"),
        (["run", "x", "-p", "n=1", "-p", "n=2"], "'n' is set twice"),
        (["run", "x", "--profile", "lapto"], "unknown profile 'lapto'. Did you mean laptop?"),
        (["book", "--profile", "lapto"], "unknown profile 'lapto'. Did you mean laptop?"),
    ],
    ids=["no value", "no name", "twice", "profile of run", "profile of book"],
)
def test_bad_input_is_one_paragraph_on_stderr_and_status_2(calls, capsys, arguments, message):
    assert main(arguments) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.startswith("kbook: ") and message in err and err.count("\n") == 1
    assert calls == []


@pytest.mark.parametrize("arguments", [[], ["rn"], ["run"], ["base", "tune", "x"], ["book", "--frsh"]], ids=str)
def test_malformed_command_line_is_status_2(arguments):
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    assert stop.value.code == 2


def test_error_of_the_work_is_printed_and_is_status_2(monkeypatch, capsys):
    failing(monkeypatch, KBookError("unknown lane 'X'", "kbench_topology", "Use P"))
    assert main(["run", "kbench_topology"]) == 2
    assert capsys.readouterr().err == "kbook: kbench_topology: unknown lane 'X'. Use P.\n"


def test_interruption_is_status_130_and_says_how_to_go_on(monkeypatch, capsys):
    failing(monkeypatch, KeyboardInterrupt())
    assert main(["run", "kbench_topology"]) == 130
    assert "goes on where it stopped" in capsys.readouterr().err


def test_fault_of_the_program_is_not_dressed_up_as_bad_input(monkeypatch):
    failing(monkeypatch, ZeroDivisionError())
    with pytest.raises(ZeroDivisionError):
        main(["run", "kbench_topology"])


def test_warning_is_one_line_without_code(monkeypatch, capsys):
    fake = types.ModuleType("kbook.chapters")
    fake.run_chapter = lambda *_: warnings.warn("rows.jsonl: damaged", StoreWarning, stacklevel=1)
    monkeypatch.setitem(sys.modules, "kbook.chapters", fake)
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        assert main(["run", "kbench_topology"]) == 0
    assert capsys.readouterr().err == "kbook: warning: rows.jsonl: damaged\n"


def test_cells_lists_complete_and_unfinished_runs_by_prefix(monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("KBOOK_STORE", str(tmp_path))
    store = Store(profile="smoke")
    spec = Spec({}, ("kbook.keys",))
    store.rows(KEY, spec, [0, 1], lambda batch: [{"x": batch}] * 2)

    def interrupted(_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        store.rows(CellKey("cllpu", "llama-tiny", "P", "ga", "forget", 0), spec, [0], interrupted)
    assert main(["cells"]) == 0
    complete, unfinished, total = capsys.readouterr().out.splitlines()
    assert complete.startswith(f"{KEY}  {spec.digest[:8]}  smoke  4 rows")
    assert unfinished.startswith("cllpu/llama-tiny/P/ga/forget/seed=0/") and "unfinished" in unfinished
    assert total.startswith("1 complete") and total.endswith(f"1 unfinished in {tmp_path}")
    assert main(["cells", "kbench/llama-tiny/P"]) == 0
    assert capsys.readouterr().out.startswith("0 complete")


def python(*arguments, **options):
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, **options)


def test_module_and_version():
    done = python("-m", "kbook", "--version")
    assert (done.returncode, done.stdout) == (0, f"kbook {__version__}\n")


def test_help_names_every_command():
    out = python("-m", "kbook", "--help").stdout
    assert all(
        f"    {command} " in out
        for command in "run book ship sweep cells base methods score bundle report doctor".split()
    )


def test_help_and_package_import_nothing_heavy():
    code = (
        "import sys, kbook.cli\n"
        "try: kbook.cli.main(['--help'])\n"
        "except SystemExit: pass\n"
        "print(sorted({'torch', 'transformers', 'numpy', 'pandas', 'pydantic'} & set(sys.modules)))"
    )
    assert python("-c", code).stdout.endswith("[]\n")


def test_reader_of_a_pipe_may_leave_early(tmp_path):
    command = f"{sys.executable} -m kbook cells | true"
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command],
        capture_output=True,
        text=True,
        env=os.environ | {"KBOOK_STORE": str(tmp_path)},
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_methods_are_listed_with_where_they_act_and_why_not_elsewhere(capsys):
    assert main(["methods"]) == 0
    out = capsys.readouterr().out
    assert "eco  ECO: embeddings; lanes P, C, R-text, R-struct\n    Liu et al. 2406.07933" in out
    assert "npo  NPO: weights; lanes P\n" in out and "not elsewhere: " in out
    assert main(["methods", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["name"] == "none"
