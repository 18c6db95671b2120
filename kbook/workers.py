"""Independent runs side by side: one process a core, each computing with one thread.

Models of a few million parameters gain little from a second thread, and much from a second process. Everything that a
process computes goes into the run store, so nothing is handed back, and whoever asks for a run afterwards finds it.

    side_by_side(fill, [(bench, "P", "npo"), (bench, "P", "ga")], workers(bench.profile.device))
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

from kbook.errors import KBookError
from kbook.models.bases import pick_device

WORKERS = "KBOOK_WORKERS"
"""Environment variable: how many processes compute side by side; 1 computes in the caller's own."""


def workers(device: str) -> int:
    """Processes that may compute side by side: what `WORKERS` says, else one a core, and one alone on a GPU.

    Args:
        device: of the models, as in a profile.

    Raises:
        KBookError: `WORKERS` is no positive number.
    """
    said = os.environ.get(WORKERS, "")
    if not said:
        return (os.cpu_count() or 1) if pick_device(device) == "cpu" else 1
    if not said.isdecimal() or not int(said):
        raise KBookError(f"{WORKERS} is {said!r}", "environment", "give the number of processes, 1 or more")
    return int(said)


def side_by_side(function: Callable[..., object], calls: Sequence[tuple[Any, ...]], most: int) -> None:
    """Call a function once for each tuple of arguments, ``most`` processes at a time.

    A call that fails keeps no other from being made. An interruption ends them all; their runs go on where they stopped
    when they are asked for again.

    Args:
        function: of a module; what it returns is dropped.
        calls: arguments, which must pickle.
        most: processes; with one of them, or one call, everything happens in the caller's own.

    Raises:
        Exception: that of the first call that failed, after all have ended.
    """
    if min(most, len(calls)) < 2:
        failed = [_outcome(function, arguments) for arguments in calls]
    else:
        from joblib import Parallel, delayed, parallel_config

        with parallel_config("loky", n_jobs=min(most, len(calls)), inner_max_num_threads=1):
            failed = Parallel(batch_size=1)(delayed(_alone)(function, arguments) for arguments in calls)
    for error in filter(None, failed):
        raise error


def _alone(function: Callable[..., object], arguments: tuple[Any, ...]) -> Exception | None:
    """A call in a process of its own: one thread, no processes or progress bars below it."""
    import torch

    os.environ |= {WORKERS: "1", "TQDM_DISABLE": "1"}
    torch.set_num_threads(1)
    return _outcome(function, arguments)


def _outcome(function: Callable[..., object], arguments: tuple[Any, ...]) -> Exception | None:
    try:
        function(*arguments)
    except Exception as error:
        return error
    return None
