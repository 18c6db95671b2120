"""Weight probes of a bench: whose model is asked in which lane, that it is asked once, and what is refused."""

from pathlib import Path
from typing import Any

import pytest

from kbook.corpora.people import Corpus, make_corpus
from kbook.errors import KBookError
from kbook.kbench import KBench
from kbook.keys import FIELDS, SPLITS
from kbook.methods.ascent import GA
from kbook.methods.contract import FitContext
from kbook.probing import clean_probes, weight_probes
from kbook.profiles import load_profile
from kbook.store import Store, StoreWarning

PROFILE = load_profile("smoke").with_(
    cells={"n": 3, "seeds": [0, 1]},
    agent={"max_turns": 2, "max_new_tokens": 4, "summary_tokens": 3},
)


@pytest.fixture
def loads(stand_ins: Any, monkeypatch: pytest.MonkeyPatch) -> list[Path | None]:
    """The folders that models were loaded from, None for the plain base."""

    def edit(self: GA, context: FitContext) -> dict[str, Any]:
        (context.work / "people.txt").write_text("edited")
        return {}

    monkeypatch.setattr(GA, "edit", edit)
    found: list[Path | None] = stand_ins.loads
    return found


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    return make_corpus(PROFILE.corpus)


@pytest.fixture
def bench(loads: list[Path | None], corpus: Corpus, tmp_path: Path) -> KBench:
    return KBench(PROFILE, corpus=corpus, store=Store(tmp_path, PROFILE.name))


def injected_people(folder: Path | None) -> set[str]:
    assert folder is not None
    return set((folder / "people.txt").read_text().split())


def test_the_probes_ask_what_the_agent_is_asked_and_tell_of_everybody(bench: KBench) -> None:
    rows = weight_probes(bench, lane="C").rows()
    asked = {split: {q.id for seed in (0, 1) for q in bench.queries(split, seed)} for split in SPLITS}
    questions = [row for row in rows if row["kind"] == "question"]
    for split in SPLITS:
        assert sorted(r["query_id"] for r in questions if r["group"] == split) == sorted(asked[split])
    assert {row["field"] for row in questions} <= set(FIELDS)
    groups = [row["group"] for row in rows if row["kind"] == "text"]
    assert {group: groups.count(group) for group in groups} == {"forget": 3, "retain": 3, "holdout": 3}


def test_outside_lane_p_the_plain_base_is_asked_and_once_for_all(bench: KBench, loads: list[Path | None]) -> None:
    runs = [weight_probes(bench, lane=lane) for lane in ("C", "R-text", "R-struct")]
    assert len({run.path for run in runs}) == 1 and loads == [None]
    assert str(runs[0].key) == "kbench/llama-tiny/model=probes-base/seed=0"
    assert clean_probes(bench, "R-text").path == clean_probes(bench, "P", "base").path == runs[0].path
    assert bench.store.find("kbench/llama-tiny/model=inject") == []


def test_in_lane_p_the_injected_or_edited_model_is_asked(bench: KBench, loads: list[Path | None]) -> None:
    plain, edited = weight_probes(bench), weight_probes(bench, "ga")
    assert str(plain.key) == "kbench/llama-tiny/model=probes-none/seed=0/variant=inject-full"
    assert str(edited.key) == "kbench/llama-tiny/model=probes-ga/seed=0/variant=inject-full"
    assert loads[1] == bench.injected().path and loads[-1] == bench.edited("ga").path
    assert injected_people(loads[1]) == {p.id for p in bench.corpus.members}
    lora = weight_probes(bench, recipe="lora")
    assert str(lora.key).endswith("variant=inject-lora") and lora.digest != plain.digest


def test_the_clean_model_was_taught_all_but_the_forget_people(bench: KBench, loads: list[Path | None]) -> None:
    clean = clean_probes(bench)
    assert str(clean.key).endswith("model=probes-none/seed=0/variant=inject-full-without-forget")
    assert injected_people(loads[-1]) == {p.id for p in bench.corpus.retain}
    asked = [(row["kind"], row["group"], row["pii_id"]) for row in clean.rows()]
    assert asked == [(row["kind"], row["group"], row["pii_id"]) for row in weight_probes(bench).rows()]


def test_a_second_call_loads_nothing_and_needs_no_model(bench: KBench, loads: list[Path | None]) -> None:
    first = weight_probes(bench)
    n = len(loads)
    for path in (run.path for run in bench.store.find("kbench/llama-tiny/model=inject")):
        (path / "people.txt").unlink()
    again = KBench(PROFILE, corpus=bench.corpus, store=bench.store)
    assert weight_probes(again).rows() == first.rows() and len(loads) == n
    with pytest.warns(StoreWarning, match="people.txt: missing"):  # the control: another model is built and loaded
        weight_probes(again, "ga")
    assert len(loads) > n


def test_what_decides_the_probes_is_in_their_digest(bench: KBench) -> None:
    def digest(**changes: Any) -> str:
        corpus = None if "corpus" in changes else bench.corpus
        return weight_probes(KBench(PROFILE.with_(**changes), corpus=corpus, store=bench.store), lane="C").digest

    plain = digest()
    assert digest(stats={"bootstrap": 7}, lanes={"context_bios": 3}) == plain  # no agent takes part
    for changes in ({"corpus": {"seed": 9}}, {"agent": {"summary_tokens": 4}}, {"cells": {"n": 2}}):
        assert digest(**changes) != plain


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"lane": "R-txt"}, "unknown lane 'R-txt'.*Did you mean R-text"),
        ({"method": "nonne"}, "unknown method 'nonne'.*Did you mean none"),
        ({"method": "npo", "lane": "C"}, "npo cannot reach lane C: .*choose another lane"),
        ({"method": "eco"}, "eco acts while the agent runs and leaves the weights alone.*ask for none"),
        ({"recipe": "ful"}, "unknown injection recipe 'ful'.*Did you mean full"),
    ],
    ids=["lane", "method", "not applicable", "no edit of weights", "recipe"],
)
def test_what_cannot_be_asked_is_named(
    bench: KBench, loads: list[Path | None], options: dict[str, str], message: str
) -> None:
    with pytest.raises(KBookError, match=message):
        weight_probes(bench, **options)
    assert loads == [] and bench.store.find() == []


def test_an_unknown_reference_is_named(bench: KBench) -> None:
    with pytest.raises(KBookError, match="unknown reference 'bare'.*Did you mean base"):
        clean_probes(bench, reference="bare")
