"""A process that wants one run, to be killed at any moment: `python store_worker.py ROOT rows|files LOG`.

Appends a line to LOG for each piece of work, so that a test can count what was done how often.
"""

import hashlib
import json
import sys
import time
from pathlib import Path

from kbook.keys import CellKey, ModelKey
from kbook.store import Spec, Store, write_atomic

N_BATCHES, N_ROWS, N_STEPS = 12, 5, 12
PAUSE = 0.01
CELL = CellKey("kbench", "llama-tiny", "P", "none", "forget", 0)
MODEL = ModelKey("kbench", "llama-tiny", "inject-full", 0)
SPEC = Spec(parameters={"n": N_BATCHES}, sources=("kbook.keys",))


def answer(batch: int) -> list[dict[str, object]]:
    time.sleep(PAUSE)
    return [{"query_id": f"q{batch}-{i}", "answer": "réponse ✓ " * (batch + i)} for i in range(N_ROWS)]


def build(folder: Path, note=lambda text: None) -> dict[str, object]:
    """Stand in for a training: a state that each step hashes, a checkpoint every third step, then two files."""
    state, step, path = "", 0, folder / "checkpoints" / "state.json"
    if path.exists():
        state, step = json.loads(path.read_bytes())
    while step < N_STEPS:
        time.sleep(PAUSE)
        state, step = hashlib.sha256(f"{state}{step}".encode()).hexdigest(), step + 1
        note(f"step {step}")
        if step % 3 == 0:
            write_atomic(path, json.dumps([state, step]).encode())
    with open(folder / "model.safetensors", "wb") as file:  # slow and not atomic: a kill leaves half of it
        for i in range(40):
            file.write(hashlib.sha256(f"{state}{i}".encode()).digest() * 999)
            file.flush()
            time.sleep(PAUSE / 20)
    (folder / "config.json").write_text(json.dumps({"steps": step}))
    return {"final": state}


def main(root: str, kind: str, log: str) -> None:
    store = Store(root, profile="smoke")

    def note(text: str) -> None:
        with open(log, "a") as file:
            file.write(text + "\n")

    def noted(batch: int) -> list[dict[str, object]]:
        note(f"batch {batch}")
        return answer(batch)

    if kind == "rows":
        run = store.rows(CELL, SPEC, range(N_BATCHES), noted, seed=0)
        print(len(run.rows()))
    else:
        run = store.files(MODEL, SPEC, lambda folder: build(folder, note), seed=0)
        print(run.file("model.safetensors").stat().st_size)


if __name__ == "__main__":
    main(*sys.argv[1:])
