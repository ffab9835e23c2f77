"""A round's update, and the moment from which it counts: weights and trainer state on the disk."""

import json
import logging
import shutil
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from prefect import task
from prefect.cache_policies import NO_CACHE

from conf.schema import TrainerConfig
from conf.storage.durable import make_folder, room_for, sync, sync_folder
from conf.storage.home import NightError
from models.checkpoint import make_durable
from tasks.stage import Artifact, stage, worker_died
from tasks.tables import ADVANTAGES, read_rollouts, read_table
from tasks.training import trainer_process
from tasks.training.metrics import round_figures
from tasks.training.trainer_process import Predecessor, Updated
from tasks.workers import Worker, working_on


@stage(retries=2, resources=("checkpoints", "trainer"))
def merge(folder: Path, *, adapter: Path, trust_remote_code: bool, checkpoints: Path, trainer: Worker) -> None:
    """Adds the adapter of the last round to its base's weights; the probe proves that nothing was lost on the way."""
    merged = trainer.call(trainer_process.merge, adapter, checkpoints, trust_remote_code)
    (folder / "checkpoint.txt").write_text(merged.name)


log = logging.getLogger("nightschool")


class UpdateChangedError(NightError):
    """An update that had to be taken again came to another checkpoint than the first time."""


class UpdateMeans:
    """What an update works with, kept together so that Prefect neither copies nor walks through it.

    `retired`: checkpoints, and trainer states, that no round goes on from any more; they go when new ones are written.
    """

    def __init__(
        self,
        predecessor: Predecessor,
        checkpoints: Path,
        trainer: Worker,
        retired: tuple[Sequence[Path], Sequence[Path]] = ((), ()),
    ) -> None:
        self.predecessor = predecessor
        self.checkpoints = checkpoints
        self.trainer = trainer
        self.retired_checkpoints, self.retired_states = retired


@task(
    name="update",
    task_run_name="{label}",
    retries=2,
    retry_condition_fn=worker_died,
    cache_policy=NO_CACHE,
)
def update(
    label: str,
    rollouts: Sequence[Artifact],
    advantages: Sequence[Artifact],
    config: TrainerConfig,
    means: UpdateMeans,
) -> Updated:
    """Takes the round's steps; the new weights are on the disk, but the round counts only after `checkpoint`.

    The artifacts are those of the round's first prompts, then of each refill.
    """
    with working_on("update"):
        updated = _take(rollouts, advantages, config, means)
    if bad := updated.metrics.get("non_finite_steps"):
        log.warning("%s: %d steps were not taken: loss or gradients were not finite", label, bad)
    return updated


def _take(
    rollouts: Sequence[Artifact], advantages: Sequence[Artifact], config: TrainerConfig, means: UpdateMeans
) -> Updated:
    """The round's update in the trainer's process."""
    sampled = [rollout for artifact in rollouts for rollout in read_rollouts(artifact.folder / "rollouts.parquet")]
    by_place: dict[tuple[int, int], Any] = {}
    for artifact in advantages:
        by_place |= advantages_by_place(read_table(artifact.folder / "advantages.parquet", ADVANTAGES))
    own = [by_place[rollout.group, rollout.sample] for rollout in sampled]
    with_signal = sum(artifact.read_json("signal.json")["with_signal"] for artifact in advantages)
    return means.trainer.call(
        trainer_process.update,
        means.predecessor,
        config,
        sampled,
        own,
        means.checkpoints,
        means.retired_checkpoints,
        with_signal,
    )


def advantages_by_place(table: pd.DataFrame) -> dict[tuple[int, int], float | list[float]]:
    """By group and sample: the completion's advantage (NaN: not graded), or, where the table has them, its tokens'."""
    rows: Any = table.itertuples()
    return {
        (row.group, row.sample): row.advantage if row.token_advantages is None else list(row.token_advantages)
        for row in rows
    }


@stage(retries=2, resources=("prompts", "scores", "updated", "state", "means", "seconds_round"))
def checkpoint(
    folder: Path,
    *,
    prompts: Sequence[Artifact],
    rollouts: Sequence[Artifact],
    scores: Sequence[Artifact],
    advantages: Sequence[Artifact],
    config: TrainerConfig,
    predecessor: str,
    updated: Updated,
    state: Path,
    means: UpdateMeans,
    seconds_round: float | None,
) -> None:
    """Makes the update count, while the next round samples: forces its weights to the disk, writes the trainer's state,
    figures and digests.

    What it depends on are the rollouts and advantages; prompts and scores, which know how long they took, are for the
    figures alone.

    Where the trainer's process died since the update, that is taken again, from the same predecessor and rollouts; it
    must come to the same checkpoint, which the next round samples from already. Raises UpdateChangedError where it does
    not (on a CPU it always does). `seconds_round`: of the whole round by the clock; None where it was begun by a night
    that was interrupted.
    """
    started = time.perf_counter()
    draft = state.with_name(f"{state.name}.draft")
    shutil.rmtree(draft, ignore_errors=True)
    make_folder(state.parent)
    with room_for(draft):
        _save_state(draft, updated.checkpoint.name, rollouts, advantages, config, means)
        make_durable(updated.checkpoint)
        sync_folder(draft)
    shutil.rmtree(state, ignore_errors=True)
    draft.rename(state)
    sync(state.parent)
    (folder / "checkpoint.txt").write_text(updated.checkpoint.name)
    figures = round_figures(prompts, rollouts, scores, advantages, updated.metrics)
    figures["seconds_checkpoint"] = time.perf_counter() - started
    if seconds_round is not None:
        figures["seconds_round"] = seconds_round
    (folder / "metrics.json").write_text(json.dumps(figures, allow_nan=False))


def _save_state(
    folder: Path,
    digest: str,
    rollouts: Sequence[Artifact],
    advantages: Sequence[Artifact],
    config: TrainerConfig,
    means: UpdateMeans,
) -> None:
    """The state of the trainer that stands at `digest`; one that does not is brought there again."""
    try:
        means.trainer.call(trainer_process.save_state, digest, folder, means.retired_states)
    except trainer_process.ElsewhereError as elsewhere:
        log.warning("%s: the update is taken again", elsewhere)
        again = _take(rollouts, advantages, config, means).checkpoint.name
        if again != digest:
            raise UpdateChangedError(
                f"the round's update, taken again, came to the checkpoint {again} and not to {digest}: "
                "the round is taken again, from the one before"
            ) from elsewhere
        means.trainer.call(trainer_process.save_state, digest, folder, means.retired_states)
