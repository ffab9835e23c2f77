"""The R rounds of GRPO: select_prompts → sample → score → credit (and refills of the same) → update → checkpoint."""

import random
import shutil
import time
from collections.abc import Sequence, Set
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from prefect.futures import PrefectFuture

from flows.hours import LATE, Allowance
from flows.learned_reward import LearnedReward, is_ranked
from flows.lost_round import LostRoundError, require_outcome
from flows.night import Night, log
from flows.night_watch import NightWatch
from flows.quizzes import hold_quiz, is_quizzed, quiz_accuracy
from models.checkpoint import is_whole
from rewards.verifier import Problem
from tasks import verdicts
from tasks.credit import credit
from tasks.incidents import end_early, ended_early
from tasks.learner import Predecessor
from tasks.merge import merge
from tasks.round_figures import round_figures
from tasks.sample import sample
from tasks.score import score
from tasks.select_prompts import select_prompts
from tasks.stage import MANIFEST, Artifact, committed, run_name, uncommit
from tasks.tracking import Tracking
from tasks.update import UpdateChangedError, UpdateMeans, checkpoint, update
from tasks.workers import HoursOverError, WorkerDiedError


class Pass(NamedTuple):
    """A round's prompts, or those of one of its refills, and what came of them."""

    prompts: Artifact
    rollouts: Artifact
    scores: Artifact
    advantages: Artifact


class Rounds:
    """The rounds of one night, and what goes from one to the next: the policy, and the solve rates.

    `exam_seconds`: what the exam takes that comes after them. `learned`: the reward model's part, where one serves.
    """

    def __init__(
        self,
        night: Night,
        base: Path,
        exam: Sequence[Problem],
        tracking: Tracking,
        registered: Set[str],
        exam_seconds: float = 0.0,
        learned: LearnedReward | None = None,
    ) -> None:
        self.night, self.base, self.tracking, self.registered = night, base, tracking, registered
        self.excluded = sorted({text for problem in exam for text in (problem.problem_id, problem.question)})
        self.current = base
        self.solve_rates: Artifact | None = None
        self.saving: Future[None] | None = None
        self.books = ThreadPoolExecutor(1, thread_name_prefix="books")
        self.policies: list[Path] = []
        self.watch = NightWatch(night, tracking)
        self.learned = learned
        self.trainer_config = learned.trainer_config if learned else night.config.trainer
        self.own: set[int] = set()  # the rounds that this start of the night has taken itself
        self.lap = time.perf_counter()  # when the round before was over
        self.allowance = Allowance(night.hours, night.config, night.home.nights, exam_seconds)

    def run(self) -> Path:
        """All rounds, or those up to a severe alarm, or as many as fit into the night's hours and as the children live
        through.

        Returns the candidate: the checkpoint after the last one, its adapter merged; the base where there was none.
        What an earlier start of the night left of a round, and was damaged since, is made again: from the round before,
        or, where that is damaged too or was pruned, from as far back as it takes. Rollouts on the disk stay.
        """
        while True:
            try:
                return self._run()
            except (LostRoundError, UpdateChangedError) as lost:
                log.warning("%s", lost)
                self._finish_saving()
                number = lost.number if isinstance(lost, LostRoundError) else len(self.policies)
                uncommit(self.night.folder / f"round-{number:02d}" / "checkpoint")
                self.current, self.solve_rates = self.base, None
                self.policies.clear()
                self.watch.figures.clear()

    def _run(self) -> Path:
        night, before = self.night, ended_early(self.night.folder)
        if before:
            log.warning(before.why, extra={"rounds": before.rounds})
        self.lap = time.perf_counter()
        self.watch.book.publish()  # those from before an interruption
        night.spare(self.allowance.after)
        try:
            self._rank(0)
            for number in range(1, (before.rounds if before else night.config.grpo.rounds) + 1):
                self._require_time(number)
                self._round(number)
                if is_quizzed(night.config, number):
                    self._quiz(number)
                self._rank(number)
                if self.watch.ends_learning(self.policies, self._state(number - 1)):
                    break
            night.spare(-LATE)
            self._finish_saving()
        except (HoursOverError, WorkerDiedError) as error:
            night.spare(-LATE)
            self._end_early(error)
        if not (night.folder / "merge" / MANIFEST).exists():  # from then on nobody needs the last adapter
            self._require(len(self.policies), None)
        candidate = self._merged() if night.config.lora is not None and self.policies else self.current
        self.books.shutdown()
        return candidate

    def _require_time(self, number: int) -> None:
        """Raises HoursOverError where a round does not fit any more; one that is committed costs nothing."""
        if not self._is_committed(number):
            self.allowance.require(number, is_quizzed(self.night.config, number))

    def _end_early(self, error: HoursOverError | WorkerDiedError) -> None:
        """The rounds that are committed count. What another one has stays in its folder, and leads to nothing."""
        with suppress(HoursOverError, WorkerDiedError):
            self._finish_saving()
        while self.policies and not self._is_committed(len(self.policies)):
            self.policies.pop()
        del self.watch.figures[len(self.policies) :]
        self.current = self.policies[-1] if self.policies else self.base
        done, all_rounds = len(self.policies), self.night.config.grpo.rounds
        end_early(self.night.folder, done, f"The night ended its rounds after {done} of {all_rounds}: {error}.")

    def _is_committed(self, number: int) -> bool:
        return (self.night.folder / f"round-{number:02d}" / "checkpoint" / MANIFEST).exists()

    def _merged(self) -> Path:
        """The last round's adapter, merged into its base. Raises LostRoundError where neither is whole any more."""
        night = self.night
        known = committed(night.folder / "merge")
        if known and not self.current.is_dir() and not is_whole(night.checkpoint(known)):
            uncommit(night.folder / "merge")
            raise LostRoundError(len(self.policies), "what it was merged into was damaged, and the adapter is gone")
        return night.made(
            merge,
            "merge",
            adapter=self.current,
            trust_remote_code=night.config.student.trust_remote_code,
            checkpoints=night.home.checkpoints,
            trainer=night.trainer,
        )

    def _round(self, number: int) -> None:
        place = f"round-{number:02d}"
        whole = not (self.night.folder / place).exists()  # no part of it is from before an interruption
        if not (self.night.folder / place / "checkpoint" / MANIFEST).exists():
            self._require(number - 1, self._state(number - 1))
        passes = self._passes(number, place)
        self._learn(number, place, passes, whole)
        self.solve_rates = passes[-1].scores

    def _passes(self, number: int, place: str) -> list[Pass]:
        """The round's prompts, and as often as `refills` allows others in place of the groups without signal.

        Dynamic sampling (DAPO, arXiv 2503.14476, section 3.2) with a limit: each refill draws as many problems as the
        pass before had groups without signal, by solve rates that know of that pass.
        """
        grpo = self.night.config.grpo
        passes: list[Pass] = []
        lacking = grpo.prompts_per_round
        for refill in range(grpo.refills + 1):
            own = f"{place}/refill-{refill}" if refill else place
            seed = f"{self.night.config.seed} {self.night.date} round {number}" + f" refill {refill}" * (refill > 0)
            prompts = self._select(own, seed, lacking, passes)
            if not prompts.read_json("selection.json")["drawn"]:
                break  # the benchmarks have no other problems
            passes.append(self._practise(own, seed, prompts, passes))
            signal = passes[-1].advantages.read_json("signal.json")
            lacking = signal["groups"] - signal["with_signal"]
            if not lacking:
                break
        return passes

    def _select(self, place: str, seed: str, count: int, passes: Sequence[Pass]) -> Artifact:
        config = self.night.config
        return self.night.run(
            select_prompts,
            f"{place}/select_prompts",
            sources=config.benchmarks,
            grpo=config.grpo,
            student=config.student,
            checkpoint=self.base,
            solve_rates=passes[-1].scores if passes else self.solve_rates,
            seed=seed,
            excluded=self.excluded,
            max_prompt_tokens=config.engine.max_model_len - config.grpo.max_completion_tokens,
            count=count,
            drawn=tuple(one.prompts for one in passes),
            **(self.learned.to_select() if self.learned and not self.watch.hacked else {}),
        )

    def _practise(self, place: str, seed: str, prompts: Artifact, passes: Sequence[Pass]) -> Pass:
        """Samples, scores and credits completions of the prompts."""
        config = self.night.config
        inputs: dict[str, Any] = {
            "prompts": prompts,
            "checkpoint": self.current,
            "grpo": config.grpo,
            "config": config.sampler,
            "trust_remote_code": config.student.trust_remote_code,
            "seed": random.Random(seed).getrandbits(31),
        }
        if not self.current.is_dir() and sample.committed(self.night.folder, f"{place}/sample", **inputs) is None:
            raise LostRoundError(len(self.policies), "its checkpoint was pruned, and is needed to sample again")
        rollouts = self.night.run(sample, f"{place}/sample", **inputs, engine=self.night.engine)
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
            **(self.learned.to_score(place, rollouts) if self.learned and not self.watch.hacked else {}),
        )
        log.info("%s: %s", run_name(place), verdicts.told(scores.read_json("verdicts.json")))
        advantages = self.night.run(credit, f"{place}/credit", scores=scores, rollouts=rollouts, grpo=config.grpo)
        return Pass(prompts, rollouts, scores, advantages)

    def _learn(self, number: int, place: str, passes: Sequence[Pass], whole: bool) -> None:
        """The update, unless its outcome is committed; its state is written while the next round samples."""
        night, predecessor = self.night, self.current.name
        prompts, rollouts, scores, advantages = zip(*passes, strict=True)
        inputs: dict[str, Any] = {
            "prompts": prompts,
            "rollouts": rollouts,
            "scores": scores,
            "advantages": advantages,
            "config": self.trainer_config,
            "predecessor": predecessor,
        }
        known = checkpoint.committed(night.folder, f"{place}/checkpoint", **inputs)
        if known is None:
            self._finish_saving()
            state = self._state(number - 1) if number > 1 else None
            if state is not None and not state.is_dir():
                raise LostRoundError(number - 1, "its state was pruned, and is needed to learn again")
            base = Predecessor(self.base, predecessor, state)
            means = UpdateMeans(base, night.home.checkpoints, night.trainer, self._retired(number))
            night.rest_engine()
            label, started = f"round {number} · update", time.perf_counter()
            night.tell(label, None)
            updated = update(label, rollouts, advantages, self.trainer_config, means)
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

    def _require(self, number: int, state: Path | None) -> None:
        """Raises LostRoundError where what an earlier start of the night left of a round was damaged since."""
        if number and number not in self.own:
            require_outcome(number, self.current, state)

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
        """Checkpoints and trainer states that go when a round's are written: those before its predecessor's, which is
        durable.
        """
        states = [self._state(old) for old in range(1, number - 1)]
        return self._passed({self.base, *self.policies[-1:]}), [state for state in states if state.exists()]

    def _quiz(self, number: int) -> None:
        started = time.perf_counter()
        found = hold_quiz(self.night, number, self.current)
        if found is None:
            return
        self.tracking.log({"quiz/accuracy": quiz_accuracy(found)}, number)
        self.watch.take_quiz(number, found)
        self.allowance.quizzes.append(found.seconds)
        self.lap += time.perf_counter() - started  # a quiz is no part of a round

    def _rank(self, number: int) -> None:
        """How the student ranks the owner's held-out picks now, while a learned reward is in use."""
        if self.learned is None or self.watch.hacked or not is_ranked(self.night.config, number):
            return
        started, state = time.perf_counter(), self._state(number) if number else None
        self._finish_saving()
        if not self.learned.is_ranked(number, self.current):
            if ended_early(self.night.folder):  # no round comes any more that it could be for
                return
            self._require(number, state)
        found = self.learned.rank(number, Predecessor(self.base, self.current.name, state), self.current)
        self.watch.take_ranking(number, found)
        accuracy = found.read_json("ranking.json")["accuracy"]
        if accuracy is not None:
            self.tracking.log({"learned_reward/ranking_accuracy": accuracy}, number)
        if number and self.allowance.quizzes:  # it comes with them
            self.allowance.quizzes[-1] += found.seconds
        self.lap += time.perf_counter() - started  # as a quiz, it is no part of a round

    def _state(self, number: int) -> Path:
        return self.night.folder / "state" / f"round-{number:02d}"
