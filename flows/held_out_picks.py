"""How champion, distilled and candidate rank the owner's held-out picks themselves: reported, never deciding."""

import json
from collections.abc import Iterable
from pathlib import Path

from conf.schema import TrainerConfig
from flows.history import seconds_of
from flows.night import Night, log
from tasks.exam_figures import ranking_accuracies
from tasks.rank_picks import rank_picks
from tasks.stage import MANIFEST, Artifact
from tasks.tables import HELD_OUT, read_table
from tasks.tracking import Tracking
from tasks.workers import HoursOverError, WorkerDiedError

PICKS = "picks"  # the stages' folder in the night's


def rank_held_out(night: Night, reward_model: Artifact, who: str, checkpoint: Path) -> None:
    """Whether a checkpoint finds the picked answers the likeliest; nothing where there are no picks.

    No night fails for it: it goes on without where the trainer dies, or there is no memory or time for it.
    """
    if read_table(reward_model.folder / "held_out.parquet", HELD_OUT).empty:
        return
    night.rest_engine()
    try:
        night.run(
            rank_picks,
            f"{PICKS}/{who}",
            reward_model=reward_model,
            policy=checkpoint.name,
            tokenizer=checkpoint,
            student=night.config.student,
            config=_as_it_is(night.config.trainer),
            predecessor=None,
            trainer=night.trainer,
        )
    except (HoursOverError, WorkerDiedError, RuntimeError) as error:  # memory is short on a GPU, perhaps
        log.warning("the %s does not rank the held-out picks: %s", who, error)


def slowest_ranking(night: Path) -> float:
    """Seconds that the slowest of a night's sitters so far took for it; 0 where there are no picks."""
    manifests = (json.loads(file.read_text()) for file in night.glob(f"{PICKS}/*/{MANIFEST}"))
    return max((seconds_of(manifest) for manifest in manifests), default=0.0)


def log_rankings(tracking: Tracking, night: Path, sitters: Iterable[str]) -> None:
    """The share that each ranks right, for MLflow, at the steps of the exam's figures."""
    found = ranking_accuracies(night)
    for step, who in enumerate(sitters):
        if who in found:
            tracking.log({"exam/picks/accuracy": found[who].accuracy}, step)


def _as_it_is(config: TrainerConfig) -> TrainerConfig:
    """A trainer that only reads: a whole checkpoint has no adapters, and is held against none."""
    grpo = config.grpo.model_copy(update={"kl_coefficient": 0.0})
    return config.model_copy(update={"lora": None, "grpo": grpo})
