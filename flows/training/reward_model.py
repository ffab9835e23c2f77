"""How a night's rounds use the learned reward: the judge's if it proved itself on held-out picks, else the model's."""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from conf.schema import NightConfig, TrainerConfig
from conf.sections.lessons import EndpointConfig
from conf.sections.stages import Step
from conf.storage.layout import committed_json, ranking_path
from flows.run.context import Night, log
from rewards.data.benchmarks import plays_episodes
from tasks.journal.tables import HELD_OUT
from tasks.monitoring.incidents import ended_early
from tasks.monitoring.tracking import Tracking
from tasks.reward_model.owner_prompts import owner_prompts
from tasks.reward_model.rank import rank_picks
from tasks.reward_model.scoring import examine_judge, figures, rank_by_judge, score_by_reward_model
from tasks.stage import MANIFEST, Artifact, committed
from tasks.tables import read_table
from tasks.training.trainer_process import Predecessor
from tasks.workers.worker import HoursOverError, WorkerDiedError

KL_COEFFICIENT = 0.02  # minimum coefficient of the KL term while a learned reward is used
RANKED_EVERY = 5  # rounds, if the night has no quizzes between rounds
MOST_PICKS = 100  # held-out picks that a judge is tested on


@dataclass
class LearnedReward:
    """A night's learned reward, from a reward model or from a judge. Supplies arguments for the rounds' stages.

    `day`: the frozen journal. `reward_model`: the fitted reward model. `base`: the checkpoint before the first round.
    `judge`: the judge that scores, or None if the reward model does. `failed`: whether the reward model failed to score
    a round's completions. If so, later rounds do not use a learned reward.
    """

    night: Night
    day: Artifact
    reward_model: Artifact
    base: Path
    judge: EndpointConfig | None
    failed: bool = field(default=False, init=False)

    @cached_property
    def trainer_config(self) -> TrainerConfig:
        """The trainer's configuration for the rounds, with a KL term relative to the block's starting checkpoint."""
        config = self.night.config
        coefficient = max(config.grpo.kl_coefficient, KL_COEFFICIENT)
        grpo = config.grpo.model_copy(update={"kl_coefficient": coefficient})
        return config.trainer.model_copy(update={"grpo": grpo})

    @cached_property
    def owner_prompts(self) -> Artifact:
        """The owner's prompts, collected once per night."""
        return self.night.run(owner_prompts, "owner_prompts", day=self.day, checkpoint=self.base)

    def select_arguments(self) -> dict[str, Any]:
        """Return the extra arguments that make `select_prompts` draw the owner's prompts, too."""
        if self.failed:
            return {}
        return {"owner": self.owner_prompts, "owner_share": self.night.config.learned_reward.owner_share}

    def score_arguments(self, path: str, prompts: Artifact, rollouts: Artifact) -> dict[str, Any]:
        """Score the completions of a round or refill with the learned reward. Returns the extra arguments for `score`.

        `path`: the path of the round or refill. A failure never ends the night: completions that a judge does not rank
        get no learned reward. If memory is too short for the reward model, no completion gets one, even after a resume.
        """
        if self.failed:
            return {}
        config = self.night.config.learned_reward
        if self.judge is not None:
            asked: dict[str, Any] = {"prompts": prompts, "rollouts": rollouts, "endpoint": self.judge}
            learned = self.night.run(rank_by_judge, f"{path}/rank_by_judge", **asked)
        else:
            learned = self._scored(f"{path}/score_by_reward_model", prompts, rollouts)
        return {"learned": learned, "learned_reward": config}

    def _scored(self, path: str, prompts: Artifact, rollouts: Artifact) -> Artifact:
        night = self.night
        inputs: dict[str, Any] = {
            "prompts": prompts,
            "rollouts": rollouts,
            "reward_model": night.checkpoint(self.reward_model),
            "config": night.config.trainer,
        }
        self.failed = night.committed(score_by_reward_model, path, **inputs, failed=True) is not None
        try:
            return night.run(score_by_reward_model, path, **inputs, failed=self.failed)
        except RuntimeError as error:
            self.failed = True
            why = " ".join(str(error).split())[:200]
            night.note(f"the reward model failed on a round's completions, and was not used from then on: {why}")
            return night.run(score_by_reward_model, path, **inputs, failed=True)

    def rank(
        self, block: Step, number: int, predecessor: Predecessor, policy: Path, config: TrainerConfig
    ) -> Artifact | None:
        """Have the policy rank the held-out picks after a round of the block, or after the round before the block.

        `config`: that of the block's updates, so that the trainer stays loaded. Returns None if the night's learning
        ended before this ranking was made.
        """
        night, path = self.night, ranking_path(block.rounds.start, number)
        inputs: dict[str, Any] = {
            "reward_model": self.reward_model,
            "policy": policy.name,
            "tokenizer": self.base,
            "config": config,
        }
        if ended_early(night.folder) and night.committed(rank_picks, path, **inputs) is None:
            return None
        return night.run(rank_picks, path, **inputs, predecessor=predecessor)


def learned_reward(night: Night, day: Artifact, reward_model: Artifact, base: Path) -> LearnedReward | None:
    """Return the learned reward for the rounds, or None if it is not configured or has no usable source.

    It cannot judge episodes, so nights that play them have none. `day`: the frozen journal. `base`: the checkpoint
    before the first round.
    """
    config = night.config
    if not config.learned_reward.owner_share or plays_episodes(config.benchmarks):
        return None
    judge = config.judge.endpoint if config.judge else None
    if judge is not None:
        proof: dict[str, Any] = {"reward_model": reward_model, "picks": MOST_PICKS, "endpoint": judge}
        if not night.run(examine_judge, "examine_judge", **proof).read_json("outcome.json")["serves"]:
            log.warning("the judge %s does not serve: it did not prove itself on the held-out picks", judge.model)
            judge = None
    if judge is None and not reward_model.read_json("outcome.json")["serves"]:
        return None
    return LearnedReward(night, day, reward_model, base, judge)


def log_judge(tracking: Tracking, night: Path) -> None:
    """If the judge was examined, log its results on the held-out picks to MLflow."""
    if examined := committed(night / "examine_judge"):
        tracking.log(figures(examined.read_json("outcome.json")), 0)


def is_ranked(config: NightConfig, block: Step, number: int) -> bool:
    """Return whether the held-out picks are ranked after a round: when its block begins or ends, and with each quiz."""
    edge = not block.rounds.start <= number < block.rounds.stop - 1
    return edge or number % (config.grpo.quiz_every_rounds or RANKED_EVERY) == 0


PICKS = "picks"  # the folder of the rankings before and after the rounds


def rank_held_out(night: Night, reward_model: Artifact, name: str, checkpoint: Path) -> Artifact | None:
    """Have a checkpoint rank the answers of held-out picks by likelihood. Returns None if there are no held-out picks.

    `name`: champion, candidate or day. A failure never ends the night: if the trainer dies, or memory or time is short,
    the ranking is skipped and None is returned. It stays skipped once the night has decided without it.
    """
    if read_table(reward_model.folder / "held_out.parquet", HELD_OUT).empty:
        return None
    if committed(night.folder / "decide") and committed(night.folder / PICKS / name) is None:
        return None
    # the trainer reads a full checkpoint, without adapters or a KL term
    grpo = night.config.trainer.grpo.model_copy(update={"kl_coefficient": 0.0})
    reading = night.config.trainer.model_copy(update={"lora": None, "grpo": grpo})
    try:
        return night.run(
            rank_picks,
            f"{PICKS}/{name}",
            reward_model=reward_model,
            policy=checkpoint.name,
            tokenizer=checkpoint,
            config=reading,
            predecessor=None,
        )
    except (HoursOverError, WorkerDiedError, RuntimeError) as error:  # e.g. out of GPU memory
        log.warning("the %s does not rank the held-out picks: %s", name, error)
        return None


def slowest_ranking(night: Path) -> float:
    """Return how many seconds the slowest ranking of a night has taken, or 0 if there is none."""
    manifests = (json.loads(file.read_text()) for file in night.glob(f"{PICKS}/*/{MANIFEST}"))
    return max((manifest["seconds"] for manifest in manifests), default=0.0)


def log_rankings(tracking: Tracking, night: Path, models: Iterable[str]) -> None:
    """Log each model's ranking accuracy on the held-out picks, at the same MLflow steps as its exam metrics."""
    for step, model in enumerate(models):
        if ranking := committed_json(night / PICKS / model, "ranking.json"):
            tracking.log({"exam/picks/accuracy": ranking["accuracy"]}, step)
