"""The R rounds of GRPO: select_prompts → sample → score → credit (and refills of the same) → update → checkpoint."""

import json
import random
import shutil
import time
from collections.abc import Sequence, Set
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

from prefect.futures import PrefectFuture

from flows.night import Night, log
from flows.night_watch import NightWatch
from rewards.verifier import Problem
from tasks import verdicts
from tasks.credit import credit
from tasks.evaluate import quiz
from tasks.learner import Predecessor
from tasks.merge import merge
from tasks.round_figures import round_figures
from tasks.sample import sample
from tasks.score import score
from tasks.select_prompts import select_prompts
from tasks.stage import Artifact, run_name
from tasks.tables import EVALUATIONS, read_table
from tasks.tracking import Tracking
from tasks.update import UpdateMeans, checkpoint, update


class Pass(NamedTuple):
    """A round's prompts, or those of one of its refills, and what came of them."""

    prompts: Artifact
    rollouts: Artifact
    scores: Artifact
    advantages: Artifact


class Rounds:
    """The rounds of one night, and what goes from one to the next: the policy, and the solve rates."""

    def __init__(
        self, night: Night, base: Path, exam: Sequence[Problem], tracking: Tracking, registered: Set[str]
    ) -> None:
        self.night, self.base, self.tracking, self.registered = night, base, tracking, registered
        self.excluded = sorted({text for problem in exam for text in (problem.problem_id, problem.question)})
        self.current = base
        self.solve_rates: Artifact | None = None
        self.saving: Future[None] | None = None
        self.books = ThreadPoolExecutor(1, thread_name_prefix="books")
        self.policies: list[Path] = []
        self.watch = NightWatch(night, tracking)
        self.lap = time.perf_counter()  # when the round before was over

    def run(self) -> Path:
        """All rounds, or those up to a severe alarm. Returns the candidate: the last checkpoint, its adapter merged."""
        grpo = self.night.config.grpo
        self.lap = time.perf_counter()
        self.watch.book.publish()  # those from before an interruption
        for number in range(1, grpo.rounds + 1):
            self._round(number)
            if grpo.quiz_every_rounds and number % grpo.quiz_every_rounds == 0 and self._can_be_quizzed:
                self._quiz(number)
            if self.watch.ends_learning(self.current, self._state(number - 1)):
                break
        self._finish_saving()
        self.books.shutdown()
        return self._merged() if self.night.config.lora is not None and self.policies else self.current

    def _merged(self) -> Path:
        """The last round's adapter, merged into its base."""
        night = self.night
        merged = night.run(
            merge,
            "merge",
            adapter=self.current,
            trust_remote_code=night.config.student.trust_remote_code,
            checkpoints=night.home.checkpoints,
            trainer=night.trainer,
        )
        return night.checkpoint(merged)

    def _round(self, number: int) -> None:
        place = f"round-{number:02d}"
        whole = not (self.night.folder / place).exists()  # no part of it is from before an interruption
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
        )

    def _practise(self, place: str, seed: str, prompts: Artifact, passes: Sequence[Pass]) -> Pass:
        """Samples, scores and credits completions of the prompts."""
        config = self.night.config
        rollouts = self.night.run(
            sample,
            f"{place}/sample",
            prompts=prompts,
            checkpoint=self.current,
            grpo=config.grpo,
            config=config.sampler,
            trust_remote_code=config.student.trust_remote_code,
            seed=random.Random(seed).getrandbits(31),
            engine=self.night.engine,
        )
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
            "config": night.config.trainer,
            "predecessor": predecessor,
        }
        known = checkpoint.committed(night.folder, f"{place}/checkpoint", **inputs)
        if known is None:
            self._finish_saving()
            state = self._state(number - 1) if number > 1 else None
            base = Predecessor(self.base, predecessor, state)
            means = UpdateMeans(base, night.home.checkpoints, night.trainer, self._retired(number))
            night.rest_engine()
            label, started = f"round {number} · update", time.perf_counter()
            night.tell(label, None)
            updated = update(label, rollouts, advantages, night.config.trainer, means)
            night.tell(label, time.perf_counter() - started)
            self._go_on_from(updated.checkpoint)
            seconds = self._lap()
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
            self._track(number, known)
            self.watch.figures.append(known.read_json("metrics.json"))
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
        if self.saving is not None:
            self.saving.result()
            self.saving = None

    def _track(self, number: int, artifact: Artifact) -> None:
        self.tracking.log_round(number, artifact.read_json("metrics.json"))

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
        config, started = self.night.config, time.perf_counter()
        target = config.exam.target
        whole = target.benchmark == "math"  # MATH-500 is a part of the exam's problems only
        changes = {"problems": config.grpo.quiz_problems, "subset": None if whole else target.subset}
        part = target.model_copy(update=changes)
        found = self.night.run(
            quiz,
            f"round-{number:02d}/quiz",
            part=part,
            seed=f"{config.seed} {self.night.date} quiz",
            checkpoint=self.current,
            student=config.student,
            config=config.sampler,
            sandbox=config.sandbox,
            max_completion_tokens=config.exam.max_completion_tokens,
            engine=self.night.engine,
        )
        self.tracking.log({"quiz/accuracy": quiz_accuracy(found)}, number)
        self.watch.take_quiz(number, found)
        self.lap += time.perf_counter() - started  # a quiz is no part of a round

    @property
    def _can_be_quizzed(self) -> bool:
        """Whether the exam's target has training problems at all."""
        return self.night.config.exam.target.benchmark != "humaneval"

    def _state(self, number: int) -> Path:
        return self.night.folder / "state" / f"round-{number:02d}"


def quiz_accuracy(found: Artifact) -> float:
    """The share of a quiz that was solved."""
    return float(read_table(found.folder / "evaluations.parquet", EVALUATIONS).correct.mean())


def round_metrics(folder: Path) -> list[dict[str, float]]:
    """The figures of all committed rounds of a night, in order."""
    return [json.loads(file.read_text()) for file in sorted(folder.glob("round-*/checkpoint/metrics.json"))]
