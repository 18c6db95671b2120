"""The generated pages tell what was computed, by whom and when, and what can be set."""

from types import SimpleNamespace

from kbook.report.parameters import Parameter
from kbook.report.status import ChapterRecord, parameters_page, status_page

MACHINE = {"cpu": "A CPU", "n_cpus": 2, "memory_gb": 7.6, "system": "Linux x86_64", "gpus": []}
COMMIT = {"id": "0123456789abc", "dirty": False}
CHAPTER = ChapterRecord(
    "topic", "smoke", {"n": 3}, 95.0, "2026-01-02T03:04:05+00:00", COMMIT, {"python": "3.11"}, MACHINE, 2, ("a", "b")
)


def run(seed, ended="2026-01-02T03:04:05+00:00", n_rows=8, seconds=30.0):
    key = f"kbench/llama-tiny/P/none/forget/seed={seed}"
    known = {
        "versions": {"python": "3.11"},
        "hardware": MACHINE,
        "commit": COMMIT,
        "profile": "smoke",
        "digest": f"{seed:064x}",
    }
    return SimpleNamespace(key=key, seed=seed, ended=ended, n_rows=n_rows, seconds=seconds, **known)


def test_chapters_and_runs_are_listed_with_time_and_commit():
    page = status_page([CHAPTER], [run(0), run(137)])
    assert "| topic | smoke | 2 min | 2026\\-01\\-02 03\\:04 | 0123456789 | 2 | 2 |" in page
    assert "| python 3\\.11 | A CPU\\, 2 CPUs\\, 8 GB\\, Linux x86\\_64 | 3 |" in page


def test_seeds_of_one_cell_share_a_line():
    page = status_page([], [run(137), run(0)])
    line = "| kbench\\/llama\\-tiny\\/P\\/none\\/forget | 0\\, 137 | smoke | 16 | 60 s |"
    assert line in page and "2 complete runs, 60 s of work" in page


def test_of_each_run_the_newest_counts():
    page = status_page([], [run(0, seconds=500.0), run(0, ended="2026-01-03T00:00:00+00:00")])
    assert "1 complete run, 30 s" in page and "2026\\-01\\-03 00\\:00" in page


def test_a_run_of_files_has_no_rows():
    assert "| files |" in status_page([], [run(0, n_rows=None)])


def test_nothing_computed_is_said():
    page = status_page([], [])
    assert "Nothing has been computed yet" in page and "The run store is empty" in page


def test_many_runs_stand_in_several_tables():
    runs = [run(0) for _ in range(150)]
    for n, each in enumerate(runs):
        each.key = f"kbench/base-{n}/P/none/forget/seed=0"
    assert status_page([], runs).count("| run | seeds |") == 2


def test_every_parameter_is_explained():
    n = Parameter("n", "int", 3, "rows of the run", 1, 9)
    page = parameters_page({"topic": [n, Parameter("name", "str", "", "a name")]})
    assert "| n | int | 3 | 1 to 9 | rows of the run |" in page
    assert "| name | str |  | any | a name |" in page


def test_runs_made_by_other_source_text_are_counted():
    runs = [run(0), run(137)]
    assert "1 of them were made by other source text" in status_page([], runs, {runs[0].digest})
    assert "other source text" not in status_page([], runs)
