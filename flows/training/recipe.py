"""The night's recipe: the steps of `stages`, one after the other, from the first student to the candidate."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from conf.sections.stages import Step
from flows.evaluation.run import evaluate_for_report, target_accuracy
from flows.grpo import Rounds
from flows.run.context import Night, log
from flows.training.acceptance import accept_lesson, is_checked
from flows.training.distillation import learn_own_answers, learn_traces
from flows.training.feedback import LESSONS, channels, learn_feedback
from models.checkpoint import parent_of
from tasks.incidents import end_early, ended_early
from tasks.stage import MANIFEST, Artifact, committed, run_name
from tasks.workers import HoursOverError

NOTHING = 0.05  # of the exam's target: a student that solves less has nothing to lose


@dataclass(frozen=True)
class Recipe:
    """Lessons and blocks of rounds, each of which hands a checkpoint to the next.

    `exam`: the champion's. `exam_questions`: those that no lesson may learn. `student`: the champion, or the day copy
    where the night begins with it. `by_day`: where the lines are that the student has learnt by day (`file:line`).
    """

    night: Night
    champion: Path
    exam: Artifact
    journal: Artifact
    exam_questions: tuple[str, ...]
    student: Path
    by_day: tuple[str, ...] = ()

    def before_rounds(self) -> Path:
        """Run the lessons before the first block of rounds, or as many as the night's hours leave time for.

        Returns the checkpoint that the exam knows as `distilled`.
        """
        early, checkpoint = ended_early(self.night.folder), self.student
        steps = self._steps[: self._first_block]
        for step in steps[: early.steps] if early else steps:
            before = checkpoint
            try:
                checkpoint = self._learn(step, checkpoint)
            except HoursOverError as error:
                why = f"The night ended its lessons, and had no rounds: {error}."
                end_early(self.night.folder, 0, why, step.number - 1)
                break
            if not early:
                self._examine(step, before, checkpoint)
        return checkpoint

    def run(self, rounds: Rounds, checkpoint: Path) -> Path:
        """Run the blocks of rounds, and the lessons between and after them. Returns the candidate."""
        rounds.monitor.alarms.publish()  # those from before an interruption
        if early := ended_early(self.night.folder):
            log.warning(early.why)
        for step in self._steps[self._first_block : early.steps if early else None]:
            before = checkpoint
            if step.is_block:
                checkpoint = rounds.run(step, checkpoint)
            elif early or self._fits(step, rounds):
                self.night.rest_engine()
                try:
                    checkpoint = self._learn(step, checkpoint)
                except HoursOverError as error:
                    rounds.end(step.number - 1, error)
            if rounds.over:
                break
            if not early:
                self._examine(step, before, checkpoint, rounds)
        return checkpoint

    def _learn(self, step: Step, checkpoint: Path) -> Path:
        """Run a lesson. Returns its checkpoint; the same one where there was nothing to learn, or it did not help."""
        learned = self._teach(step, checkpoint)
        if learned == checkpoint or not is_checked(self.night.config) or self._nothing_to_lose(checkpoint):
            return learned
        return accept_lesson(self.night, step.path, checkpoint, learned, self.exam_questions)

    def _teach(self, step: Step, checkpoint: Path) -> Path:
        night, rounds = self.night, step.rounds.start - 1
        if step.kind == "distill":
            return learn_traces(
                night, self.journal, rounds, checkpoint, self.exam_questions, step.path, trained=self._is_trained
            )
        if step.kind == "self_distill":
            return learn_own_answers(night, rounds, checkpoint, self.exam_questions, step.path)
        learned: list[Path] = []

        def lessons() -> None:
            learned.append(learn_feedback(night, self.journal, checkpoint, self.exam_questions, self.by_day))

        night.run_nested("feedback", step.path, lessons)
        return learned[0]

    def _examine(self, step: Step, before: Path, checkpoint: Path, rounds: Rounds | None = None) -> None:
        """Run the exam after a step that changed the student, for the report, if the night's hours leave time for it.

        The owner's channels have theirs one by one.
        """
        if not self.night.config.lessons.examine or step.kind == "lessons" or checkpoint == before:
            return
        if rounds is not None and committed(self.night.folder / step.exam) is None:
            try:
                rounds.allowance.require_seconds("the exam after a step", rounds.allowance.exam)
            except HoursOverError as error:
                log.warning("%s is left out: %s", step.exam, error)
                return
        evaluate_for_report(self.night, step.exam, checkpoint)
        self.night.rest_engine()  # the next step may be a lesson

    def _fits(self, step: Step, rounds: Rounds) -> bool:
        """Whether a lesson fits into the night's hours, by what earlier ones took. If not, the learning ends."""
        if self._is_committed(step):
            return True
        try:
            seconds = max(self._seconds_of_kind(step), default=0.0)
            rounds.allowance.require_seconds(f"the lesson {run_name(step.path)}", seconds)
        except HoursOverError as error:
            rounds.end(step.number - 1, error)
            return False
        return True

    def _seconds_of_kind(self, step: Step) -> Iterator[float]:
        """The seconds of the night's earlier lessons of this kind."""
        for other in self._steps[: step.number - 1]:
            manifest = self.night.folder / other.path / MANIFEST
            if other.kind == step.kind and manifest.exists():
                yield json.loads(manifest.read_text())["seconds"]

    def _is_committed(self, step: Step) -> bool:
        if step.kind != "lessons":
            return committed(self.night.folder / step.path) is not None
        folders = (self.night.folder / LESSONS / channel.name for channel, _ in channels(self.night.config))
        return all(committed(folder) for folder in folders)

    def _nothing_to_lose(self, checkpoint: Path) -> bool:
        """Whether nothing was learnt tonight, and the champion solved next to nothing: a quiz would show nothing."""
        return checkpoint == self.student and target_accuracy(self.exam, self.night.config) < NOTHING

    @property
    def _is_trained(self) -> bool:
        """Whether an earlier night made tonight's champion."""
        return parent_of(self.champion) is not None

    @property
    def _steps(self) -> tuple[Step, ...]:
        return self.night.config.steps

    @property
    def _first_block(self) -> int:
        """The index of the first block of rounds among the steps."""
        return next((index for index, step in enumerate(self._steps) if step.is_block), len(self._steps))
