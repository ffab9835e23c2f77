"""Grading: attempts at benchmarks' problems, by the benchmarks' own graders."""

import logging
from collections.abc import Sequence

from conf.schema import BenchmarkConfig, SandboxConfig
from conf.storage.home import NightError
from rewards.data import benchmarks
from rewards.verifier import Attempt, Benchmark, Score
from tasks.rollouts.verdicts import FAILED
from tasks.workers.cluster import Cluster
from tasks.workers.remote import RemoteWorker
from tasks.workers.worker import Worker, WorkerDiedError, call_once

LIMIT = 3600.0  # seconds for the answers of a round, or of an exam
PART = 64  # programs that one of several machines runs at a time; its sandbox takes seconds to start
log = logging.getLogger("nightschool")


def scores_of(benchmark: Benchmark, attempts: Sequence[Attempt], engine: Worker | None = None) -> list[Score]:
    """Score attempts of one benchmark; all scores are null where a user's grader dies or exceeds the time limit.

    Built-in benchmarks limit themselves. Where the engine is on several machines, they share what runs programs.
    """
    if benchmark.runs_programs and isinstance(engine, Cluster):
        return _shared_scores(benchmark, attempts, engine)
    if benchmark.bounded:
        return benchmark.score(attempts)
    try:
        return call_once("grader", LIMIT, benchmark.score, attempts)
    except WorkerDiedError as error:
        return [Score(None, FAILED, str(error))] * len(attempts)


def _shared_scores(benchmark: Benchmark, attempts: Sequence[Attempt], engine: Cluster) -> list[Score]:
    def score_part(worker: Worker, start: int) -> list[Score]:
        part = attempts[start : start + PART]
        if not isinstance(worker, RemoteWorker):
            return benchmark.score(part)
        scores = worker.call_once("grader", LIMIT, benchmark.score, part)
        if failed := [score.detail for score in scores if score.verdict == FAILED]:
            raise NightError(f"its grader failed: {failed[0]}")  # another machine's may not
        return scores

    return [score for part in engine.spread(score_part, range(0, len(attempts), PART)) for score in part]


def score_all(
    attempts: Sequence[Attempt],
    entries: Sequence[BenchmarkConfig],
    sandbox: SandboxConfig,
    engine: Worker | None = None,
) -> list[Score]:
    """Return a score per attempt, in the given order.

    `entries`: per attempt, the configuration's entry that its problem is from. A grader's failures are logged with the
    first reason.
    """
    scores: dict[int, Score] = {}
    for entry in dict.fromkeys(entries):
        rows = [index for index, other in enumerate(entries) if other == entry]
        graded = scores_of(benchmarks.configured(entry, sandbox), [attempts[index] for index in rows], engine)
        scores |= dict(zip(rows, graded, strict=True))
        if failed := [score.detail for score in graded if score.verdict == FAILED]:
            log.warning("the grader of %s failed on %d completions: %s", entry.label, len(failed), failed[0])
    return [scores[index] for index in range(len(attempts))]
