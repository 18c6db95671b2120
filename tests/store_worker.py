"""Processes that want a run, to be killed: `python store_worker.py once|every rows|files ROOT LOG`.

`once` works on one run and appends a line to LOG for each piece of work, so that a test can count what was
done how often. `every` works on many runs, each in a child that is killed at one system call that changes the
disk: the first run at the first such call, the second at the second, until none is left. Each run is then
continued and compared with an undisturbed one.
"""

import hashlib
import json
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

from kbook.keys import CellKey, ModelKey
from kbook.store import Spec, Store, write_atomic

N_BATCHES, N_ROWS, N_STEPS = 8, 5, 8
CELL = CellKey("kbench", "llama-tiny", "P", "none", "forget", 0)
MODEL = ModelKey("kbench", "llama-tiny", "inject-full", 0)
SPEC = Spec(parameters={"n": N_BATCHES}, sources=("kbook.keys",))


class Work:
    """Two kinds of work, each with a pause (in seconds) so that a kill can fall in the middle."""

    def __init__(self, note: Callable[[str], object] = lambda text: None, pause: float = 0.01):
        self.note, self.pause = note, pause

    def answer(self, batch: int) -> list[dict[str, object]]:
        self.note(f"batch {batch}")
        time.sleep(self.pause)
        return [{"query_id": f"q{batch}-{i}", "answer": "réponse ✓ " * (batch + i)} for i in range(N_ROWS)]

    def build(self, folder: Path) -> dict[str, object]:
        """Stand in for a training: a state hashed at each step, a checkpoint every third, then two files."""
        state, step, path = "", 0, folder / "checkpoints" / "state.json"
        if path.exists():
            state, step = json.loads(path.read_bytes())
        while step < N_STEPS:
            self.note(f"step {step}")
            time.sleep(self.pause)
            state, step = hashlib.sha256(f"{state}{step}".encode()).hexdigest(), step + 1
            if step % 3 == 0:
                write_atomic(path, json.dumps([state, step]).encode())
        with open(folder / "model.safetensors", "wb") as file:  # not atomic: a kill leaves half of it
            for i in range(40):
                file.write(hashlib.sha256(f"{state}{i}".encode()).digest() * 999)
                file.flush()
                time.sleep(self.pause / 20)
        (folder / "config.json").write_text(json.dumps({"steps": step}))
        return {"final": state}

    def run(self, kind: str, root: Path):
        store = Store(root, profile="smoke")
        if kind == "rows":
            return store.rows(CELL, SPEC, range(N_BATCHES), self.answer, seed=0)
        return store.files(MODEL, SPEC, self.build, seed=0)


def contents(folder: Path) -> dict[str, str]:
    """Digest every file that a run consists of: neither the manifest, which holds times, nor the journal."""
    own = {"manifest.json", "rows.journal", "tries.json", ".lock"}
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path.name not in own)
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def once(kind: str, root: Path, log: Path) -> None:
    def note(text: str) -> None:
        with open(log, "a") as file:
            file.write(text + "\n")

    print(contents(Work(note).run(kind, root).path))


def every(kind: str, root: Path, log: Path) -> None:
    expected = contents(Work(pause=0).run(kind, root / "undisturbed").path)
    n = 0
    while _killed_at_call(n, kind, root / str(n)):
        found = contents(Work(pause=0).run(kind, root / str(n)).path)
        assert found == expected, f"killed at call {n}: {found} != {expected}"
        n += 1
    print(n)


def _killed_at_call(n: int, kind: str, root: Path) -> bool:
    """Work on a run in a child that is killed at its n-th change of the disk; False if it has not so many."""
    child = os.fork()
    if child == 0:
        _die_at_call(n)
        Work(pause=0).run(kind, root)
        os._exit(0)
    return os.WIFSIGNALED(os.waitpid(child, 0)[1])


def _die_at_call(n: int) -> None:
    calls = iter(range(10**6))
    original = {name: getattr(os, name) for name in ("fsync", "replace", "write", "mkdir", "unlink")}

    def dying(name: str) -> Callable[..., object]:
        def call(*arguments: object, **options: object) -> object:
            if next(calls) == n:
                if name == "write":  # a torn write
                    descriptor, content = arguments
                    original["write"](descriptor, content[: len(content) // 2])
                os.kill(os.getpid(), signal.SIGKILL)
            return original[name](*arguments, **options)

        return call

    for name in original:
        setattr(os, name, dying(name))


if __name__ == "__main__":
    mode, kind, root, log = sys.argv[1:]
    {"once": once, "every": every}[mode](kind, Path(root), Path(log))
