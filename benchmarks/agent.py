"""Agent throughput: the batched state machine against a loop that calls `generate` for one query at a time.

    python benchmarks/agent.py [--profile laptop] [--n 100] [--lanes P C R-text R-struct]

Same model, same queries, same tools, same machine, one after the other in one run; what counts is the ratio. The loop
encodes its whole conversation anew at every turn, as harnesses do that keep no cache between turns.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import torch

from kbook.agent.react import Cell, State, batches_of, observe, run_batch, step
from kbook.corpora import protocol
from kbook.corpora.people import Query
from kbook.corpora.protocol import OBSERVATION_CUT
from kbook.corpora.wordings import SUMMARY_PROMPTS
from kbook.kbench import KBench

RESULT = Path(__file__).with_name("agent.json")


def generate(cell: Cell, text: str, limit: int) -> str:
    """One greedy continuation with `transformers`' own `generate`, cut before an observation."""
    tokenizer, model = cell.base.tokenizer, cell.base.model
    ids = tokenizer(text, add_special_tokens=False, return_tensors="pt").input_ids.to(model.device)
    out = model.generate(
        input_ids=ids,
        attention_mask=torch.ones_like(ids),
        max_new_tokens=limit,
        do_sample=False,
        stop_strings=[OBSERVATION_CUT],
        tokenizer=tokenizer,
        pad_token_id=tokenizer.pad_token_id,
    )
    return tokenizer.decode(out[0, ids.shape[1] :], skip_special_tokens=True).split(OBSERVATION_CUT)[0]


def one_at_a_time(cell: Cell, queries: list[Query]) -> list[str]:
    """The plain loop: turn after turn, query after query, then the summary."""
    answers = []
    for query in queries:
        state = State(query, cell.base.render(cell.system(query), protocol.question(query.text)))
        while state.halted is None:
            reply = generate(cell, state.prompt + state.text, cell.settings.max_new_tokens)
            (state,) = step([state], [reply], cell.guard.look)
            if state.pending:
                (state,) = observe([state], [cell.toolbox(state.pending)], cell.settings.max_turns)
        asked = SUMMARY_PROMPTS[0].format(name=query.person.name)
        generate(cell, cell.base.render(cell.system(query), asked), cell.settings.summary_tokens)
        answers.append(state.answer or "")
    return answers


def compare(bench: KBench, lane: str, n: int) -> dict[str, Any]:
    """Rows per second of both, and how many answers agree."""
    queries = bench.queries("forget", 0)[:n]
    with bench.prepared("none", lane, "forget", 0) as cell:
        run_batch(cell, queries[:4])
        start = time.perf_counter()
        rows = [t for b in batches_of(cell, queries, bench.profile.cells.token_budget) for t in run_batch(cell, b)]
        batched = time.perf_counter() - start
        few = queries[: max(8, n // 5)]
        start = time.perf_counter()
        answers = one_at_a_time(cell, few)
        single = (time.perf_counter() - start) / len(few) * n
    by_id = {t.state.query.id: t.state.answer or "" for t in rows}
    same = sum(by_id[q.id] == a for q, a in zip(few, answers, strict=True)) / len(few)
    return {"lane": lane, "n": n, **_rates(n, batched, single), "answers equal": same}


def _rates(n: int, batched: float, single: float) -> dict[str, float]:
    both = {"batched": batched, "one at a time": single}
    return {f"{how} rows/s": round(n / seconds, 2) for how, seconds in both.items()} | {
        "ratio": round(single / batched, 1)
    }


def together(found: list[dict[str, Any]]) -> dict[str, float]:
    """All lanes, as many rows from each."""
    seconds = {how: sum(f["n"] / f[f"{how} rows/s"] for f in found) for how in ("batched", "one at a time")}
    return _rates(sum(f["n"] for f in found), *seconds.values())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--profile", default="laptop")
    parser.add_argument("--n", type=int, default=100)
    parser.add_argument("--lanes", nargs="+", default=["P", "C", "R-text", "R-struct"])
    options = parser.parse_args()
    bench = KBench(options.profile)
    found = [compare(bench, lane, options.n) for lane in options.lanes]
    result = {
        "threads": torch.get_num_threads(),
        "torch": torch.__version__,
        "lanes": found,
        "together": together(found),
    }
    RESULT.write_text(json.dumps(result, indent=1) + "\n")
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
