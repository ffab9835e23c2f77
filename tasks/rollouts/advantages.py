"""Advantages from a round's scores."""

import json
from pathlib import Path

import pandas as pd
import torch

from conf.schema import GrpoConfig
from models.advantages import group_advantages, overlong_rewards
from tasks.rollouts.sample import sampled_rollouts
from tasks.stage import Artifact, stage
from tasks.tables import ADVANTAGES, SCORES, numbering, read_table, write_table


@stage()
def credit(folder: Path, *, scores: Artifact, rollouts: Artifact, grpo: GrpoConfig) -> None:
    """Write each completion's advantage over its group; null where it was not graded, or was cut and is masked.

    `signal.json` counts the groups, and those with signal: with an advantage on a completion that can be trained on. A
    group of equal rewards, or of fewer than two graded completions, has none; nor has one in which only a tie-breaker
    differs, which is trained on, but also replaced.
    """
    table: pd.DataFrame = read_table(scores.folder / "scores.parquet", SCORES)
    table = table.sort_values(["group", "sample"])
    sampled = {(r.group, r.sample): r for r in sampled_rollouts(rollouts)}
    completions = [sampled[key] for key in zip(table.group, table["sample"], strict=True)]
    rewards = torch.tensor(table.reward.to_numpy(dtype=float)).view(-1, grpo.group_size)
    lengths = torch.tensor([len(rollout.token_ids) for rollout in completions]).view_as(rewards)
    cut = torch.tensor([rollout.finish_reason == "length" for rollout in completions]).view_as(rewards)
    moved = [json.loads(parts).get("tie_breaker", 0.0) for parts in table.parts]
    tie_breakers = rewards.new_tensor(moved).view_as(rewards)
    verified = (rewards - tie_breakers).round(decimals=9)  # floating-point error is no difference
    advantages, verified_advantages = (
        group_advantages(overlong_rewards(given, lengths, cut, grpo), grpo.scale) for given in (rewards, verified)
    )
    trainable = torch.tensor([any(rollout.loss_mask) for rollout in completions]).view_as(rewards)
    signal = ((verified_advantages.nan_to_num(0.0) != 0) & trainable).any(dim=1)
    rows = [
        numbering(rollout) | {"advantage": None if advantage != advantage else advantage, "token_advantages": None}
        for rollout, advantage in zip(completions, advantages.flatten().tolist(), strict=True)
    ]
    write_table(folder / "advantages.parquet", ADVANTAGES, rows)
    (folder / "signal.json").write_text(json.dumps({"groups": len(signal), "with_signal": int(signal.sum())}))
