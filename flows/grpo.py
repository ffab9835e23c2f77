"""Runs blocks of rounds of GRPO or self-play.

One round: select_prompts → sample → score → credit (these four again for each refill) → update → checkpoint.
"""

import json
import time
from collections.abc import Mapping, Set
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from contextvars import copy_context
from functools import partial
from pathlib import Path
from typing import Any

from conf.schema import TrainerConfig
from conf.sections.stages import Step
from conf.storage.durable import make_folder, read_json, write_atomically
from conf.storage.home import NightError
from conf.storage.layout import PACE_FOLDER, is_committed, round_path
from conf.storage.layout import passes as passes_of
from flows.run.budget import LATE, Allowance, Division, seconds_answering
from flows.run.context import CHANGED, Night
from flows.training.monitor import Monitor
from flows.training.quizzes import is_quizzed, run_quiz
from flows.training.retention import Retention
from flows.training.reward_model import LearnedReward, is_ranked, slowest_ranking
from flows.training.rollouts import GroupSampler
from models.hf.checkpoint import verify
from tasks.monitoring.incidents import end_early, ended_early
from tasks.monitoring.tracking import Tracking
from tasks.stage import Artifact, committed
from tasks.training.metrics import round_metrics
from tasks.training.trainer_process import Predecessor, Updated
from tasks.training.update import UpdateResources, checkpoint, update
from tasks.workers.worker import HoursOverError, WorkerDiedError


class Rounds:
    """Runs a night's rounds, numbered across all its blocks, and holds the state that they share.

    `registered`: digests of registered checkpoints. `division`: how the night divides its hours. `quiz`, `latest`: the
    quizzes before and after the lessons. `learned`: the learned reward, or None. `teacher`: the folder of the teacher
    for on-policy distillation. `over`: True once no further block or lesson may begin, because time ran out, a child
    process died or a severe alarm was raised.
    """

    def __init__(
        self,
        night: Night,
        tracking: Tracking,
        registered: Set[str],
        division: Division,
        quiz: Artifact | None = None,
        latest: Artifact | None = None,
        learned: LearnedReward | None = None,
        teacher: Path | None = None,
    ) -> None:
        self.night, self.tracking, self.learned = night, tracking, learned
        self.sampler = GroupSampler(night, teacher)
        self.monitor = Monitor(night, tracking, relative=learned is not None and learned.judge is not None)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="saver")
        self._saving: Future[None] | None = None  # of the round before
        self.retention = Retention(night.folder / "state", registered)
        self.allowance = Allowance(
            *(night.hours, night.config, division),
            quiz=seconds_answering(quiz),
            latest=seconds_answering(latest or quiz),
            ranking=slowest_ranking(night.folder),
        )
        self.block: Step  # the current block
        self.base: Path  # the checkpoint that the block began with
        self.policy: Path  # the newest checkpoint
        self.over = False
        self.verified: set[Path] = set()  # checkpoints made or verified since the night last started
        self.round_began = time.perf_counter()

    def run(self, block: Step, base: Path) -> Path:
        """Run a block's rounds until all are done, time runs out, a child process dies, or a severe alarm is raised.

        Returns the last round's checkpoint (merged, if the night merges adapters), or `base` if no round was run.
        """
        night, early = self.night, ended_early(self.night.folder)
        self.block, self.base, self.policy = block, base, base
        self.round_began = time.perf_counter()
        night.limit_workers(before_end=self.allowance.after)
        try:
            if block.rounds:
                self._rank_picks(block.rounds.start - 1)
            for number in block.rounds:
                if early and number > early.rounds:
                    break
                if not is_committed(night.round_folder(number)):
                    self.allowance.require(number, is_quizzed(night.config, number))
                served = [self.learned.reward_model] if self.learned else []
                night.edges.run_nested(
                    block.kind, round_path(number), partial(self._round, number), self.policy, served
                )
                if self.monitor.ends_learning(self._superseded(), self.retention.state(number - 1)):
                    self.over = True
                    break
            night.limit_workers(before_end=-LATE)
            self._finish_saving()
        except (HoursOverError, WorkerDiedError) as error:
            night.limit_workers(before_end=-LATE)
            self._keep_committed_rounds(error)
        return night.merge(block.path, self.policy) if night.config.merges and self.policy != base else self.policy

    def _round(self, number: int) -> Path:
        """Sample groups of answers, turn their scores into advantages, and update the policy. Return the new policy."""
        night, folder = self.night, self.night.round_folder(number)
        uninterrupted = not folder.exists()
        samples = [one / "sample" for one in passes_of(folder)]  # a refill that drew nothing has none
        kept = is_committed(folder) and all(committed(one) for one in samples if one.exists())
        if not kept and self.policy not in self.verified:
            verify(self.policy, CHANGED)
            self.verified.add(self.policy)

        rate_factor = self._rate_factor(number)
        passes = self.sampler.sample(number, self.block, self.base, self.policy, self._learned)

        inputs: dict[str, Any] = {
            "rollouts": tuple(one.rollouts for one in passes),
            "advantages": tuple(one.advantages for one in passes),
            "config": self._trainer_config,
            "rate_factor": rate_factor,
            "predecessor": self.policy.name,
        }
        path = f"{round_path(number)}/checkpoint"
        if (known := night.committed(checkpoint, path, **inputs)) is not None:
            figures = known.read_json("metrics.json")
            self._advance(night.checkpoint(known), night.run(checkpoint, path, silent=True, **inputs))
            self.tracking.log_round(number, figures)
            self._seconds_since_last_round()
        else:
            self._finish_saving()
            updated, resources = self._update(number, inputs)
            night.trainer.until = max(night.hours.end, time.time()) + LATE  # a finished update is saved, however late
            self._advance(updated.checkpoint, updated)
            self.verified.add(self.policy)
            proposals = self.sampler.own_problems[-1] if self.block.kind == "self_play" else None
            figures = round_metrics(passes, updated.metrics, proposals) | {"rate_factor": rate_factor}
            seconds = self._seconds_since_last_round()
            if uninterrupted:
                figures["seconds_round"] = seconds
            outcome = {"updated": updated, "state": self.retention.state(number), "figures": figures}
            save = partial(self._save, number, path, **inputs, **outcome, resources=resources)
            self._saving = self._thread.submit(copy_context().run, save)  # as a part of this Prefect run
        if "seconds_round" in figures:
            self.allowance.rounds.append(figures["seconds_round"])
        self.monitor.figures.append(figures)

        if is_quizzed(night.config, number):
            self._quiz(number)
        self._rank_picks(number)
        return self.policy

    def _rate_factor(self, number: int) -> float:
        """Return a round's learning-rate factor: computed from the time left and saved, or read if already saved."""
        file = self.night.folder / PACE_FOLDER / f"{round_path(number)}.json"
        if (known := read_json(file)) is None:
            known = {"rate_factor": self.allowance.rate_factor(number)}
            make_folder(file.parent)
            write_atomically(file, json.dumps(known))
        return known["rate_factor"]

    def _update(self, number: int, inputs: Mapping[str, Any]) -> tuple[Updated, UpdateResources]:
        """Take the round's optimizer steps. Returns the update's result and the resources that it used."""
        night, path, state = self.night, f"{round_path(number)}/update", self._state_before(number)
        if state is not None and not state.is_dir():
            raise NightError(f"{state}: this trainer state is gone; start the night over with --fresh")
        predecessor = Predecessor(self.base, self.policy.name, state)
        retired = self.retention.outdated(number, self.base)
        resources = UpdateResources(predecessor, night.home.checkpoints, night.trainer, retired)
        arguments = (inputs[name] for name in ("rollouts", "advantages", "config", "rate_factor"))
        night.sleep_engine()
        with night.announced(path):
            return night.call(update, path, *arguments, resources), resources

    def _save(self, number: int, path: str, **arguments: Any) -> None:
        """Commit the update and log its metrics. Runs on another thread while the next round samples."""
        saved = self.night.run(checkpoint, path, after=[arguments["updated"]], silent=True, **arguments)
        self.tracking.log_round(number, saved.read_json("metrics.json"))

    def _finish_saving(self) -> None:
        """Wait until the last round is saved. From then on, the trainer's time limit is the engine's again.

        Raises any error that saving it raised.
        """
        saving, self._saving = self._saving, None
        if saving is not None:
            saving.result()
        self.night.trainer.until = self.night.engine.until

    def _advance(self, policy: Path, result: Artifact | Updated) -> None:
        self.policy = policy
        self.night.edges.add(result, policy)
        self.retention.policies.append(policy)

    def _seconds_since_last_round(self) -> float:
        """Return the seconds since the last round ended. The time between two rounds counts towards the later round."""
        now = time.perf_counter()
        seconds, self.round_began = now - self.round_began, now
        return seconds

    def _quiz(self, number: int) -> None:
        started = time.perf_counter()
        quiz = run_quiz(self.night, f"{round_path(number)}/quiz", self.policy)
        if (accuracy := self.monitor.add_quiz(number, quiz)) is not None:
            self.tracking.log({"quiz/accuracy": accuracy}, number)
        self.allowance.quizzes.append(seconds_answering(quiz))
        self.round_began += time.perf_counter() - started  # a quiz does not count towards a round's time

    def _rank_picks(self, number: int) -> None:
        """Have the policy rank the owner's held-out picks if a learned reward is in use and a ranking is due."""
        learned = self._learned
        if learned is None or not is_ranked(self.night.config, self.block, number):
            return
        started = time.perf_counter()
        self._finish_saving()
        predecessor = Predecessor(self.base, self.policy.name, self._state_before(number + 1))
        if (ranking := learned.rank(self.block, number, predecessor, self.policy, self._trainer_config)) is None:
            return
        self.monitor.add_ranking(self.block.rounds.start, number, ranking)
        if (accuracy := ranking.read_json("ranking.json")["accuracy"]) is not None:
            self.tracking.log({"learned_reward/ranking_accuracy": accuracy}, number)
        if number in self.block.rounds and self.allowance.quizzes:  # each quiz comes with a ranking
            self.allowance.quizzes[-1] += ranking.seconds
        self.round_began += time.perf_counter() - started

    def _keep_committed_rounds(self, error: HoursOverError | WorkerDiedError) -> None:
        """End the night's learning after its last committed round, and discard the uncommitted rounds."""
        with suppress(HoursOverError, WorkerDiedError):  # if saving fails, the round stays uncommitted
            self._finish_saving()
        policies = self.retention.policies
        while policies and not is_committed(self.night.round_folder(len(policies))):
            policies.pop()
        del self.monitor.figures[len(policies) :]
        self.policy = policies[-1] if len(policies) >= self.block.rounds.start else self.base
        self.end(self.block.number, error)

    def end(self, steps: int, error: Exception) -> None:
        """End the night's learning permanently, keeping the rounds so far and the recipe's first `steps` steps."""
        self.over = True
        done = len(self.retention.policies)
        why = f"Training stopped after {done} of {self.night.config.rounds} rounds: {error}."
        end_early(self.night.folder, done, why, steps, died=not isinstance(error, HoursOverError))

    @property
    def _learned(self) -> LearnedReward | None:
        """The learned reward. None outside GRPO blocks, or once the reward has failed or the policy has hacked it."""
        if self.learned is None or self.learned.failed or self.block.kind != "grpo" or self.monitor.hacked:
            return None
        return self.learned

    @property
    def _trainer_config(self) -> TrainerConfig:
        """The trainer's configuration for the current block.

        The learning rate warms up once per night, not once per block. Only GRPO blocks have the learned reward's KL
        term.
        """
        config = self.night.config
        trainer = self.learned.trainer_config if self.learned and self.block.kind == "grpo" else config.trainer
        taken = (self.block.rounds.start - 1) * config.grpo.steps_per_round
        warmup = max(0, trainer.optimizer.warmup_steps - taken)
        changes: dict[str, Any] = {"optimizer": trainer.optimizer.model_copy(update={"warmup_steps": warmup})}
        return trainer.model_copy(update=changes)

    def _superseded(self) -> list[Path]:
        """Return the checkpoints that later rounds will replace on disk, from the oldest to the newest."""
        policies = self.retention.policies
        return [*(policy for policy in policies[:-1] if policy != self.base), policies[-1]]

    def _state_before(self, number: int) -> Path | None:
        """Return the trainer state that a round continues from, or None for a block's first round."""
        return self.retention.state(number - 1) if number > self.block.rounds.start else None
