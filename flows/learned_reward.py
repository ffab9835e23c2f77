"""The reward model's part in a night's rounds."""

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from conf.schema import NightConfig, TrainerConfig
from conf.stages import Step
from flows.night import Night
from rewards.verifier import Problem
from tasks.judge import judge
from tasks.learner import Predecessor
from tasks.owner_prompts import owner_prompts
from tasks.rank_picks import rank_picks
from tasks.rounds import ranking_place
from tasks.stage import Artifact

RANKED_EVERY = 5  # rounds, where the night has no quizzes


class LearnedReward:
    """A reward model that serves: what it adds to the arguments of the rounds' stages.

    `day`: the frozen journal. `reward_model`: the stage that fitted it. `base`: the checkpoint before the first round.
    `broke`: it could not judge what a round sampled, and has no part in what comes after.
    """

    def __init__(
        self, night: Night, day: Artifact, reward_model: Artifact, base: Path, exam: Sequence[Problem]
    ) -> None:
        self.night, self.day, self.reward_model, self.base = night, day, reward_model, base
        self.exam_questions = tuple(sorted({problem.question for problem in exam}))
        self.broke = False

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
        if self.broke:
            return {}
        return {"owner": self.owner_prompts, "owner_share": self.night.config.learned_reward.owner_share}

    def to_score(self, place: str, rollouts: Artifact) -> dict[str, Any]:
        """Further arguments of `score`; the completions are judged for them.

        No night fails for it: where memory is short, none of them is judged, also when the night resumes.
        """
        if self.broke:
            return {}
        night, place = self.night, f"{place}/judge"
        inputs: dict[str, Any] = {
            "rollouts": rollouts,
            "reward_model": night.checkpoint(self.reward_model),
            "config": night.config.trainer,
        }
        night.rest_engine()
        self.broke = judge.committed(night.folder, place, **inputs, broke=True) is not None
        try:
            learned = night.run(judge, place, **inputs, broke=self.broke, trainer=night.trainer)
        except RuntimeError as error:
            self.broke = True
            learned = night.run(judge, place, **inputs, broke=True, trainer=night.trainer)
            why = " ".join(str(error).split())[:200]
            night.note(f"the reward model could not judge what was sampled, and was not used from then on: {why}")
        return {"learned": learned, "learned_reward": night.config.learned_reward}

    def is_ranked(self, block: Step, number: int, policy: Path) -> bool:
        """Whether a round's ranking is committed already."""
        place = ranking_place(block.rounds.start, number)
        return rank_picks.committed(self.night.folder, place, **self._to_rank(policy)) is not None

    def rank(self, block: Step, number: int, predecessor: Predecessor, policy: Path) -> Artifact:
        """How the policy ranks the held-out picks after a round; as the block begins, that is the round before."""
        self.night.rest_engine()
        means = {"predecessor": predecessor, "trainer": self.night.trainer}
        return self.night.run(rank_picks, ranking_place(block.rounds.start, number), **self._to_rank(policy), **means)

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
