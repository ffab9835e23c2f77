"""A round's update, and the moment from which it counts: weights and trainer state on the disk."""

import json
import math
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pandas as pd
from prefect import task
from prefect.cache_policies import NO_CACHE

from conf.schema import TrainerConfig
from models.durable import sync, sync_folder
from tasks import learner, verdicts
from tasks.learner import Predecessor, Updated
from tasks.stage import Artifact, stage, worker_died
from tasks.tables import ADVANTAGES, SCORES, read_rollouts, read_table
from tasks.workers import Worker

REWARD_PARTS = ("correct", "format", "length")  # of every score: see rewards/composition.py


class UpdateMeans:
    """What an update works with, kept together so that Prefect neither copies nor walks through it."""

    def __init__(self, predecessor: Predecessor, checkpoints: Path, trainer: Worker) -> None:
        self.predecessor = predecessor
        self.checkpoints = checkpoints
        self.trainer = trainer


@task(
    name="update",
    tags=["trainer"],
    task_run_name="{label}",
    retries=2,
    retry_condition_fn=worker_died,
    cache_policy=NO_CACHE,
)
def update(label: str, rollouts: Artifact, advantages: Artifact, config: TrainerConfig, means: UpdateMeans) -> Updated:
    """Takes the round's steps; the new weights are on the disk, but the round counts only after `checkpoint`."""
    table: pd.DataFrame = read_table(advantages.folder / "advantages.parquet", ADVANTAGES)
    sampled = read_rollouts(rollouts.folder / "rollouts.parquet")
    by_place = advantages_by_place(table)
    own: list[Any] = [by_place[rollout.group, rollout.sample] for rollout in sampled]
    return means.trainer.call(
        learner.update,
        means.predecessor,
        config,
        sampled,
        own,
        means.checkpoints,
    )


def advantages_by_place(table: pd.DataFrame) -> dict[tuple[int, int], float | list[float]]:
    """By group and sample: the completion's advantage (NaN: not graded), or, where the table has them, its tokens'."""
    rows: Any = table.itertuples()
    return {
        (row.group, row.sample): row.advantage if row.token_advantages is None else list(row.token_advantages)
        for row in rows
    }


@stage(tags=["trainer", "checkpoint"], means=("updated", "state", "trainer"))
def checkpoint(
    folder: Path,
    *,
    rollouts: Artifact,
    scores: Artifact,
    advantages: Artifact,
    config: TrainerConfig,
    predecessor: str,
    updated: Updated,
    state: Path,
    trainer: Worker,
) -> None:
    """Makes the update count: writes the trainer's state (while the next round samples), figures and digests."""
    draft = state.with_name(f"{state.name}.draft")
    shutil.rmtree(draft, ignore_errors=True)
    trainer.call(learner.save_state, updated.checkpoint.name, draft)
    sync_folder(draft)
    shutil.rmtree(state, ignore_errors=True)
    draft.rename(state)
    sync(state.parent)
    (folder / "checkpoint.txt").write_text(updated.checkpoint.name)
    (folder / "metrics.json").write_text(json.dumps(_metrics(rollouts, scores, updated), allow_nan=False))


def _metrics(rollouts: Artifact, scores: Artifact, updated: Updated) -> dict[str, Any]:
    """The round's figures: what the graders and the sampler saw, and what the trainer did."""
    sampled = read_rollouts(rollouts.folder / "rollouts.parquet")
    table: pd.DataFrame = read_table(scores.folder / "scores.parquet", SCORES)
    tokens = [len(rollout.token_ids) for rollout in sampled]
    counts = Counter(table.verdict)
    parts = pd.DataFrame([json.loads(parts) for parts in table.parts[table.reward.notna()]])
    own = {name: value for name, value in updated.metrics.items() if math.isfinite(value)}
    return {
        "reward": float(table.reward.mean()),
        "signal_share": own["useful_groups"] / own["groups"],
        "completion_length": sum(tokens) / len(tokens),
        "truncated_share": sum(rollout.finish_reason == "length" for rollout in sampled) / len(sampled),
        "null_rewards": int(table.reward.isna().sum()),
        "tokens_per_second": sum(tokens) / rollouts.seconds,
        "seconds_sample": rollouts.seconds,
        "seconds_score": scores.seconds,
        "seconds_update": own.pop("seconds"),
        **{f"reward/{part}": float(parts[part].mean()) for part in REWARD_PARTS if part in parts},
        **{f"verdicts/{verdict}": count for verdict, count in counts.items()},
        **verdicts.as_metrics(scores.read_json("verdicts.json")),
        **own,
    }
