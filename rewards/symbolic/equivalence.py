"""Uses math-verify to compare mathematical expressions, in child processes that can be killed.

math-verify can take hours or all memory for one expression. Its built-in time limit is an alarm, which works only
in the main thread and cancels the caller's alarm. So math-verify runs with its alarms off, in a script
(`equivalence_worker`) that shares no memory, threads or alarm with the caller.
"""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

Outcome = Literal["equal", "different", "timeout", "out_of_memory", "crashed"]
ENVIRONMENT = ("PATH", "HOME", "PYTHONPATH", "LD_LIBRARY_PATH")  # all that is passed on: no keys, no LD_PRELOAD
SCRIPT = Path(__file__).with_name("equivalence_worker.py")
START_SECONDS = 120.0


class MathWorkersError(Exception):
    """The worker processes could not be started, or died. This is the grader's fault, not that of an answer."""


def compare(
    pairs: Sequence[tuple[str, str]], workers: int | None = None, seconds: float = 10.0, memory_mb: int = 2048
) -> list[Outcome]:
    """Return an outcome for each (prediction, truth) pair, in the same order. Identical pairs are compared once.

    `workers`: how many pairs to compare at a time (None: one per processor). `seconds`: the wall-clock limit per pair.
    `memory_mb`: the address space per worker. A pair that times out, runs out of memory or crashes its worker is
    retried once, alone. Raises MathWorkersError if the processes cannot be started or die.
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
