"""Score a round's completions, and update each kind's solve rate."""

import hashlib
import json
import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import Any

from conf.schema import BenchmarkConfig, GrpoConfig, RewardConfig, SandboxConfig
from conf.sections.lessons import LearnedRewardConfig
from models.rollout import Rollout
from rewards.verifier import Attempt, Score
from tasks.reward_model.learned_reward import with_learned
from tasks.rollouts import verdicts
from tasks.rollouts.curriculum import ARMS, next_arms, read_arms, tried
from tasks.rollouts.grade import compose, score_all
from tasks.rollouts.sample import sampled_rollouts
from tasks.rollouts.select_prompts import problem_of
from tasks.rollouts.verdicts import FAILED, GIVEN
from tasks.stage import Artifact, stage
from tasks.tables import LEARNED, PROMPTS, SCORES, SOLVE_RATES, TURNS, Row, completion_key, table_rows, write_table
from tasks.workers.worker import Worker

SOLVE_RATE_DECAY = 0.7  # each round multiplies the weight of a kind's earlier attempts by this


@stage(resources=("engine",))
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
    engine: Worker | None = None,
) -> None:
    """Write each completion's score, each benchmark's verdict counts, each kind's solve rate, and the curriculum arms.

    For episodes, it also writes the turns; an episode contributes its `Score.solved` to the solve rates. These also
    include earlier attempts, with weight `decay`. `learned`: scores from the reward model or the judge, or None (see
    `tasks/reward_model/learned_reward.py`). `engine`: if it is a `Cluster`, its machines also run programs to grade.
    """
    asked = table_rows(prompts.folder / "prompts.parquet", PROMPTS)
    sampled = sampled_rollouts(rollouts)
    problems = {row["group"]: problem_of(row) for row in asked}
    verifiable = [row for row in asked if row["benchmark"] is not None]
    entries = {row["group"]: sources[row["entry"]] for row in verifiable}
    hints = {row["group"]: row["hint"] or "" for row in asked}  # a hint is the beginning of the answer
    attempts = [
        Attempt(problems[r.group], hints[r.group] + r.text, r.group, r.finish_reason, r.written) for r in sampled
    ]
    verified = [attempt for attempt in attempts if attempt.group in entries]
    graded = map(_marked, verified, score_all(verified, [entries[a.group] for a in verified], sandbox, engine))
    scores: Sequence[Any] = [
        compose(next(graded), attempt, reward, grpo.max_completion_tokens) if attempt.group in entries else None
        for attempt in attempts
    ]
    if learned is not None and learned_reward is not None:
        rewards = [row["learned"] for row in table_rows(learned.folder / "learned.parquet", LEARNED)]
        scores = with_learned(
            attempts,
            scores,
            [math.nan if reward is None else reward for reward in rewards],
            learned_reward,
            length_penalty=reward.length_penalty,
            max_tokens=grpo.max_completion_tokens,
        )
    rows = [
        completion_key(rollout)
        | {"reward": score.reward, "verdict": score.verdict, "seconds": score.seconds}
        | {"parts": json.dumps(dict(score.parts))}
        for rollout, score in zip(sampled, scores, strict=True)
    ]
    write_table(folder / "scores.parquet", SCORES, rows)
    turns = [row for rollout, score in zip(sampled, scores, strict=True) for row in turn_rows(rollout, score)]
    if turns:
        write_table(folder / "turns.parquet", TURNS, turns)
    counts = verdicts.count((a.problem.benchmark, s.verdict) for a, s in zip(attempts, scores, strict=True))
    (folder / "verdicts.json").write_text(json.dumps(counts))
    _write_solve_rates(folder, verifiable, attempts, scores, solve_rates, decay, night, sampled[0].policy_digest)
    before = read_arms(solve_rates.folder) if solve_rates else {}
    arms = next_arms(before, tried(verifiable, attempts, scores), grpo.choice, 1 - SOLVE_RATE_DECAY)
    (folder / ARMS).write_text(json.dumps(arms))


def _marked(attempt: Attempt, score: Score) -> Score:
    """Return the score. A benchmark's own solution gets the verdict `given`, or no reward if it is not correct."""
    if attempt.finish_reason != "given":
        return score
    return replace(score, verdict=GIVEN) if score.verdict == "correct" else replace(score, reward=None, verdict=FAILED)


def _write_solve_rates(
    folder: Path,
    prompts: Sequence[Row],
    attempts: Sequence[Attempt],
    scores: Sequence[Score],
    before: Artifact | None,
    decay: float,
    night: str,
    policy_digest: str,
) -> None:
    kinds = {row["group"]: (row["kind"], row["benchmark"], row["level"]) for row in prompts}
    rates: dict[tuple[str, str, str | None], list[float]] = defaultdict(lambda: [0.0, 0.0])
    if before is not None:
        for row in table_rows(before.folder / "solve_rates.parquet", SOLVE_RATES):
            earlier = [row["tried"] * decay, row["solved"] * decay]
            rates[row["problem_id"], row["benchmark"], row["level"]] = earlier
    for attempt, score in zip(attempts, scores, strict=True):
        if score.reward is not None and score.verdict != GIVEN and attempt.group in kinds:
            rate = rates[kinds[attempt.group]]
            rate[0] += 1
            rate[1] += score.solved
    rows = [
        {"problem_id": kind, "benchmark": benchmark, "level": level, "tried": tried, "solved": solved}
        | {"night": night, "policy_digest": policy_digest}
        for (kind, benchmark, level), (tried, solved) in sorted(rates.items(), key=lambda item: item[0][0])
    ]
    write_table(folder / "solve_rates.parquet", SOLVE_RATES, rows)


def turn_rows(rollout: Rollout, score: Score) -> Iterator[Row]:
    """Yield a row of the turns table for each turn of an episode, in order, or nothing for a single answer."""
    by_agent = sorted(range(len(score.turns)), key=lambda number: score.turns[number].agent)  # as in the rollout
    places = dict(zip(by_agent, spans(rollout), strict=False))
    for number, turn in enumerate(score.turns):
        if number not in places:
            continue
        first, length = places[number]
        yield completion_key(rollout) | {
            "turn": number,
            "agent": turn.agent,
            "first": first,
            "tokens": length,
            "state_key": hashlib.sha256(turn.observation.encode()).hexdigest()[:20],
            "action": turn.action,
            "valid": turn.valid,
            "reward": turn.reward,
            "parts": json.dumps(dict(turn.parts)),
        }


def spans(rollout: Rollout) -> list[tuple[int, int]]:
    """Return the token span (start, length) of each answer that the policy wrote in an episode."""
    runs = [
        [index for index, _ in run] for written, run in groupby(enumerate(rollout.loss_mask), lambda x: x[1]) if written
    ]
    return [(run[0], len(run)) for run in runs]
