"""The reward model's part in a night's rounds."""

import json
from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from conf.schema import NightConfig, TrainerConfig
from conf.sections.stages import Step
from flows.run.context import Night, log
from flows.run.history import seconds_of
from rewards.verifier import Problem
from tasks.evaluation.metrics import ranking_accuracies
from tasks.layout import ranking_path
from tasks.reward_model.rank import rank_picks
from tasks.rollouts.owner_prompts import owner_prompts
from tasks.rollouts.reward_scores import judge
from tasks.stage import MANIFEST, Artifact
from tasks.tables import HELD_OUT, read_table
from tasks.tracking import Tracking
from tasks.training.trainer_process import Predecessor
from tasks.workers import HoursOverError, WorkerDiedError

RANKED_EVERY = 5  # rounds, where the night has no quizzes


class LearnedReward:
    """A reward model that serves: what it adds to the arguments of the rounds' stages.

    `day`: the frozen journal. `reward_model`: the stage that fitted it. `base`: the checkpoint before the first round.
    `failed`: it could not judge what a round sampled, and has no part in the rounds after.
    """

    def __init__(
        self, night: Night, day: Artifact, reward_model: Artifact, base: Path, exam: Sequence[Problem]
    ) -> None:
        self.night, self.day, self.reward_model, self.base = night, day, reward_model, base
        self.exam_questions = tuple(sorted({problem.question for problem in exam}))
        self.failed = False

    @cached_property
    def trainer_config(self) -> TrainerConfig:
        """The rounds' configuration of the trainer: with a KL term to the checkpoint that their block began with."""
        config = self.night.config
        coefficient = max(config.grpo.kl_coefficient, config.learned_reward.kl_coefficient)
        grpo = config.grpo.model_copy(update={"kl_coefficient": coefficient})
        return config.trainer.model_copy(update={"grpo": grpo})

    @cached_property
    def owner_prompts(self) -> Artifact:
        """The owner's own prompts, found once a night."""
        config = self.night.config
        return self.night.run(
            owner_prompts,
            "owner_prompts",
            day=self.day,
            unseen_share=config.unseen_share,
            exam_questions=self.exam_questions,
            checkpoint=self.base,
            student=config.student,
            max_prompt_tokens=config.engine.max_model_len - config.grpo.max_completion_tokens,
        )

    def to_select(self) -> dict[str, Any]:
        """Further arguments of `select_prompts`."""
        if self.failed:
            return {}
        return {"owner": self.owner_prompts, "owner_share": self.night.config.learned_reward.owner_share}

    def to_score(self, place: str, rollouts: Artifact) -> dict[str, Any]:
        """Further arguments of `score`; the completions are judged for them.

        No night fails for it: where memory is short, none of them is judged, also when the night resumes.
        """
        if self.failed:
            return {}
        night, place = self.night, f"{place}/judge"
        inputs: dict[str, Any] = {
            "rollouts": rollouts,
            "reward_model": night.checkpoint(self.reward_model),
            "config": night.config.trainer,
        }
        night.rest_engine()
        self.failed = judge.committed(night.folder, place, **inputs, broke=True) is not None
        try:
            learned = night.run(judge, place, **inputs, broke=self.failed, trainer=night.trainer)
        except RuntimeError as error:
            self.failed = True
            learned = night.run(judge, place, **inputs, broke=True, trainer=night.trainer)
            why = " ".join(str(error).split())[:200]
            night.note(f"the reward model could not judge what was sampled, and was not used from then on: {why}")
        return {"learned": learned, "learned_reward": night.config.learned_reward}

    def is_ranked(self, block: Step, number: int, policy: Path) -> bool:
        """Whether a round's ranking is committed already."""
        place = ranking_path(block.rounds.start, number)
        return rank_picks.committed(self.night.folder, place, **self._to_rank(policy)) is not None

    def rank(self, block: Step, number: int, predecessor: Predecessor, policy: Path) -> Artifact:
        """How the policy ranks the held-out picks after a round; as the block begins, that is the round before."""
        self.night.rest_engine()
        return self.night.run(
            rank_picks,
            ranking_path(block.rounds.start, number),
            **self._to_rank(policy),
            predecessor=predecessor,
            trainer=self.night.trainer,
        )

    def _to_rank(self, policy: Path) -> dict[str, Any]:
        return {
            "reward_model": self.reward_model,
            "policy": policy.name,
            "tokenizer": self.base,
            "student": self.night.config.student,
            "config": self.trainer_config,
        }


def learned_reward(
    night: Night, day: Artifact, reward_model: Artifact, base: Path, exam: Sequence[Problem]
) -> LearnedReward | None:
    """The reward model's part in the rounds; None where it does not serve, or is given nothing to say."""
    uses = night.config.learned_reward
    if not reward_model.read_json("outcome.json")["serves"] or not (uses.owner_share or uses.tie_breaker):
        return None
    return LearnedReward(night, day, reward_model, base, exam)


def is_ranked(config: NightConfig, block: Step, number: int) -> bool:
    """Whether the held-out picks are ranked after a round: where the quizzes are, and as a block begins and ends."""
    edge = not block.rounds.start <= number < block.rounds.stop - 1
    return edge or number % (config.grpo.quiz_every_rounds or RANKED_EVERY) == 0


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
