"""Equality of two mathematical expressions by math-verify, in child processes that can be killed.

An expression can take math-verify hours and all memory. Its own time limit is an alarm that works in main threads only
and removes the caller's alarm. So it runs with its alarms off, in a script (`equivalence_worker`) that shares nothing
with the caller: no memory, threads or alarm.
"""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

Outcome = Literal["equal", "different", "timeout", "out_of_memory", "crashed"]
ENVIRONMENT = ("PATH", "HOME", "PYTHONPATH", "LD_LIBRARY_PATH")  # passed on; no keys, no LD_PRELOAD
SCRIPT = Path(__file__).with_name("equivalence_worker.py")
START_SECONDS = 120.0


class MathWorkersError(Exception):
    """The processes could not be started or have died: a failure of the grader, never of an answer."""


def compare(
    pairs: Sequence[tuple[str, str]], workers: int | None = None, seconds: float = 10.0, memory_mb: int = 2048
) -> list[Outcome]:
    """Return an outcome for each (prediction, truth), in the same order; identical pairs are compared once.

    `workers`: how many pairs are compared at a time (None: one per processor). `seconds` limits the wall time of a
    pair, `memory_mb` the address space of a worker. A pair that took too long, too much memory or its worker's life
    gets a second try, alone. Raises MathWorkersError if the processes cannot be started or die.
    """
    distinct = list(dict.fromkeys(pairs))
    if not distinct:
        return []
    workers = workers or len(os.sched_getaffinity(0))
    job = {"pairs": distinct, "workers": workers, "seconds": seconds, "memory": memory_mb * 2**20}
    environment = {name: os.environ[name] for name in ENVIRONMENT if name in os.environ}
    fixed = {"PYTHONHASHSEED": "0", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    try:
        done = subprocess.run(
            [sys.executable, "-P", str(SCRIPT), str(os.getpid())],
            input=json.dumps(job).encode(),
            capture_output=True,
            env=environment | fixed,
            timeout=START_SECONDS + 2 * seconds * len(distinct),
        )
    except subprocess.TimeoutExpired as error:
        raise MathWorkersError("math-verify's process is stuck") from error
    if done.returncode:
        *_, last = done.stderr.decode(errors="replace").strip().split("\n")
        raise MathWorkersError(f"math-verify's process failed: {last or done.returncode}")
    outcomes = dict(zip(distinct, json.loads(done.stdout), strict=True))
    return [outcomes[pair] for pair in pairs]
