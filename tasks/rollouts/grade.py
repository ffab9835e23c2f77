"""Grade attempts with the benchmarks' own graders, and compose the reward of each attempt."""

from collections.abc import Sequence
from dataclasses import replace

from conf.schema import BenchmarkConfig, RewardConfig, SandboxConfig
from conf.storage.home import NightError
from conf.storage.log import log
from rewards.data import benchmarks
from rewards.verifier import Attempt, Benchmark, Score
from tasks.rollouts.verdicts import FAILED
from tasks.workers.cluster import Cluster, first_line
from tasks.workers.remote import RemoteWorker
from tasks.workers.worker import Worker, WorkerDiedError, call_once

LIMIT = 3600.0  # seconds to grade the answers of a round or an exam
PART = 64  # programs per call if several machines share them: many, because a call's sandbox takes seconds to start


def scores_of(benchmark: Benchmark, attempts: Sequence[Attempt], engine: Worker | None = None) -> list[Score]:
    """Score attempts at one benchmark's problems. If a user's grader raises, dies or exceeds LIMIT, none gets a reward.

    Built-in benchmarks limit their own time. If the engine spans several machines, programs run on all of them.
    """
    if benchmark.runs_programs and isinstance(engine, Cluster):
        return _shared_scores(benchmark, attempts, engine)
    if benchmark.bounded:
        return benchmark.score(attempts)
    try:
        scores = call_once("grader", LIMIT, benchmark.score, attempts)
        if len(scores) == len(attempts):
            return scores
        why = f"it returned {len(scores)} scores for {len(attempts)} answers"
    except WorkerDiedError as error:
        why = str(error)
    except Exception as error:  # a user's grader can raise anything
        why = f"it raised {type(error).__name__}: {first_line(error)}"
    return [Score(None, FAILED, why)] * len(attempts)


def _shared_scores(benchmark: Benchmark, attempts: Sequence[Attempt], engine: Cluster) -> list[Score]:
    def score_part(worker: Worker, start: int) -> list[Score]:
        part = attempts[start : start + PART]
        if not isinstance(worker, RemoteWorker):
            return benchmark.score(part)
        scores: list[Score] = worker.ask("run", call_once, "grader", LIMIT, benchmark.score, part)
        if failed := [score.detail for score in scores if score.verdict == FAILED]:
            raise NightError(f"its grader failed: {failed[0]}")  # another machine's grader may work
        return scores

    return [score for part in engine.spread(score_part, range(0, len(attempts), PART)) for score in part]


def score_all(
    attempts: Sequence[Attempt],
    entries: Sequence[BenchmarkConfig],
    sandbox: SandboxConfig,
    engine: Worker | None = None,
) -> list[Score]:
    """Return the score of each attempt, in the given order.

    `entries`: for each attempt, the configuration entry of its benchmark. If a grader fails, a logged warning gives the
    number of completions that it failed on and the first reason.
    """
    scores: dict[int, Score] = {}
    for entry in dict.fromkeys(entries):
        rows = [index for index, other in enumerate(entries) if other == entry]
        graded = scores_of(benchmarks.configured(entry, sandbox), [attempts[index] for index in rows], engine)
        scores |= dict(zip(rows, graded, strict=True))
        if failed := [score.detail for score in graded if score.verdict == FAILED]:
            log.warning("the grader of %s failed on %d completions: %s", entry.label, len(failed), failed[0])
    return [scores[index] for index in range(len(attempts))]


def compose(score: Score, attempt: Attempt, config: RewardConfig, max_tokens: int) -> Score:
    """Return the score with its reward set to c + `format`·f − `length_penalty`·l.

    c is the benchmark's own reward (1 for a correct answer), f is 0 for the verdict `no_answer` and 1 otherwise, and l
    is the completion's length as a share of `max_tokens`. The score's parts `correct`, `format` and `length` hold the
    unweighted values, next to the benchmark's own parts. With the default weights of 0, the reward stays c. A reward of
    None stays None, because a failure of the grader says nothing about the answer.
    """
    if score.reward is None:
        return score
    answered = float(score.verdict != "no_answer")
    length = attempt.tokens / max_tokens
    reward = score.reward + config.format * answered - config.length_penalty * length
    parts = {**score.parts, "correct": score.reward, "format": answered, "length": length}
    return replace(score, reward=reward, parts=parts)
