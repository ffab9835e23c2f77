"""Tasks that run a round's update, commit it with its checkpoint, and merge a block's adapter."""

import json
import math
import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from prefect import task
from prefect.cache_policies import NO_CACHE

from conf.schema import TrainerConfig
from conf.storage.durable import make_folder, room_for, sync, sync_folder
from conf.storage.home import NightError
from conf.storage.log import log
from models.hf.checkpoint import make_durable
from tasks.rollouts.sample import sampled_rollouts
from tasks.stage import Artifact, stage, worker_died
from tasks.tables import ADVANTAGES, table_rows
from tasks.training import trainer_process
from tasks.training.trainer_process import Predecessor, Updated
from tasks.workers.worker import Worker, working_on


class UpdateChangedError(NightError):
    """A repeated update gave a different checkpoint."""


@dataclass(frozen=True)
class UpdateResources:
    """What an update uses besides its inputs; a change of these does not run the stage again.

    `retired`: checkpoints and trainer states from which no later round will continue. The update removes them.
    """

    predecessor: Predecessor
    checkpoints: Path
    trainer: Worker
    retired: Sequence[Path] = ()


@task(name="update", retries=2, retry_condition_fn=worker_died, cache_policy=NO_CACHE)
def update(
    rollouts: Sequence[Artifact],
    advantages: Sequence[Artifact],
    config: TrainerConfig,
    rate_factor: float,
    resources: UpdateResources,
) -> Updated:
    """Take the round's optimizer steps and write the new weights to disk. The `checkpoint` stage then commits them.

    `rollouts`, `advantages`: one artifact per batch (see `SampledBatch`). `rate_factor`: scales the learning rate.
    """
    sampled = [rollout for artifact in rollouts for rollout in sampled_rollouts(artifact)]
    by_sample: dict[tuple[int, int], Any] = {}
    for artifact in advantages:
        by_sample |= read_advantages(artifact.folder)
    with working_on("update"):
        updated = resources.trainer.call(
            trainer_process.update,
            resources.predecessor,
            config,
            sampled,
            [by_sample[rollout.group, rollout.sample] for rollout in sampled],
            resources.checkpoints,
            resources.retired,
            rate_factor,
        )
    if skipped := updated.metrics.get("non_finite_steps"):
        log.warning("%d steps were skipped: loss or gradients were not finite", skipped)
    return updated


def read_advantages(folder: Path) -> dict[tuple[int, int], float | list[float]]:
    """Return advantages by (group, sample): one per token if there are any, else one per completion (NaN: ungraded)."""
    advantages: dict[tuple[int, int], float | list[float]] = {}
    for row in table_rows(folder / "advantages.parquet", ADVANTAGES):
        of_all = math.nan if row["advantage"] is None else row["advantage"]
        advantages[row["group"], row["sample"]] = of_all if row["token_advantages"] is None else row["token_advantages"]
    return advantages


@stage(retries=2, resources=("updated", "state", "resources", "figures"))
def checkpoint(
    folder: Path,
    *,
    rollouts: Sequence[Artifact],
    advantages: Sequence[Artifact],
    config: TrainerConfig,
    rate_factor: float,
    predecessor: str,
    updated: Updated,
    state: Path,
    resources: UpdateResources,
    figures: Mapping[str, float],
) -> None:
    """Commit the update: flush its weights to disk, and write the trainer's state and the round's metrics.

    If the trainer's process has died since the update, the update is repeated from the same predecessor and rollouts.
    The repeated update must give the same checkpoint, because the next round already samples from it. Raises
    UpdateChangedError if the checkpoint differs, which never happens on a CPU.
    """
    started, digest = time.perf_counter(), updated.checkpoint.name
    draft = state.with_name(f"{state.name}.draft")
    shutil.rmtree(draft, ignore_errors=True)
    make_folder(state.parent)
    with room_for(draft):
        try:
            resources.trainer.call(trainer_process.save_state, digest, draft)
        except trainer_process.WrongCheckpointError as elsewhere:
            log.warning("%s: the update is repeated", elsewhere)
            repeated = update.fn(rollouts, advantages, config, rate_factor, resources).checkpoint.name
            if repeated != digest:
                raise UpdateChangedError(
                    f"the round's update was repeated and came to the checkpoint {repeated}, not {digest}: "
                    "run the same command again; it resumes from the round before"
                ) from elsewhere
            resources.trainer.call(trainer_process.save_state, digest, draft)
        make_durable(updated.checkpoint)
        sync_folder(draft)
    shutil.rmtree(state, ignore_errors=True)
    draft.rename(state)
    sync(state.parent)
    (folder / "checkpoint.txt").write_text(digest)
    metrics = {**figures, "seconds_checkpoint": time.perf_counter() - started}
    (folder / "metrics.json").write_text(json.dumps(metrics, allow_nan=False))


@stage(retries=2, resources=("checkpoints", "trainer"))
def merge(folder: Path, *, adapter: Path, trust_remote_code: bool, checkpoints: Path, trainer: Worker) -> None:
    """Merge the adapter of a block's last round into its base. The sync probe verifies the merged weights."""
    merged = trainer.call(trainer_process.merge, adapter, checkpoints, trust_remote_code)
    (folder / "checkpoint.txt").write_text(merged.name)
