"""Scoring a round's completions, and keeping the running solve rates."""

import json
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from conf.schema import BenchmarkConfig, GrpoConfig
from rewards import benchmarks
from rewards.verifier import Attempt, Problem, Score
from tasks.stage import Artifact, stage
from tasks.tables import PROMPTS, SCORES, SOLVE_RATES, read_rollouts, read_table, write_table


@stage(tags=["grader"])
def score(
    folder: Path,
    *,
    prompts: Artifact,
    rollouts: Artifact,
    sources: tuple[BenchmarkConfig, ...],
    grpo: GrpoConfig,
    solve_rates: Artifact | None,
    night: str,
) -> None:
    """One score for every completion, and each kind's solve rate: the round's tries and, fading, the earlier ones'."""
    table: pd.DataFrame = read_table(prompts.folder / "prompts.parquet", PROMPTS)
    sampled = read_rollouts(rollouts.folder / "rollouts.parquet")
    problems = {row.group: _problem(row) for row in table.itertuples()}
    attempts = [Attempt(problems[r.group], r.text, r.group, r.finish_reason, len(r.token_ids)) for r in sampled]
    scores = score_all(attempts, sources)
    write_table(
        folder / "scores.parquet",
        SCORES,
        [
            {
                "problem_id": rollout.problem_id,
                "group": rollout.group,
                "sample": rollout.sample,
                "reward": score.reward,
                "verdict": score.verdict,
                "parts": json.dumps(dict(score.parts)),
                "seconds": score.seconds,
            }
            for rollout, score in zip(sampled, scores, strict=True)
        ],
    )
    _write_solve_rates(
        folder, table, attempts, scores, solve_rates, grpo.solve_rate_decay, night, sampled[0].policy_digest
    )


def score_all(attempts: Sequence[Attempt], sources: Sequence[BenchmarkConfig]) -> list[Score]:
    """Each attempt judged by its own benchmark, in the given order."""
    scores: dict[int, Score] = {}
    for source in sources:
        benchmark = benchmarks.load(source.name, source.source)
        own = [index for index, attempt in enumerate(attempts) if attempt.problem.benchmark == source.name]
        scores |= dict(zip(own, benchmark.score([attempts[index] for index in own]), strict=True))
    return [scores[index] for index in range(len(attempts))]


def _problem(row: object) -> Problem:
    return Problem(row.problem_id, row.benchmark, row.question, row.truth, row.level)  # pyright: ignore


def _write_solve_rates(
    folder: Path,
    prompts: pd.DataFrame,
    attempts: Sequence[Attempt],
    scores: Sequence[Score],
    before: Artifact | None,
    decay: float,
    night: str,
    policy_digest: str,
) -> None:
    kinds = dict(zip(prompts.group, zip(prompts.kind, prompts.benchmark, prompts.level, strict=True), strict=True))
    rates: dict[tuple[str, str, str | None], list[float]] = defaultdict(lambda: [0.0, 0.0])
    if before is not None:
        for row in read_table(before.folder / "solve_rates.parquet", SOLVE_RATES).itertuples():
            rates[row.problem_id, row.benchmark, row.level] = [row.tried * decay, row.solved * decay]  # pyright: ignore
    for attempt, score in zip(attempts, scores, strict=True):
        if score.reward is not None:
            rate = rates[kinds[attempt.group]]
            rate[0] += 1
            rate[1] += score.verdict == "correct"
    write_table(
        folder / "solve_rates.parquet",
        SOLVE_RATES,
        [
            {
                "problem_id": kind,
                "benchmark": benchmark,
                "level": level,
                "night": night,
                "policy_digest": policy_digest,
                "tried": tried,
                "solved": solved,
            }
            for (kind, benchmark, level), (tried, solved) in sorted(rates.items(), key=lambda item: item[0][0])
        ],
    )
