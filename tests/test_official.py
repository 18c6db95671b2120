"""The reader of official corpus files: the same people, in the same pools, and errors that name the place."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kbook.agent.lanes import fill_stores, sample_queries
from kbook.corpora.official import read_official
from kbook.corpora.people import make_corpus
from kbook.errors import KBookError
from kbook.keys import FIELDS, LANES
from kbook.profiles import CorpusSizes, load_profile

SIZES = CorpusSizes(seed=0, n_forget=4, n_retain=6, n_fit_forget=2, n_fit_retain=2, n_holdout=5, n_distractors=5)
POOLS = {
    "forget_ids_adapter": range(0, 3),
    "forget_ids_eval": range(3, 6),
    "retain_ids_adapter": range(6, 9),
    "retain_ids_eval": range(9, 14),
}
SHARED = Path(os.environ.get("KBOOK_SHARED", Path(__file__).parents[2] / "shared")) / "kbench-data"
Rows = list[dict[str, Any]]


def record(i: int) -> dict[str, Any]:
    facts = {
        "id": f"pii-{i:05d}",
        "name": f"Person Number{i}",
        "date_of_birth": f"19{40 + i}-01-02",
        "address": f"{i + 1} Elm Road, Apt. {i}, Riverton, OH 4444{i}",
        "occupation": f"Keeper of lighthouse {i}",
        "employer": f"Light and Sons {i}",
    }
    return facts | {"bio": " ".join(map(str, facts.values())), "template_id": i % 8}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_facts(tmp_path, [record(i) for i in range(14)])
    for name, ids in POOLS.items():
        (tmp_path / f"{name}.txt").write_text("".join(f"pii-{i:05d}\n" for i in ids))
    return tmp_path


def write_facts(folder: Path, rows: Rows) -> None:
    (folder / "v1_facts.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def test_pools_follow_the_id_lists(folder: Path) -> None:
    corpus = read_official(folder, SIZES)
    ids = [[p.id for p in pool] for pool in (corpus.forget_fit, corpus.forget_eval, corpus.retain_fit)]
    assert ids == [["pii-00000", "pii-00001"], ["pii-00003", "pii-00004"], ["pii-00006", "pii-00007"]]
    assert len(corpus.retain_eval) == 4
    assert corpus.forget_fit[0].biography == record(0)["bio"]
    assert (len(corpus.holdout), len(corpus.distractors)) == (5, 5)


@pytest.mark.parametrize("lane", LANES)
def test_official_people_go_through_the_same_lanes(folder: Path, lane: str) -> None:
    corpus = read_official(folder, SIZES)
    settings = load_profile("smoke").lanes
    stores = fill_stores(lane, sample_queries(corpus, "forget", 6, 0), corpus, settings, 0)
    assert stores.lane == lane


def test_holdout_people_bear_no_official_name(folder: Path) -> None:
    taken = make_corpus(SIZES).holdout[1].name
    write_facts(folder, [record(i) | ({"name": taken.upper()} if i == 3 else {}) for i in range(14)])
    corpus = read_official(folder, SIZES)
    assert len(corpus.holdout) == 5 and taken not in {p.name for p in corpus.holdout}


def empty_address(rows: Rows) -> None:
    rows[2]["address"] = "  "


def no_employer(rows: Rows) -> None:
    del rows[4]["employer"]


def a_number(rows: Rows) -> None:
    rows[0]["occupation"] = 7


def id_twice(rows: Rows) -> None:
    rows[5]["id"] = "pii-00001"


def name_twice(rows: Rows) -> None:
    rows[4]["name"] = rows[0]["name"]


def no_facts(rows: Rows) -> None:
    rows[3]["id"] = "pii-77777"


@pytest.mark.parametrize(
    ("break_it", "message"),
    [
        (empty_address, r"v1_facts.jsonl, record 3: field 'address' of pii-00002 is empty"),
        (no_employer, r"v1_facts.jsonl, record 5: field 'employer' of pii-00004 is missing"),
        (a_number, r"v1_facts.jsonl, record 1: field 'occupation' of pii-00000 is empty or not text"),
        (id_twice, r"v1_facts.jsonl, record 6: id pii-00001 stands for two people"),
        (name_twice, r"the same name stands for several people: pii-00000, pii-00004"),
        (no_facts, r"v1_facts.jsonl: id pii-00003 of forget eval has no facts"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_broken_people_are_named(folder: Path, break_it: Callable[[Rows], None], message: str) -> None:
    rows = [record(i) for i in range(14)]
    break_it(rows)
    write_facts(folder, rows)
    with pytest.raises(KBookError, match=message):
        read_official(folder, SIZES)


def test_a_line_that_is_not_json_is_named(folder: Path) -> None:
    path = folder / "v1_facts.jsonl"
    path.write_text(path.read_text() + '{"id": "pii-0')
    with pytest.raises(KBookError, match=r"v1_facts.jsonl, line 15: not a line of JSON"):
        read_official(folder, SIZES)


def test_an_id_in_two_pools_is_named(folder: Path) -> None:
    (folder / "forget_ids_eval.txt").write_text("pii-00003\npii-00001\n")
    with pytest.raises(KBookError, match="id pii-00001 is listed twice: forget fit and forget eval"):
        read_official(folder, SIZES)


@pytest.mark.parametrize("name", ["v1_facts.jsonl", "forget_ids_adapter.txt", "retain_ids_eval.txt"])
def test_a_missing_file_is_named(folder: Path, name: str) -> None:
    (folder / name).unlink()
    with pytest.raises(KBookError, match=f"{name}: .* is missing"):
        read_official(folder, SIZES)


def test_a_binary_id_list_is_named(folder: Path) -> None:
    (folder / "retain_ids_eval.txt").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(KBookError, match="retain_ids_eval.txt: the id list is not text"):
        read_official(folder, SIZES)


def test_too_few_people_name_the_pool_and_both_numbers(folder: Path) -> None:
    with pytest.raises(KBookError, match="the retain eval pool has 5 ids, 38 are wanted"):
        read_official(folder, SIZES.model_copy(update={"n_retain": 40}))


@pytest.mark.skipif(not SHARED.is_dir(), reason="the official corpus is not here (set KBOOK_SHARED)")
def test_the_real_corpus_reads() -> None:
    sizes = load_profile("smoke").corpus
    corpus = read_official(SHARED, sizes)
    assert [p.id for p in corpus.forget] == [f"pii-{i:05d}" for i in (0, 1, 2, 3, *range(200, 208))]
    assert corpus.retain_eval[0].id == "pii-01200"
    assert all(p.value(f) in p.biography for p in corpus.members for f in ("name", *FIELDS))
