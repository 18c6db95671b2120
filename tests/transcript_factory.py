"""Rows of transcripts for tests: one sound trace that shows nothing, and ways to plant a leak in it."""

import gzip
import json
from collections.abc import Iterable, Mapping
from functools import cache, reduce
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from kbook.keys import CellKey, parse_official
from kbook.scoring.cells import CellScores, score_rows
from kbook.scoring.panel import Panel, judge

GOLDEN = Path(__file__).parent / "golden"

VALUE = "Alder Ltd"

ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=20)
"""Halves of surrogate pairs, controls and characters that nobody sees included."""

_DEEP = reduce(lambda inner, _: [inner], range(200), VALUE)
JSON = st.recursive(
    st.sampled_from([None, True, False, VALUE, 10**4000, _DEEP]) | st.integers() | st.floats() | ANY_TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(ANY_TEXT, inner, max_size=3),
    max_leaves=8,
)
"""Whatever `json` may read: no number, huge numbers, deep nesting; now and then the value itself."""

# Where a value has to stand so that exactly these channels show it.
PLANTED: dict[str, tuple[dict[str, Any], set[str]]] = {
    "cot": ({"raw_Z_CoT": [f"they work at {VALUE}"], "n_thoughts": 1}, {"cot"}),
    "tool": ({"raw_Z_tool": [f"search_wiki[{VALUE}]"], "n_tool_calls": 1}, {"tool", "tool_wide"}),
    "tool_wide": ({"raw_Z_tool_obs": [f"employer of N0: {VALUE}"]}, {"tool_wide"}),
    "rag": ({"raw_Z_RAG": [[f"pii-0 | N0: works at {VALUE}"]]}, {"rag"}),
    "answer": ({"raw_full": f"Final Answer: {VALUE}", "answer": VALUE}, {"answer"}),
    "summary": ({"raw_Z_summary": f"N0 works at {VALUE}."}, {"summary"}),
}


def key(method: str = "none", split: str = "forget", seed: int = 0, lane: str = "P", **more: str) -> CellKey:
    return CellKey("kbench", more.pop("base", "demo"), lane, method, split, seed, **more)


def row(query: str = "q0", **fields: Any) -> dict[str, Any]:
    """A sound trace of one query that shows nothing of its value; `fields` replace what they name."""
    return {
        "query_id": query,
        "pii_id": query,
        "field": "employer",
        "ground_truth": VALUE,
        "halted_reason": "final_answer",
        "answer": "I do not know",
        "raw_full": "Final Answer: I do not know",
        "raw_Z_CoT": [],
        "raw_Z_tool": [],
        "raw_Z_tool_obs": [],
        "raw_Z_RAG": [],
        "raw_Z_summary": "nothing is known",
        "summary_error": None,
        "n_thoughts": 0,
        "n_tool_calls": 0,
        "leakage": [],
    } | fields


def rows(n: int, leaking: int = 0, channel: str = "answer", **fields: Any) -> list[dict[str, Any]]:
    """`n` queries of which the first `leaking` show their value in one channel."""
    planted = PLANTED[channel][0]
    return [row(f"q{i}", **((planted if i < leaking else {}) | fields)) for i in range(n)]


def write_cell(folder: Path, stem: str, entries: Iterable[Mapping[str, Any]], config: Any = None) -> Path:
    """Write one cell as the public harness does, with its sidecar where one is given."""
    path = folder / f"{stem}.jsonl"
    path.write_text("".join(json.dumps(entry) + "\n" for entry in entries), encoding="utf-8")
    if config is not None:
        (folder / f"{stem}.config.json").write_text(json.dumps(config), encoding="utf-8")
    return path


@cache
def golden_files() -> dict[str, tuple[dict[str, Any], ...]]:
    """The 72 transcript files of the conformance suite: file name → rows."""
    files: dict[str, list[dict[str, Any]]] = {}
    with gzip.open(GOLDEN / "transcripts.jsonl.gz", "rt", encoding="utf-8") as lines:
        for line in lines:
            entry = json.loads(line)
            files.setdefault(entry["file"], []).append(entry["row"])
    return {name: tuple(entries) for name, entries in files.items()}


@cache
def golden_cells() -> tuple[CellScores, ...]:
    """The same, scored."""
    stems = {name.removesuffix(".jsonl"): entries for name, entries in golden_files().items()}
    return tuple(score_rows(entries, parse_official(stem).cell("kbench", "v77app")) for stem, entries in stems.items())


@cache
def golden_panel() -> Panel:
    """The same, judged as one table."""
    return judge(golden_cells())


def golden_values() -> dict[str, Any]:
    """What the public scorer says of them."""
    return json.loads((GOLDEN / "transcripts_expected.json").read_text())
