"""Benchmarks of the user's own judge in a child process: one that comes to no end is ended, and costs no night."""

import pickle
from collections.abc import Sequence

from rewards.benchmarks import is_own
from rewards.verifier import Attempt, Benchmark, Score
from tasks.verdicts import FAILED
from tasks.workers import WorkerDiedError, call_once

LIMIT = 3600.0  # seconds for the answers of a round, or of an exam


def scores_of(benchmark: Benchmark, attempts: Sequence[Attempt]) -> list[Score]:
    """What the benchmark says of the attempts; null of each where a grader of the user's own died, or was not through.

    The program's own benchmarks have limits of their own. One of the user's that cannot be pickled judges in this
    process, and has none.
    """
    if not is_own(benchmark) or not _can_travel(benchmark):
        return benchmark.score(attempts)
    try:
        return call_once("grader", LIMIT, benchmark.score, attempts)
    except WorkerDiedError as error:
        return [Score(None, FAILED, str(error))] * len(attempts)


def _can_travel(benchmark: Benchmark) -> bool:
    try:
        pickle.loads(pickle.dumps(benchmark))
    except Exception:  # whatever a class of the user's own holds
        return False
    return True
