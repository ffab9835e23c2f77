"""Sample a round's groups of completions with vLLM."""

import dataclasses
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from models.hf.loading import answer_tokens, load_tokenizer
from models.rollout import Rollout
from tasks.rollouts.verified import Player, sample_verified
from tasks.stage import Artifact, stage
from tasks.tables import PROMPTS, read_rollouts, table_rows, write_rollouts


@lru_cache(maxsize=4)
def sampled_rollouts(artifact: Artifact) -> list[Rollout]:
    """Return the rollouts that a `sample` or `collect` stage wrote. The list is cached and shared: do not modify it."""
    return read_rollouts(artifact.folder / "rollouts.parquet")


@stage(retries=2)
def sample(folder: Path, *, prompts: Artifact, player: Player, size: int, seed: int) -> Mapping[str, float]:
    """Sample `size` completions per prompt at the player's temperature, without top-p or top-k.

    If a prompt comes with a `solution`, that solution replaces the last completion, because a student that is never
    right learns nothing from its own answers (LUFFY, arXiv 2504.14945). Returns the metrics of `engine_process.sample`.
    """
    asked = table_rows(prompts.folder / "prompts.parquet", PROMPTS)
    groups, figures = sample_verified(player, [row["prompt_token_ids"] for row in asked], size, seed=seed)
    for group, row in zip(groups, asked, strict=True):
        if (solution := row["solution"]) is not None:
            tokenizer = load_tokenizer(player.checkpoint, player.student.trust_remote_code)
            group[-1] = _given(group[-1], solution, answer_tokens(tokenizer, solution))
    write_rollouts(
        folder / "rollouts.parquet",
        [
            dataclasses.replace(rollout, problem_id=row["problem_id"], group=row["group"])
            for row, group in zip(asked, groups, strict=True)
            for rollout in group
        ],
    )
    return figures


def _given(rollout: Rollout, text: str, tokens: list[int]) -> Rollout:
    zeros, mask = [0.0] * len(tokens), [True] * len(tokens)
    changes: dict[str, Any] = {"token_ids": tokens, "sampler_logprobs": zeros, "loss_mask": mask, "text": text}
    return dataclasses.replace(rollout, finish_reason="given", **changes)
