"""The learned reward of a night's rounds: a judge's where one serves, else the reward model's."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from flows.run.budget import end_of_asking
from flows.run.context import Night, log
from flows.run.history import last_finished
from flows.training.reward_model import LearnedReward
from rewards.verifier import Problem
from tasks.judge.examine_judge import examine_judge, figures
from tasks.judge.rank_by_judge import rank_by_judge
from tasks.stage import Artifact, committed
from tasks.tracking import Tracking


class JudgedReward(LearnedReward):
    """A judge that serves in place of a reward model, under the same KL term and alarm."""

    relative = True

    def score_arguments(self, path: str, prompts: Artifact, rollouts: Artifact) -> dict[str, Any]:
        """Let the judge rank the completions of `path`, a round or refill. Returns the further arguments of `score`.

        No night fails for it: what it does not rank has no learned reward.
        """
        config = self.night.config
        judged = self.night.run(
            rank_by_judge,
            f"{path}/rank_by_judge",
            prompts=prompts,
            rollouts=rollouts,
            config=config.judge,
            ties=config.learned_reward.tie_breaker > 0,
            **_limits(self.night),
        )
        return {"learned": judged, "learned_reward": config.learned_reward}


def learned_reward(
    night: Night, day: Artifact, reward_model: Artifact, base: Path, exam: Sequence[Problem]
) -> LearnedReward | None:
    """Return the learned reward's part in the rounds; None where nothing serves or it is not used.

    `day`: the frozen journal. `base`: the checkpoint before the first round.
    """
    config = night.config
    if not (config.learned_reward.owner_share or config.learned_reward.tie_breaker):
        return None
    if config.judge is not None:
        examined = night.run(
            examine_judge, "examine_judge", reward_model=reward_model, config=config.judge, **_limits(night)
        )
        if examined.read_json("outcome.json")["serves"]:
            return JudgedReward(night, day, reward_model, base, exam)
        log.warning("the judge %s does not serve: it did not prove itself on the held-out picks", config.judge.model)
    if not reward_model.read_json("outcome.json")["serves"]:
        return None
    return LearnedReward(night, day, reward_model, base, exam)


def log_judge(tracking: Tracking, night: Path) -> None:
    """Log how the judge did on the held-out picks, where there is one."""
    if examined := committed(night / "examine_judge"):
        tracking.log(figures(examined.read_json("outcome.json")), 0)


def _limits(night: Night) -> dict[str, Any]:
    before = last_finished(night.home.nights, night.config.name)
    until = end_of_asking(night.hours, night.config, night.folder, before)
    return {"date": night.date, "cache": night.home.teacher, "until": until}
