"""The passes of a round: select_prompts → sample → score → credit, and refills of the same."""

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from conf.sections.stages import Step
from flows.run.context import Night, log
from flows.training.lost_round import LostRoundError
from flows.training.reward_model import LearnedReward
from rewards.verifier import Problem
from tasks.layout import place_of
from tasks.rollouts import verdicts
from tasks.rollouts.advantages import credit
from tasks.rollouts.sample import sample
from tasks.rollouts.score import score
from tasks.rollouts.select_prompts import select_prompts
from tasks.rollouts.teacher_advantages import credit_by_teacher
from tasks.stage import Artifact, run_name


class Pass(NamedTuple):
    """A round's prompts, or those of one of its refills, and what came of them."""

    prompts: Artifact
    rollouts: Artifact
    scores: Artifact
    advantages: Artifact


class Passes:
    """Samples, scores and credits the rounds of a night; the solve rates go from one to the next.

    `teacher`: the folder of the model that credits on-policy distillation; None where no round is of that kind.
    """

    def __init__(self, night: Night, exam: Sequence[Problem], teacher: Path | None) -> None:
        self.night, self.teacher = night, teacher
        self.excluded = tuple(sorted({text for problem in exam for text in (problem.problem_id, problem.question)}))
        self.solve_rates: Artifact | None = None

    def of_round(self, number: int, block: Step, base: Path, policy: Path, learned: LearnedReward | None) -> list[Pass]:
        """The round's prompts, and as often as `refills` allows others in place of the groups without signal.

        Dynamic sampling (DAPO, arXiv 2503.14476, section 3.2) with a limit: each refill draws as many problems as the
        pass before had groups without signal, by solve rates that know of that pass. `base`: the checkpoint that
        the block began with, whose tokenizer renders the prompts. `learned`: the reward model's part in the round, if
        it has one. Raises LostRoundError where the policy is needed, and gone.
        """
        grpo, place = self.night.config.grpo, place_of(number)
        passes: list[Pass] = []
        lacking = grpo.prompts_per_round
        for refill in range(grpo.refills + 1):
            own = f"{place}/refill-{refill}" if refill else place
            seed = f"{self.night.config.seed} {self.night.date} round {number}" + f" refill {refill}" * (refill > 0)
            prompts = self._select(own, seed, base, lacking, passes, learned)
            if not prompts.read_json("selection.json")["drawn"]:
                break  # the benchmarks have no other problems
            rollouts = self._sample(number, own, seed, prompts, policy)
            scores = self._score(own, prompts, rollouts, passes, learned)
            passes.append(Pass(prompts, rollouts, scores, self._credit(own, block, rollouts, scores)))
            signal = passes[-1].advantages.read_json("signal.json")
            lacking = signal["groups"] - signal["with_signal"]
            if not lacking:
                break
        self.solve_rates = passes[-1].scores
        return passes

    def _select(
        self,
        place: str,
        seed: str,
        base: Path,
        count: int,
        passes: Sequence[Pass],
        learned: LearnedReward | None,
    ) -> Artifact:
        config = self.night.config
        return self.night.run(
            select_prompts,
            f"{place}/select_prompts",
            sources=config.benchmarks,
            grpo=config.grpo,
            student=config.student,
            checkpoint=base,
            solve_rates=passes[-1].scores if passes else self.solve_rates,
            seed=seed,
            excluded=self.excluded,
            max_prompt_tokens=config.engine.max_model_len - config.grpo.max_completion_tokens,
            count=count,
            drawn=tuple(one.prompts for one in passes),
            **(learned.to_select() if learned else {}),
        )

    def _sample(self, number: int, place: str, seed: str, prompts: Artifact, policy: Path) -> Artifact:
        config = self.night.config
        inputs: dict[str, Any] = {
            "prompts": prompts,
            "checkpoint": policy,
            "grpo": config.grpo,
            "config": config.sampler,
            "trust_remote_code": config.student.trust_remote_code,
            "seed": random.Random(seed).getrandbits(31),
        }
        if not policy.is_dir() and sample.committed(self.night.folder, f"{place}/sample", **inputs) is None:
            raise LostRoundError(number - 1, "its checkpoint was pruned, and is needed to sample again")
        return self.night.run(sample, f"{place}/sample", **inputs, engine=self.night.engine)

    def _score(
        self,
        place: str,
        prompts: Artifact,
        rollouts: Artifact,
        passes: Sequence[Pass],
        learned: LearnedReward | None,
    ) -> Artifact:
        config = self.night.config
        scores = self.night.run(
            score,
            f"{place}/score",
            prompts=prompts,
            rollouts=rollouts,
            sources=config.benchmarks,
            grpo=config.grpo,
            reward=config.reward,
            sandbox=config.sandbox,
            solve_rates=passes[-1].scores if passes else self.solve_rates,
            decay=1.0 if passes else config.grpo.solve_rate_decay,  # within a round nothing is old
            night=self.night.date,
            **(learned.to_score(place, rollouts) if learned else {}),
        )
        log.info("%s: %s", run_name(place), verdicts.told(scores.read_json("verdicts.json")))
        return scores

    def _credit(self, place: str, block: Step, rollouts: Artifact, scores: Artifact) -> Artifact:
        """Advantages by the verifier's rewards, or, in on-policy distillation, by the teacher."""
        night, config = self.night, self.night.config
        if block.kind == "grpo":
            return night.run(credit, f"{place}/credit", scores=scores, rollouts=rollouts, grpo=config.grpo)
        inputs: dict[str, Any] = {"rollouts": rollouts, "config": config.on_policy, "trainer_config": config.trainer}
        if credit_by_teacher.committed(night.folder, f"{place}/credit", **inputs) is None:
            night.rest_engine()
        return night.run(credit_by_teacher, f"{place}/credit", **inputs, teacher=self.teacher, trainer=night.trainer)
