"""Score a round's completions with the reward model."""

import math
from collections import defaultdict
from pathlib import Path

from conf.schema import TrainerConfig
from tasks.reward_model import process
from tasks.reward_model.learned_reward import OWNER
from tasks.rollouts.sample import sampled_rollouts
from tasks.stage import Artifact, stage
from tasks.tables import LEARNED, PROMPTS, completion_key, table_rows, write_table
from tasks.workers.worker import Worker


@stage(retries=2, resources=("trainer",))
def score_by_reward_model(
    folder: Path,
    *,
    prompts: Artifact,
    rollouts: Artifact,
    reward_model: Path,
    config: TrainerConfig,
    failed: bool,
    trainer: Worker,
) -> None:
    """Write the reward model's reward for each completion of the owner's prompts, and null for the others, in order.

    A completion without tokens has no last token to score, so its reward is null, as is one that is not finite.
    `failed`: whether the model failed on these completions before. If so, it is not asked again, and every reward is
    null.
    """
    asked_by = table_rows(prompts.folder / "prompts.parquet", PROMPTS)
    sampled, own = sampled_rollouts(rollouts), {row["group"] for row in asked_by if row["kind"] == OWNER}
    groups: dict[int, list[int]] = defaultdict(list)
    for row, rollout in enumerate(sampled):
        if rollout.group in own and rollout.token_ids and not failed:
            groups[rollout.group].append(row)
    asked = [(sampled[rows[0]].prompt_token_ids, [sampled[row].token_ids for row in rows]) for rows in groups.values()]
    answers = trainer.call(process.score_answers, reward_model, asked, config) if asked else []
    if failed:
        trainer.call(process.release)  # memory may have been short
    rewards = {
        row: reward
        for rows, group in zip(groups.values(), answers, strict=True)
        for row, reward in zip(rows, group, strict=True)
        if math.isfinite(reward)
    }
    rows = [completion_key(rollout) | {"learned": rewards.get(row)} for row, rollout in enumerate(sampled)]
    write_table(folder / "learned.parquet", LEARNED, rows)
