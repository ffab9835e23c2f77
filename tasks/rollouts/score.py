"""Scoring a round's completions, and keeping the running solve rates."""

import json
import logging
import math
import pickle
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from conf.schema import BenchmarkConfig, GrpoConfig, RewardConfig, SandboxConfig
from conf.sections.lessons import LearnedRewardConfig
from rewards import benchmarks
from rewards.composition import compose
from rewards.learned_reward import with_learned
from rewards.verifier import Attempt, Benchmark, Score
from tasks.rollouts import verdicts
from tasks.rollouts.sample import sampled_rollouts
from tasks.rollouts.select_prompts import problem_of
from tasks.rollouts.verdicts import FAILED
from tasks.stage import Artifact, stage
from tasks.tables import LEARNED, PROMPTS, SCORES, SOLVE_RATES, read_table, write_table
from tasks.workers import WorkerDiedError, call_once

LIMIT = 3600.0  # seconds for the answers of a round, or of an exam


def scores_of(benchmark: Benchmark, attempts: Sequence[Attempt]) -> list[Score]:
    """What the benchmark says of the attempts; null of each where a grader of the user's own died, or was not through.

    The program's own benchmarks have limits of their own. One of the user's that cannot be pickled judges in this
    process, and has none.
    """
    if benchmark.bounded or not _can_travel(benchmark):
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


log = logging.getLogger("nightschool")


@stage()
def score(
    folder: Path,
    *,
    prompts: Artifact,
    rollouts: Artifact,
    sources: tuple[BenchmarkConfig, ...],
    grpo: GrpoConfig,
    reward: RewardConfig,
    sandbox: SandboxConfig,
    solve_rates: Artifact | None,
    decay: float,
    night: str,
    learned: Artifact | None = None,
    learned_reward: LearnedRewardConfig | None = None,
) -> None:
    """One score for every completion, its reward composed as configured; the verdicts, counted by benchmark; and each
    kind's solve rate: these tries and, with the weight `decay`, the earlier ones'.

    `learned`: what the reward model says of the completions, where one is in use (see `rewards/learned_reward.py`).
    """
    table: pd.DataFrame = read_table(prompts.folder / "prompts.parquet", PROMPTS)
    sampled = sampled_rollouts(rollouts)
    problems = {row.group: problem_of(row) for row in table.itertuples()}
    verifiable = table[table.benchmark.notna()]
    entries = {group: sources[int(n)] for group, n in zip(verifiable.group, verifiable.entry, strict=True)}
    attempts = [Attempt(problems[r.group], r.text, r.group, r.finish_reason, len(r.token_ids)) for r in sampled]
    asked = [attempt for attempt in attempts if attempt.group in entries]
    judged = iter(score_all(asked, [entries[attempt.group] for attempt in asked], sandbox))
    scores: Sequence[Any] = [
        compose(next(judged), attempt, reward, grpo.max_completion_tokens) if attempt.group in entries else None
        for attempt in attempts
    ]
    if learned is not None and learned_reward is not None:
        scores = _with_learned(attempts, scores, learned, learned_reward, reward, grpo)
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
    counts = verdicts.count((a.problem.benchmark, s.verdict) for a, s in zip(attempts, scores, strict=True))
    (folder / "verdicts.json").write_text(json.dumps(counts))
    _write_solve_rates(folder, verifiable, attempts, scores, solve_rates, decay, night, sampled[0].policy_digest)


def score_all(attempts: Sequence[Attempt], entries: Sequence[BenchmarkConfig], sandbox: SandboxConfig) -> list[Score]:
    """Each attempt judged by the benchmark's entry in the configuration that its problem came from, in the given order.

    `entries`: one an attempt. A grader's failures are logged, with its first reason.
    """
    scores: dict[int, Score] = {}
    for entry in dict.fromkeys(entries):
        own = [index for index, other in enumerate(entries) if other == entry]
        found = scores_of(benchmarks.configured(entry, sandbox), [attempts[index] for index in own])
        scores |= dict(zip(own, found, strict=True))
        if failed := [score.detail for score in found if score.verdict == verdicts.FAILED]:
            log.warning("the grader of %s failed on %d completions: %s", entry.label, len(failed), failed[0])
    return [scores[index] for index in range(len(attempts))]


def _with_learned(
    attempts: Sequence[Attempt],
    scores: Sequence[Score | None],
    learned: Artifact,
    config: LearnedRewardConfig,
    reward: RewardConfig,
    grpo: GrpoConfig,
) -> list[Score]:
    """The scores with the reward model's word in them.

    A tie-breaker is bounded beside what a correct answer brings. There is none where advantages are divided by their
    group's deviation: a group in which nothing else differs would count as much as any other.
    """
    table = read_table(learned.folder / "learned.parquet", LEARNED)
    limit = config.tie_breaker * reward.correct if grpo.scale == "none" else 0.0
    return with_learned(
        attempts,
        scores,
        [math.nan if pd.isna(value) else float(value) for value in table.learned],
        config,
        length_penalty=reward.length_penalty,
        max_tokens=grpo.max_completion_tokens,
        limit=limit,
    )


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
        if score.reward is not None and attempt.group in kinds:
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
