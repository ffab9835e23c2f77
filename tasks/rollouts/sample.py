"""Sampling a round's groups of completions with vLLM."""

import dataclasses
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from conf.schema import EngineConfig, GrpoConfig
from models.engine.sync_probe import SyncError
from models.rollout import Rollout
from tasks.rollouts import engine_process as in_engine
from tasks.stage import Artifact, stage
from tasks.tables import PROMPTS, read_table, write_rollouts
from tasks.workers import Worker

log = logging.getLogger("nightschool")


def sample_proven(engine: Worker, *args: Any, **kwargs: Any) -> list[list[Rollout]]:
    """`engine_process.sample` in the engine's process. Raises SyncError where a new engine is not proven either."""
    try:
        return engine.call(in_engine.sample, *args, **kwargs)
    except SyncError as error:
        log.warning("%s: the engine is started anew", error)
        engine.on_loss(f"the engine was started anew: {error}")
        engine.close()
        return engine.call(in_engine.sample, *args, **kwargs)


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
    """`group_size` completions of every prompt, from the policy itself (temperature 1, nothing cut off).

    Its figures: the seconds that the engine took to hold the checkpoint (`sync`, its start included) and to sample
    (`generate`), and `probe_difference` (see `models/engine/sync_probe.py`).
    """
    table: pd.DataFrame = read_table(prompts.folder / "prompts.parquet", PROMPTS)
    groups = sample_proven(
        engine,
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
    return engine.call(in_engine.figures)
