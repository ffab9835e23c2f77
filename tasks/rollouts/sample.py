"""Sampling a round's groups of completions with vLLM."""

import dataclasses
import logging
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import ParamSpec, TypeVar

import pandas as pd

from conf.schema import EngineConfig, GrpoConfig
from models.engine.sync_probe import SyncError
from models.rollout import Rollout
from tasks.rollouts import engine_process
from tasks.stage import Artifact, stage
from tasks.tables import PROMPTS, read_rollouts, read_table, write_rollouts
from tasks.workers import Worker

P = ParamSpec("P")
R = TypeVar("R")

log = logging.getLogger("nightschool")


def call_proven(engine: Worker, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """Call a function in the engine's process, and once more in a new one after an unproven weight sync.

    Raises SyncError where a new engine's weights are not proven either.
    """
    try:
        return engine.call(function, *args, **kwargs)
    except SyncError as error:
        log.warning("%s: the engine is restarted", error)
        engine.on_loss(f"the engine was restarted: {error}")
        engine.close()
        return engine.call(function, *args, **kwargs)


@lru_cache(maxsize=4)
def sampled_rollouts(artifact: Artifact) -> list[Rollout]:
    """Return what a `sample` stage wrote. Its readers within a round share one list: do not change it."""
    return read_rollouts(artifact.folder / "rollouts.parquet")


@stage(retries=2, resources=("engine",))
def sample(
    folder: Path,
    *,
    prompts: Artifact,
    checkpoint: Path,
    grpo: GrpoConfig,
    config: EngineConfig,
    trust_remote_code: bool,
    seed: int,
    engine: Worker,
) -> Mapping[str, float]:
    """Sample `group_size` completions of every prompt from the policy itself (temperature 1, no truncation).

    Returns the figures of `engine_process.sample`.
    """
    table: pd.DataFrame = read_table(prompts.folder / "prompts.parquet", PROMPTS)
    groups, figures = call_proven(
        engine,
        engine_process.sample,
        checkpoint,
        config,
        [list(map(int, tokens)) for tokens in table.prompt_token_ids],
        grpo.group_size,
        seed=seed,
        temperature=grpo.temperature,
        max_tokens=grpo.max_completion_tokens,
        trust_remote_code=trust_remote_code,
    )
    write_rollouts(
        folder / "rollouts.parquet",
        [
            dataclasses.replace(rollout, problem_id=problem_id, group=number)
            for problem_id, number, group in zip(table.problem_id, table.group, groups, strict=True)
            for rollout in group
        ],
    )
    return figures
