"""A round's groups of answers: select_prompts → sample → score → credit, repeated for each refill."""

import random
from pathlib import Path

from conf.sections.stages import Step
from conf.storage.layout import committed_rounds, round_path
from conf.storage.layout import passes as passes_of
from flows.run.context import Night, log
from flows.run.history import finished
from flows.training.reward_model import LearnedReward
from rewards.data.benchmarks import plays_episodes
from tasks.rollouts import verdicts
from tasks.rollouts.advantages import credit
from tasks.rollouts.play import collect, play_turns
from tasks.rollouts.sample import sample
from tasks.rollouts.score import SOLVE_RATE_DECAY, score
from tasks.rollouts.select_prompts import select_prompts
from tasks.rollouts.self_play import admit, ask_for_problems, credit_questions
from tasks.rollouts.teacher_advantages import add_teacher
from tasks.rollouts.verified import Player
from tasks.stage import Artifact, committed, run_name
from tasks.training.metrics import SampledBatch


class GroupSampler:
    """Samples and scores answers and computes their advantages. Solve rates carry over to later rounds and nights.

    `teacher`: the folder of the model that scores the tokens of GRPO rounds (on-policy distillation), or None.
    """

    def __init__(self, night: Night, teacher: Path | None) -> None:
        self.night, self.teacher = night, teacher
        self.solve_rates = _last_solve_rates(night)
        self.plays = plays_episodes(night.config.benchmarks)
        self.own_problems: list[Artifact] = []  # from tonight's self-play rounds
        self.block: Step  # the current round's block
        self.base: Path  # the checkpoint that the block began with
        self.player: Player  # the policy, which samples
        self.learned: LearnedReward | None  # the current round's learned reward, or None

    def sample(
        self, number: int, block: Step, base: Path, policy: Path, learned: LearnedReward | None
    ) -> list[SampledBatch]:
        """Sample the round's groups. Up to `refills` further passes then make up for the groups without signal.

        This is dynamic sampling (DAPO, arXiv 2503.14476, section 3.2) with a limited number of passes. Each refill
        draws one problem for every group without signal in the previous pass, using solve rates that include that pass.
        `base`: the checkpoint that the block began with. Its tokenizer renders the prompts. `learned`: the round's
        learned reward, or None if it has none.
        """
        config = self.night.config
        self.block, self.base, self.learned = block, base, learned
        self.player = self.night.player(policy, config.grpo.max_completion_tokens, config.grpo.temperature)
        if block.kind == "self_play":
            return self._self_play(number)
        passes: list[SampledBatch] = []
        missing = config.grpo.prompts_per_round
        for refill in range(config.grpo.refills + 1):
            path = f"{round_path(number)}/refill-{refill}" if refill else round_path(number)
            seed = f"{config.seed} {self.night.date} round {number}" + f" refill {refill}" * (refill > 0)
            drawn = tuple(one.prompts for one in passes)
            prompts = self._select(path, seed, missing, drawn)
            if not prompts.read_json("selection.json")["drawn"]:
                break  # the benchmarks have no problems left to draw
            passes.append(self._pass(path, seed, prompts, is_first=not passes))
            signal = passes[-1].advantages.read_json("signal.json")
            missing = signal["groups"] - signal["with_signal"]
            if not missing:
                break
        return passes

    def _self_play(self, number: int) -> list[SampledBatch]:
        """Have the student write the round's problems. If too few are admitted, draw the rest from the benchmarks."""
        night, config, path = self.night, self.night.config, round_path(number)
        seed = f"{config.seed} {night.date} round {number}"
        requests = night.run(ask_for_problems, f"{path}/ask", checkpoint=self.base, config=config.self_play, seed=seed)
        proposals = self._sample(f"{path}/propose", f"{seed} propose", requests, size=1)
        prompts = night.run(
            admit,
            f"{path}/select_prompts",
            requests=requests,
            proposals=proposals,
            before=tuple(self.own_problems),
            checkpoint=self.base,
            count=config.grpo.prompts_per_round,
        )
        self.own_problems.append(prompts)
        passes: list[SampledBatch] = []
        if admitted := prompts.read_json("selection.json")["drawn"]:
            passes.append(self._pass(path, seed, prompts, is_first=True))
        if missing := config.grpo.prompts_per_round - admitted:
            path, seed = f"{path}/refill-1", f"{seed} refill 1"
            # without any problem, this ends the night, as in other rounds
            others = self._select(path, seed, missing, (requests, prompts) if admitted else ())
            if others.read_json("selection.json")["drawn"]:
                passes.append(self._pass(path, seed, others, is_first=not passes))
        if (answers := passes[0]).scores and admitted and config.self_play.train == "both":
            questions = night.run(
                credit_questions,
                f"{round_path(number)}/credit_questions",
                prompts=prompts,
                proposals=proposals,
                answers=answers.rollouts,
                scores=answers.scores,
                credited=answers.advantages,
            )
            passes.append(SampledBatch(requests, proposals, None, questions))
        return passes

    def _pass(self, path: str, seed: str, prompts: Artifact, *, is_first: bool) -> SampledBatch:
        """Sample, score and credit answers to the prompts, and update the solve rates with their scores."""
        night, config = self.night, self.night.config
        if self.plays:
            rollouts = self._play(path, seed, prompts)
        else:
            rollouts = self._sample(f"{path}/sample", seed, prompts, config.grpo.group_size)
        scores = night.run(
            score,
            f"{path}/score",
            prompts=prompts,
            rollouts=rollouts,
            solve_rates=self.solve_rates,
            decay=SOLVE_RATE_DECAY if is_first else 1.0,  # no decay within a round
            night=night.date,
            **(self.learned.score_arguments(path, prompts, rollouts) if self.learned else {}),
        )
        log.info("%s: %s", run_name(path), verdicts.describe(scores.read_json("verdicts.json")))
        self.solve_rates = scores
        advantages = night.run(credit, f"{path}/credit", scores=scores, rollouts=rollouts)
        if self.teacher and self.block.kind == "grpo":
            advantages = night.run(
                add_teacher,
                f"{path}/teacher",
                rollouts=rollouts,
                advantages=advantages,
                config=config.on_policy,
                teacher=self.teacher,
            )
        return SampledBatch(prompts, rollouts, scores, advantages)

    def _select(self, path: str, seed: str, count: int, drawn: tuple[Artifact, ...]) -> Artifact:
        return self.night.run(
            select_prompts,
            f"{path}/select_prompts",
            checkpoint=self.base,
            solve_rates=self.solve_rates,
            seed=seed,
            count=count,
            drawn=drawn,
            **(self.learned.select_arguments() if self.learned else {}),
        )

    def _sample(self, path: str, seed: str, prompts: Artifact, size: int) -> Artifact:
        number = random.Random(seed).getrandbits(31)
        return self.night.run(sample, path, prompts=prompts, player=self.player, size=size, seed=number)

    def _play(self, path: str, seed: str, prompts: Artifact) -> Artifact:
        """Play the round's episodes, a few turns per stage."""
        night, parts = self.night, list[Artifact]()
        while not parts or parts[-1].figure("live"):
            part = night.run(
                play_turns,
                f"{path}/play-{len(parts) + 1}",
                prompts=prompts,
                before=parts[-1] if parts else None,
                player=self.player,
                size=night.config.grpo.group_size,
                seed=f"{seed} part {len(parts)}",
            )
            parts.append(part)
        return night.run(collect, f"{path}/sample", parts=tuple(parts))


def _last_solve_rates(night: Night) -> Artifact | None:
    """Return the last `score` stage of the newest finished night with rounds, or None. The stage has solve rates."""
    earlier = finished(night.home.nights, night.config.name, night.date)
    rounds = next(filter(None, map(committed_rounds, earlier)), [])
    scores = (committed(folder / "score") for folder in reversed(passes_of(rounds[-1]))) if rounds else ()
    return next(filter(None, scores), None)  # a refill that drew nothing has none
