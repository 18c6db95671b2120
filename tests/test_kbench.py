"""The wiring of protocol A: paired cells, nothing computed twice, and refusals that name what was wrong."""

import json
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kbook.corpora.people import Corpus, Person, Query, make_corpus
from kbook.errors import KBookError
from kbook.kbench import KBench
from kbook.keys import LANES, CellKey
from kbook.methods.contract import Guard, NoIntervention
from kbook.profiles import load_profile
from kbook.store import Store

PROFILE = load_profile("smoke").with_(
    cells={"n": 3, "seeds": [0, 1]},
    agent={"max_turns": 2, "max_new_tokens": 4, "summary_tokens": 3},
)


@pytest.fixture
def loads(stand_ins: Any) -> list[Path | None]:
    """The folders that models were loaded from, None for the plain base."""
    found: list[Path | None] = stand_ins.loads
    return found


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    return make_corpus(PROFILE.corpus)


@pytest.fixture
def bench(loads: list[Path | None], corpus: Corpus, tmp_path: Path) -> KBench:
    return KBench(PROFILE, corpus=corpus, store=Store(tmp_path, PROFILE.name))


# ---- cells -------------------------------------------------------------------------------------------------


def test_a_finished_cell_is_found_though_its_model_is_gone(bench: KBench, loads: list[Path | None]) -> None:
    first = bench.cell("P", "none", "forget", 0)
    shutil.rmtree(bench.injected().path)
    loads.clear()
    assert bench.cell("P", "none", "forget", 0).path == first.path
    assert loads == []
    bench.cell("P", "none", "retain", 0)
    assert loads != []


@pytest.mark.parametrize("lane", LANES)
def test_a_cell_is_a_run_of_official_rows_with_leakage(bench: KBench, lane: str) -> None:
    run = bench.cell(lane, "none", "forget", 0)
    assert str(run.key) == f"kbench/llama-tiny/{lane}/none/forget/seed=0"
    rows = run.rows()
    assert sorted(r["query_id"] for r in rows) == sorted(q.id for q in bench.queries("forget", 0))
    assert {"raw_full", "raw_Z_summary", "leakage"} <= set(rows[0])
    assert {entry["channel"] for entry in rows[0]["leakage"]} <= {
        "Z_CoT", "Z_tool", "Z_tool_wide", "Z_RAG", "Z_answer", "Z_summary",
    }  # fmt: skip


def test_the_prompt_that_is_kept_is_the_one_that_was_used(bench: KBench) -> None:
    prompt = bench.cell("C", "none", "forget", 0).manifest.extra["first prompt"]
    assert "<|user|>Question: " in prompt and "Records:" in prompt


def test_a_second_call_reads_the_store_and_loads_nothing(bench: KBench, loads: list[Path | None]) -> None:
    first = bench.cell("R-text", "none", "forget", 0)
    assert loads == [None]
    again = KBench(PROFILE, corpus=bench.corpus, store=bench.store)
    assert again.cell("R-text", "none", "forget", 0).rows() == first.rows()
    assert loads == [None]
    again.cell("R-text", "none", "forget", 1)  # the control: another cell does load
    assert loads == [None, None]


def test_only_lane_p_uses_the_injected_model(bench: KBench, loads: list[Path | None]) -> None:
    bench.cell("C", "none", "forget", 0)
    assert loads == [None]
    injected = bench.injected()
    assert str(injected.key) == "kbench/llama-tiny/model=inject-full/seed=0"
    assert injected.file("people.txt").read_text().split() == [person.id for person in bench.corpus.members]
    bench.cell("P", "none", "forget", 0)
    assert loads[-1] == injected.path


def test_cells_are_paired_across_lanes_and_methods(bench: KBench) -> None:
    asked = {tuple(sorted(r["query_id"] for r in bench.cell(lane, "none", "retain", 1).rows())) for lane in LANES}
    assert len(asked) == 1
    assert asked != {tuple(sorted(r["query_id"] for r in bench.cell("C", "none", "retain", 0).rows()))}


@pytest.mark.parametrize(
    "options",
    [{"wording": 1, "variant": "paraphrase"}, {"recipe": "lora", "variant": "lora"}],
    ids=lambda o: o["variant"],
)
def test_another_wording_or_recipe_is_another_run(bench: KBench, options: dict[str, Any]) -> None:
    plain, other = bench.cell("P", "none", "forget", 0), bench.cell("P", "none", "forget", 0, **options)
    assert plain.digest != other.digest
    assert str(other.key).endswith(f"/variant={options['variant']}")


def test_what_decides_a_cell_is_in_its_digest(bench: KBench, loads: list[Path | None]) -> None:
    def digest(**changes: Any) -> str:
        corpus = None if "corpus" in changes else bench.corpus
        other = KBench(PROFILE.with_(**changes), corpus=corpus, store=bench.store)
        return other.cell("C", "none", "forget", 0).digest

    plain = digest()
    assert digest(stats={"bootstrap": 7}) == plain  # scoring decides no transcript
    for changes in ({"agent": {"max_turns": 1}}, {"lanes": {"context_bios": 3}}, {"corpus": {"seed": 9}}):
        assert digest(**changes) != plain
    other = KBench(PROFILE, base="another-base", corpus=bench.corpus, store=bench.store)
    assert other.cell("C", "none", "forget", 0).digest != plain


def test_other_people_may_be_brought(bench: KBench, loads: list[Path | None]) -> None:
    corpus = make_corpus(PROFILE.corpus.model_copy(update={"seed": 77}))
    brought = KBench(PROFILE, corpus=corpus, store=bench.store)
    assert {q.person for q in brought.queries("forget", 0)} <= set(corpus.forget_eval)
    assert brought.cell("C", "none", "forget", 0).digest != bench.cell("C", "none", "forget", 0).digest


def test_people_of_whom_less_is_known_are_asked_less_and_not_injected(bench: KBench, loads: list[Path | None]) -> None:
    def known(people: Sequence[Person]) -> tuple[Person, ...]:
        return tuple(replace(p, occupation="", employer="") for p in people)

    parts = {name: known(getattr(bench.corpus, name)) for name in ("forget_fit", "forget_eval", "retain_fit")}
    parts["retain_eval"] = known(bench.corpus.retain_eval)
    corpus = replace(bench.corpus, **parts, fields=("date_of_birth",))
    brought = KBench(PROFILE, corpus=corpus, store=bench.store)
    run = brought.cell("R-struct", "none", "forget", 0)
    assert {row["field"] for row in run.rows()} == {"date_of_birth"}
    more = KBench(PROFILE, corpus=replace(corpus, fields=("date_of_birth", "address")), store=bench.store)
    assert more.cell("R-struct", "none", "forget", 0).digest != run.digest
    with pytest.raises(KBookError, match="people without address, occupation, employer cannot be injected"):
        brought.cell("P", "none", "forget", 0)


# ---- refusals ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cell", "message"),
    [
        (("R-txt", "none", "forget", 0), "unknown lane 'R-txt'.*Did you mean R-text"),
        (("C", "nonne", "forget", 0), "unknown method 'nonne'.*Did you mean none"),
        (("C", "none", "forgot", 0), "unknown split 'forgot'.*Did you mean forget"),
        (("C", "npo", "forget", 0), "npo cannot reach lane C: .*choose another lane or method"),
    ],
    ids=["lane", "method", "split", "not applicable"],
)
def test_unknown_and_unreachable_cells_are_named(
    bench: KBench, loads: list[Path | None], cell: tuple[str, str, str, int], message: str
) -> None:
    with pytest.raises(KBookError, match=message):
        bench.cell(*cell)
    assert loads == [] and bench.store.find() == []


def test_one_edit_serves_every_router_and_another_seed_is_another_edit(bench: KBench) -> None:
    def digest(method: str, edit_seed: int = 0, **changes: Any) -> str:
        other = KBench(PROFILE, corpus=bench.corpus, store=bench.store, edit_seed=edit_seed)
        return other.model_spec(method, **changes).digest

    assert digest("o3") == digest("o3", oracle_accuracy=0.5) == digest("o3", routing="detector", nu=0.3)
    assert digest("o3") != digest("o3", rho=0.5)
    assert digest("npo") != digest("npo", 1)
    assert digest("none") == digest("none", 1)  # what is injected is the same


def test_an_unknown_recipe_and_setting_are_named(bench: KBench) -> None:
    with pytest.raises(KBookError, match="unknown injection recipe 'ful'.*Did you mean full"):
        bench.injected("ful")
    with pytest.raises(KBookError, match="setting 'strength' of method none"):
        bench.cell("C", "none", "forget", 0, strength=3)


def test_an_unknown_profile_is_named() -> None:
    with pytest.raises(KBookError, match="unknown profile 'lapttop'.*Did you mean laptop"):
        KBench("lapttop")


# ---- grids -------------------------------------------------------------------------------------------------


def test_a_grid_runs_what_applies_and_lists_the_rest_with_its_reason(bench: KBench) -> None:
    grid = bench.grid(methods=["none", "npo"], lanes=["C", "R-struct"], splits=["forget"])
    assert [(str(r.key.lane), r.key.seed) for r in grid.runs if isinstance(r.key, CellKey)] == [
        ("C", 0), ("C", 1), ("R-struct", 0), ("R-struct", 1),
    ]  # fmt: skip
    assert [(n.lane, n.method) for n in grid.not_applicable] == [("C", "npo"), ("R-struct", "npo")]
    assert all(n.reason for n in grid.not_applicable)


def test_grids_add_up_and_are_judged_as_one_table(bench: KBench) -> None:
    baseline = bench.grid(methods=["none"], lanes=["C"])
    both = baseline + bench.grid(methods=["npo"], lanes=["C"])
    assert len(both.runs) == 4 and len(both.not_applicable) == 1
    assert bench.judge(both) is not None


def test_a_sweep_changes_one_setting_and_nothing_else(bench: KBench) -> None:
    grid = bench.sweep("noise", "sigma", {"weak": 0.5, "strong": 2.0}, lanes=["C"], splits=["forget"])
    parameters = [run.manifest.parts["parameters"] for run in grid.runs]
    assert [(run.key.variant, run.key.seed) for run in grid.runs if isinstance(run.key, CellKey)] == [
        ("weak", 0), ("weak", 1), ("strong", 0), ("strong", 1),
    ]  # fmt: skip
    assert [p.pop("settings") for p in parameters] == [{"sigma": 0.5}] * 2 + [{"sigma": 2.0}] * 2
    assert all(p == parameters[0] for p in parameters)


def test_the_cells_of_one_seed_can_be_judged_alone(bench: KBench) -> None:
    grid = bench.grid(methods=["none", "npo"], lanes=["C"])
    alone = grid.of_seed(1)
    assert {run.key.seed for run in alone.runs} == {1} and len(alone.runs) == 2
    assert alone.not_applicable == grid.not_applicable


def test_a_method_may_be_brought_from_a_file(bench: KBench, tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(
        "from kbook.methods.contract import Guard, Intervention, Verdict\n"
        "class Mute(Intervention):\n"
        "    name, title, family, source = 'mute', 'Mute', 'text', 'here'\n"
        "    def guard(self, context):\n"
        "        return Guard(inspect=lambda kind, text: Verdict('refuse', 'No.'))\n"
    )
    run = bench.cell("C", f"{file}::Mute", "forget", 0)
    assert str(run.key) == "kbench/llama-tiny/C/mute/forget/seed=0"
    assert all(row["raw_Z_summary"] == "No." for row in run.rows())
    file.write_text(file.read_text() + "# changed\n")
    assert bench.cell("C", f"{file}::Mute", "forget", 0).digest != run.digest


def test_a_brought_method_goes_by_its_own_name_where_it_does_not_apply(bench: KBench, tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(
        "from kbook.methods.contract import Intervention\n"
        "class Mute(Intervention):\n"
        "    name, title, family, source = 'mute', 'Mute', 'text', 'here'\n"
        "    lanes, reason = ('P',), 'it cannot'\n"
    )
    grid = bench.grid(methods=[f"{file}::Mute"], lanes=["C"])
    assert [(n.method, n.reason) for n in grid.not_applicable] == [("mute", "it cannot")]


def test_a_method_is_fitted_on_the_fitting_pools_and_told_the_list(bench: KBench, monkeypatch: Any) -> None:
    contexts = []

    def guard(self: NoIntervention, context: Any) -> Guard:
        contexts.append(context)
        return Guard()

    monkeypatch.setattr(NoIntervention, "guard", guard)
    bench.cell("C", "none", "retain", 1)
    (context,) = contexts
    assert (context.fit_forget, context.fit_retain) == (bench.corpus.forget_fit, bench.corpus.retain_fit)
    assert context.forget_list == bench.corpus.forget and context.seed == 1
    assert not context.work.exists()  # what a fit leaves behind is cleared away


# ---- one query ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("lane", ["C", "R-text", "R-struct"])
def test_one_query_can_be_followed(bench: KBench, loads: list[Path | None], lane: str) -> None:
    person = replace(bench.corpus.forget_eval[0], id="pii-90000", name="Jordan Avery")
    run = bench.follow(Query(person, "address"), lane)
    assert str(run.key).endswith(f"/{lane}/none/forget/seed=0/variant=jordan-avery")
    assert [r["query_id"] for r in run.rows()] == ["pii-90000::address"]
    n = len(loads)
    assert (
        KBench(PROFILE, corpus=bench.corpus, store=bench.store).follow(Query(person, "address"), lane).digest
        == run.digest
    )
    assert len(loads) == n


def test_what_a_fit_found_is_in_the_manifest(bench: KBench) -> None:
    fit = bench.cell("C", "repe", "forget", 0).manifest.extra["fit"]
    assert fit[0]["no_op"] is False and len(fit[0]["layers"]) == 1
    assert bench.cell("C", "none", "forget", 0).manifest.extra["fit"] == []


def test_nobody_can_be_followed_through_the_weights(bench: KBench) -> None:
    with pytest.raises(KBookError, match="one person cannot be followed through lane P"):
        bench.follow(bench.queries("forget", 0)[0], "P")


def test_rows_are_json_and_the_same_when_computed_anew(bench: KBench, tmp_path: Path) -> None:
    one = bench.cell("R-struct", "none", "forget", 0).rows()
    two = KBench(PROFILE, store=Store(tmp_path / "anew")).cell("R-struct", "none", "forget", 0).rows()
    assert json.dumps(one) == json.dumps(two)
