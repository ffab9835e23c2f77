"""Turning scores into advantages."""

from pathlib import Path

import pandas as pd
import torch

from conf.schema import GrpoConfig
from models.advantages import group_advantages
from tasks.stage import Artifact, stage
from tasks.tables import ADVANTAGES, SCORES, read_table, write_table


@stage(tags=["trainer"])
def credit(folder: Path, *, scores: Artifact, grpo: GrpoConfig) -> None:
    """Each completion's advantage over its own group; null where it was not graded."""
    table: pd.DataFrame = read_table(scores.folder / "scores.parquet", SCORES)
    table = table.sort_values(["group", "sample"])
    rewards = torch.tensor(table.reward.to_numpy(dtype=float)).view(-1, grpo.group_size)
    advantages = group_advantages(rewards, grpo.scale).flatten().tolist()
    write_table(
        folder / "advantages.parquet",
        ADVANTAGES,
        [
            {
                "problem_id": row.problem_id,
                "group": row.group,
                "sample": row.sample,
                "advantage": None if advantage != advantage else advantage,
                "token_advantages": None,
            }
            for row, advantage in zip(table.itertuples(), advantages, strict=True)
        ],
    )
