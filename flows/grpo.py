"""Blocks of rounds, of GRPO or of on-policy distillation: passes → update → checkpoint, as often as they fit."""

import shutil
import time
from collections.abc import Sequence, Set
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

from prefect.futures import PrefectFuture

from conf.schema import TrainerConfig
from conf.sections.stages import Step
from flows.run.budget import LATE, Allowance
from flows.run.context import Night, log
from flows.training.lost_round import LostRoundError, require_outcome
from flows.training.monitor import NightWatch
from flows.training.reward_model import LearnedReward, is_ranked, slowest_ranking
from flows.training.rollouts import Pass, Passes
from flows.training.validation import hold_quiz, is_quizzed, quiz_accuracy
from rewards.verifier import Problem
from tasks.incidents import end_early, ended_early
from tasks.layout import is_committed, place_of
from tasks.stage import Artifact, uncommit
from tasks.tracking import Tracking
from tasks.training.metrics import round_figures
from tasks.training.trainer_process import Predecessor
from tasks.training.update import UpdateChangedError, UpdateMeans, checkpoint, merge, update
from tasks.workers import HoursOverError, WorkerDiedError


class Rounds:
    """The rounds of one night, numbered on through its blocks, and what goes from one to the next.

    `exam_seconds`: what the exam takes that comes after them. `learned`: the reward model's part, where one serves.
    `teacher`: of on-policy distillation. `over`: no other block, and no other lesson, is begun: the night's hours are,
    or an alarm is severe.
    """

    def __init__(
        self,
        night: Night,
        exam: Sequence[Problem],
        tracking: Tracking,
        registered: Set[str],
        exam_seconds: float = 0.0,
        learned: LearnedReward | None = None,
        teacher: Path | None = None,
    ) -> None:
        self.night, self.tracking, self.registered = night, tracking, registered
        self.passes = Passes(night, exam, teacher)
        self.block: Step  # the one under way,
        self.base: Path  # the checkpoint that it began with,
        self.current: Path  # and the newest
        self.saving: Future[None] | None = None
        self.books = ThreadPoolExecutor(1, thread_name_prefix="books")
        self.policies: list[Path] = []  # of all rounds so far
        self.joints: set[Path] = set()  # where blocks began and ended: what lessons between them are made from again
        self.over = False
        self.watch = NightWatch(night, tracking)
        self.learned = learned
        self.own: set[int] = set()  # the rounds that this start of the night has taken itself
        self.lap = time.perf_counter()  # when the round before was over
        after = exam_seconds, slowest_ranking(night.folder)
        self.allowance = Allowance(night.hours, night.config, night.home.nights, *after)

    def run(self, block: Step, base: Path) -> Path:
        """The rounds of a block from a checkpoint on, with an optimizer of their own: all, or those up to a severe
        alarm, or as many as fit into the night's hours and as the children live through.

        Returns the checkpoint after the last one, its adapter merged; `base` where there was none. Raises
        LostRoundError where what an earlier start of the night left of a round was damaged since.
        """
        night, before = self.night, ended_early(self.night.folder)
        self.block, self.base, self.current = block, base, base
        self.joints.add(base)
        self.lap = time.perf_counter()
        night.spare(self.allowance.after)
        try:
            if block.rounds:
                self._rank(block.rounds.start - 1)
            for number in block.rounds:
                if before and number > before.rounds:
                    break
                if not is_committed(self.night.round(number)):  # one that is costs nothing
                    self.allowance.require(number, is_quizzed(night.config, number))
                self._round(number)
                if is_quizzed(night.config, number):
                    self._quiz(number)
                self._rank(number)
                if self.watch.ends_learning(self._giving_way(), self._state(number - 1)):
                    self.over = True
                    break
            night.spare(-LATE)
            self._finish_saving()
        except (HoursOverError, WorkerDiedError) as error:
            night.spare(-LATE)
            self._end_early(error)
        self.joints.add(self.current)
        return self._merged() if night.config.lora is not None and self.current != base else self.current

    def take_back(self, lost: LostRoundError | UpdateChangedError) -> None:
        """Forgets all rounds, and uncommits the lost one: gone through again, the others are still there."""
        log.warning("%s", lost)
        self._finish_saving()
        number = lost.number if isinstance(lost, LostRoundError) else len(self.policies)
        uncommit(self.night.round(number) / "checkpoint")
        self.passes.solve_rates, self.over = None, False
        self.policies.clear()
        self.joints.clear()
        self.watch.figures.clear()
        if self.learned:
            self.learned.broke = False

    def require_whole(self, policy: Path, state: Path | None = None) -> None:
        """Raises LostRoundError where `policy` is the last round's, and an earlier start of the night left it, and it,
        or its trainer state, was damaged since.
        """
        number = len(self.policies)
        if number and policy == self.policies[-1] and number not in self.own:
            require_outcome(number, policy, state)

    def _end_early(self, error: HoursOverError | WorkerDiedError) -> None:
        """The rounds that are committed count. What another one has stays in its folder, and leads to nothing."""
        with suppress(HoursOverError, WorkerDiedError):
            self._finish_saving()
        while self.policies and not is_committed(self.night.round(len(self.policies))):
            self.policies.pop()
        del self.watch.figures[len(self.policies) :]
        self.current = self.policies[-1] if len(self.policies) >= self.block.rounds.start else self.base
        self.end(self.block.number, error)

    def end(self, steps: int, error: Exception) -> None:
        """Ends the night's learning for good, with the rounds that there are and so many steps begun."""
        self.over = True
        done = len(self.policies)
        why = f"The night ended its rounds after {done} of {self.night.config.rounds}: {error}."
        end_early(self.night.folder, done, why, steps)

    def _merged(self) -> Path:
        """The last round's adapter, merged into its base. Raises LostRoundError where neither is whole any more."""
        night = self.night
        if not night.has(self.block.place):
            self.require_whole(self.current)
        return night.made(
            merge,
            self.block.place,
            adapter=self.current,
            trust_remote_code=night.config.student.trust_remote_code,
            checkpoints=night.home.checkpoints,
            trainer=night.trainer,
        )

    def _round(self, number: int) -> None:
        whole = not self.night.round(number).exists()  # no part is from before an interruption
        if not is_committed(self.night.round(number)):
            self.require_whole(self.current, self._state_before(number))
        self._learn(number, self.passes.of_round(number, self.block, self.base, self.current, self._learned), whole)

    def _learn(self, number: int, passes: Sequence[Pass], whole: bool) -> None:
        """The update, unless its outcome is committed; its state is written while the next round samples."""
        night, place, predecessor = self.night, place_of(number), self.current.name
        config = self._trainer_config
        prompts, rollouts, scores, advantages = zip(*passes, strict=True)
        inputs: dict[str, Any] = {
            "prompts": prompts,
            "rollouts": rollouts,
            "scores": scores,
            "advantages": advantages,
            "config": config,
            "predecessor": predecessor,
        }
        known = checkpoint.committed(night.folder, f"{place}/checkpoint", **inputs)
        if known is None:
            self._finish_saving()
            state = self._state_before(number)
            if state is not None and not state.is_dir():
                raise LostRoundError(number - 1, "its state was pruned, and is needed to learn again")
            base = Predecessor(self.base, predecessor, state)
            means = UpdateMeans(base, night.home.checkpoints, night.trainer, self._retired(number))
            night.rest_engine()
            label, started = f"round {number} · update", time.perf_counter()
            night.tell(label, None)
            updated = update(label, rollouts, advantages, config, means)
            night.tell(label, time.perf_counter() - started)
            self._go_on_from(updated.checkpoint)
            self.own.add(number)
            seconds = self._lap()
            if whole:
                self.allowance.rounds.append(seconds)
            saving = checkpoint.submit(
                night.folder,
                f"{place}/checkpoint",
                **inputs,
                updated=updated,
                state=self._state(number),
                means=means,
                seconds_round=seconds if whole else None,
            )
            self.saving = self.books.submit(self._saved, number, saving)
            figures = round_figures(prompts, rollouts, scores, advantages, updated.metrics)
            self.watch.figures.append(figures | ({"seconds_round": seconds} if whole else {}))
        else:
            self._go_on_from(night.checkpoint(known))
            figures = self._track(number, known)
            self.watch.figures.append(figures)
            if "seconds_round" in figures:
                self.allowance.rounds.append(figures["seconds_round"])
            self._lap()

    def _go_on_from(self, policy: Path) -> None:
        self.current = policy
        self.policies.append(policy)

    def _lap(self) -> float:
        """Seconds since the round before was over. What comes after, the next round's begin included, is the next's."""
        now = time.perf_counter()
        seconds, self.lap = now - self.lap, now
        return seconds

    def _saved(self, number: int, future: PrefectFuture[Artifact]) -> None:
        """Once an update is durable, tells MLflow; beside the next round."""
        self._track(number, future.result())

    def _finish_saving(self) -> None:
        """Waits until the last update is durable. Raises what its saving raised."""
        saving, self.saving = self.saving, None
        if saving is not None:
            saving.result()

    def _track(self, number: int, artifact: Artifact) -> dict[str, float]:
        figures: dict[str, float] = artifact.read_json("metrics.json")
        self.tracking.log_round(number, figures)
        return figures

    def retire(self, keep: Set[Path]) -> None:
        """Removes the rounds' checkpoints, except those to keep and those that the registry knows."""
        for policy in self._passed(keep):
            shutil.rmtree(policy, ignore_errors=True)

    def _passed(self, keep: Set[Path]) -> list[Path]:
        return [policy for policy in self.policies if policy not in keep and policy.name not in self.registered]

    def _retired(self, number: int) -> tuple[list[Path], list[Path]]:
        """Checkpoints and trainer states that go when a round's are written: its predecessor's is durable by then."""
        states = [self._state(old) for old in range(1, number - 1)]
        return self._passed({*self.joints, *self.policies[-1:]}), [state for state in states if state.exists()]

    def _quiz(self, number: int) -> None:
        started = time.perf_counter()
        if (found := hold_quiz(self.night, number, self.current, self.passes.excluded)) is None:
            return
        if (accuracy := quiz_accuracy(found)) is not None:
            self.tracking.log({"quiz/accuracy": accuracy}, number)
        self.watch.take_quiz(number, found)
        self.allowance.quizzes.append(found.seconds)
        self.lap += time.perf_counter() - started  # a quiz is no part of a round

    def _rank(self, number: int) -> None:
        """How the student ranks the owner's held-out picks now, while a learned reward is in use; see `is_ranked`."""
        if (learned := self._learned) is None or not is_ranked(self.night.config, self.block, number):
            return
        started, state = time.perf_counter(), self._state_before(number + 1)
        self._finish_saving()
        if not learned.is_ranked(self.block, number, self.current):
            if ended_early(self.night.folder):  # no round comes any more that it could be for
                return
            self.require_whole(self.current, state)
        found = learned.rank(self.block, number, Predecessor(self.base, self.current.name, state), self.current)
        self.watch.take_ranking(self.block.rounds.start, number, found)
        accuracy = found.read_json("ranking.json")["accuracy"]
        if accuracy is not None:
            self.tracking.log({"learned_reward/ranking_accuracy": accuracy}, number)
        if number in self.block.rounds and self.allowance.quizzes:  # it comes with them
            self.allowance.quizzes[-1] += found.seconds
        self.lap += time.perf_counter() - started  # as a quiz, it is no part of a round

    @property
    def _learned(self) -> LearnedReward | None:
        """The learned reward's part now: where a teacher leads, or once it was hacked, or broke, it has none."""
        if self.learned is None or self.learned.broke or self.block.kind != "grpo":
            return None
        return None if self.watch.hacked else self.learned

    @property
    def _trainer_config(self) -> TrainerConfig:
        """The trainer's configuration in this block: where a teacher leads, nothing holds the student back."""
        config = self.night.config
        if self.block.kind == "grpo":
            return self.learned.trainer_config if self.learned else config.trainer
        return config.trainer.model_copy(update={"grpo": config.grpo.model_copy(update={"kl_coefficient": 0.0})})

    def _giving_way(self) -> list[Path]:
        """The rounds' checkpoints that others take the place of, the newest last."""
        return [*(policy for policy in self.policies[:-1] if policy not in self.joints), self.policies[-1]]

    def _state_before(self, number: int) -> Path | None:
        """The trainer state that a round goes on from; a block's first has none."""
        return self._state(number - 1) if number > self.block.rounds.start else None

    def _state(self, number: int) -> Path:
        return self.night.folder / "state" / place_of(number)
