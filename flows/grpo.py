"""The R rounds of GRPO: select_prompts → sample → score → credit → update → checkpoint."""

import json
import shutil
import time
from collections.abc import Sequence, Set
from pathlib import Path
from typing import Any

from prefect.futures import PrefectFuture

from flows.night import Night, log
from rewards.verifier import Problem
from tasks import engine, verdicts
from tasks.credit import credit
from tasks.evaluate import quiz
from tasks.learner import Predecessor
from tasks.sample import sample
from tasks.score import score
from tasks.select_prompts import select_prompts
from tasks.stage import Artifact, run_name
from tasks.tables import EVALUATIONS, read_table
from tasks.tracking import Tracking
from tasks.update import UpdateMeans, checkpoint, update

KEPT_STATES = 2


class Rounds:
    """The rounds of one night, and what goes from one to the next: the policy, and the solve rates."""

    def __init__(
        self, night: Night, base: Path, exam: Sequence[Problem], tracking: Tracking, registered: Set[str]
    ) -> None:
        self.night, self.base, self.tracking, self.registered = night, base, tracking, registered
        self.excluded = sorted({text for problem in exam for text in (problem.problem_id, problem.question)})
        self.current = base
        self.solve_rates: Artifact | None = None
        self.saving: tuple[int, PrefectFuture[Artifact]] | None = None
        self.policies: list[Path] = []

    def run(self) -> Path:
        """All rounds. Returns the candidate: the checkpoint after the last one."""
        grpo = self.night.config.grpo
        for number in range(1, grpo.rounds + 1):
            self._round(number)
            if grpo.quiz_every_rounds and number % grpo.quiz_every_rounds == 0 and self._can_be_quizzed:
                self._quiz(number)
        self._finish_saving()
        return self.current

    def _round(self, number: int) -> None:
        config, place = self.night.config, f"round-{number:02d}"
        prompts = self.night.run(
            select_prompts,
            f"{place}/select_prompts",
            sources=config.benchmarks,
            grpo=config.grpo,
            student=config.student,
            checkpoint=self.base,
            solve_rates=self.solve_rates,
            seed=f"{config.seed} {self.night.date} round {number}",
            excluded=self.excluded,
            max_prompt_tokens=config.engine.max_model_len - config.grpo.max_completion_tokens,
        )
        rollouts = self.night.run(
            sample,
            f"{place}/sample",
            prompts=prompts,
            checkpoint=self.current,
            grpo=config.grpo,
            config=config.engine,
            trust_remote_code=config.student.trust_remote_code,
            seed=config.seed * 100_000 + number,
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
            solve_rates=self.solve_rates,
            night=self.night.date,
        )
        log.info("%s: %s", run_name(place), verdicts.told(scores.read_json("verdicts.json")))
        advantages = self.night.run(credit, f"{place}/credit", scores=scores, rollouts=rollouts, grpo=config.grpo)
        self._learn(number, place, rollouts, scores, advantages)
        self.solve_rates = scores

    def _learn(self, number: int, place: str, rollouts: Artifact, scores: Artifact, advantages: Artifact) -> None:
        """The update, unless its outcome is committed; its state is written while the next round samples."""
        night, predecessor = self.night, self.current.name
        inputs: dict[str, Any] = {
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
            means = UpdateMeans(Predecessor(self.base, predecessor, state), night.home.checkpoints, night.trainer)
            night.engine.call(engine.sleep)
            label, started = f"round {number} · update", time.perf_counter()
            night.tell(label, None)
            updated = update(label, rollouts, advantages, night.config.trainer, means)
            night.tell(label, time.perf_counter() - started)
            saving = checkpoint.submit(
                night.folder,
                f"{place}/checkpoint",
                **inputs,
                updated=updated,
                state=self._state(number),
                trainer=night.trainer,
            )
            self.saving = (number, saving)
            self.current = updated.checkpoint
        else:
            self.current = night.checkpoint(known)
            self._track(number, known)
        self.policies.append(self.current)

    def _finish_saving(self) -> None:
        """Waits until the last update is durable, tells MLflow, and lets go of what is no longer needed."""
        if self.saving is None:
            return
        number, future = self.saving
        artifact = future.result()
        self.saving = None
        self._track(number, artifact)
        self._retire_before(number)

    def _track(self, number: int, artifact: Artifact) -> None:
        metrics = artifact.read_json("metrics.json") | {"seconds_checkpoint": artifact.seconds}
        self.tracking.log_round(number, metrics)

    def retire(self, keep: Set[Path]) -> None:
        """Removes the rounds' checkpoints, except those to keep and those that the registry knows."""
        for policy in self.policies:
            if policy not in keep and policy.name not in self.registered:
                shutil.rmtree(policy, ignore_errors=True)

    def _retire_before(self, number: int) -> None:
        """Keeps the newest two trainer states, and the checkpoints that the night can still go on from."""
        for old in range(1, number - KEPT_STATES + 1):
            shutil.rmtree(self._state(old), ignore_errors=True)
        self.retire(keep={self.base, *self.policies[-KEPT_STATES:]})

    def _quiz(self, number: int) -> None:
        config = self.night.config
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
            config=config.engine,
            sandbox=config.sandbox,
            max_completion_tokens=config.exam.max_completion_tokens,
            engine=self.night.engine,
        )
        self.tracking.log({"quiz/accuracy": quiz_accuracy(found)}, number)

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
