"""Chooses the source of the learned reward: the judge if it proved itself on held-out picks, else the reward model."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from flows.run.budget import end_of_asking
from flows.run.context import Night, log
from flows.training.reward_model import LearnedReward
from rewards.data.benchmarks import plays_episodes
from rewards.verifier import Problem
from tasks.monitoring.tracking import Tracking
from tasks.reward_model.judge_stages import examine_judge, figures
from tasks.stage import Artifact, committed

MOST_PICKS = 100  # held-out picks that a judge is tested on


def learned_reward(
    night: Night, day: Artifact, reward_model: Artifact, base: Path, exam: Sequence[Problem]
) -> LearnedReward | None:
    """Return the learned reward for the rounds, or None if it is not configured or has no usable source.

    It cannot judge episodes, so nights that play them have none.
    `day`: the frozen journal. `base`: the checkpoint before the first round. `exam`: the exam's problems.
    """
    config = night.config
    if not config.learned_reward.owner_share or plays_episodes(config.benchmarks):
        return None
    if config.judge is not None:
        proof: dict[str, Any] = {"reward_model": reward_model, "picks": MOST_PICKS}
        examined = night.run(examine_judge, "examine_judge", **proof, **judge_arguments(night))
        if examined.read_json("outcome.json")["serves"]:
            return LearnedReward(night, day, reward_model, base, exam, lambda: judge_arguments(night))
        log.warning(
            "the judge %s does not serve: it did not prove itself on the held-out picks", config.judge.endpoint.model
        )
    if not reward_model.read_json("outcome.json")["serves"]:
        return None
    return LearnedReward(night, day, reward_model, base, exam)


def judge_arguments(night: Night) -> dict[str, Any]:
    """Return the arguments that all of the judge's stages take."""
    assert night.config.judge is not None
    until = end_of_asking(night.hours)
    return {"endpoint": night.config.judge.endpoint, "date": night.date, "cache": night.home.teacher, "until": until}


def log_judge(tracking: Tracking, night: Path) -> None:
    """If the judge was examined, log its results on the held-out picks to MLflow."""
    if examined := committed(night / "examine_judge"):
        tracking.log(figures(examined.read_json("outcome.json")), 0)
