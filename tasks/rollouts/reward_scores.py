"""The learned reward of a round's completions."""

import math
from collections import defaultdict
from pathlib import Path

from conf.schema import TrainerConfig
from tasks.reward_model import process
from tasks.rollouts.sample import sampled_rollouts
from tasks.stage import Artifact, stage
from tasks.tables import LEARNED, write_table
from tasks.workers import Worker


@stage(retries=2, resources=("trainer",))
def judge(
    folder: Path, *, rollouts: Artifact, reward_model: Path, config: TrainerConfig, broke: bool, trainer: Worker
) -> None:
    """One reward a completion, in the order of the rollouts; null where the model gives no finite number.

    A completion without a token has no end that could be judged. `broke`: the model could not judge them when it was
    asked, and is not asked again: null of each.
    """
    sampled = sampled_rollouts(rollouts)
    groups: dict[int, list[int]] = defaultdict(list)
    for row, rollout in enumerate(sampled):
        if rollout.token_ids and not broke:
            groups[rollout.group].append(row)
    asked = [(sampled[rows[0]].prompt_token_ids, [sampled[row].token_ids for row in rows]) for rows in groups.values()]
    answers = trainer.call(process.judge, reward_model, asked, config) if asked else []
    if broke:
        trainer.call(process.let_go)  # what it broke over may have been memory
    rewards = {
        row: reward
        for rows, own in zip(groups.values(), answers, strict=True)
        for row, reward in zip(rows, own, strict=True)
        if math.isfinite(reward)
    }
    write_table(
        folder / "learned.parquet",
        LEARNED,
        [
            {
                "problem_id": rollout.problem_id,
                "group": rollout.group,
                "sample": rollout.sample,
                "learned": rewards.get(row),
            }
            for row, rollout in enumerate(sampled)
        ],
    )
