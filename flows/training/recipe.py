"""The night's recipe: the steps of `stages`, one after the other, from the first student to the candidate."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from conf.sections.stages import Step
from flows.grpo import Rounds
from flows.run.budget import Division
from flows.run.context import Night, log
from flows.training.acceptance import accept_block, accept_lesson
from flows.training.distillation import learn_own_answers, learn_traces
from flows.training.feedback import LESSONS, channels, learn_feedback
from flows.training.validation import Quizzes
from models.lessons.pace import Pace
from tasks.journal.freeze import read_counts
from tasks.monitoring.incidents import end_early, ended_early
from tasks.stage import MANIFEST, Artifact, committed, run_name
from tasks.workers.worker import HoursOverError


@dataclass(frozen=True)
class Recipe:
    """Lessons and blocks of rounds, each of which hands a checkpoint to the next.

    `student`: what the night begins with. `trained`: whether an earlier night has trained it; what it learned by day
    does not count.
    """

    night: Night
    student: Path
    trained: bool
    journal: Artifact
    quizzes: Quizzes
    division: Division

    def before_rounds(self) -> Path:
        """Run the lessons before the first block of rounds, or as many as the night's hours leave time for.

        Returns the checkpoint that the report knows as `distilled`.
        """
        early, checkpoint = ended_early(self.night.folder), self.student
        steps = self._steps[: self._first_block]
        for step in steps[: early.steps] if early else steps:
            try:
                checkpoint = self._learn(step, checkpoint)
            except HoursOverError as error:
                why = f"The night ended its lessons, and had no rounds: {error}."
                end_early(self.night.folder, 0, why, step.number - 1)
                break
        return checkpoint

    def run(self, rounds: Rounds, checkpoint: Path) -> Path:
        """Run the blocks of rounds, and the lessons between and after them. Returns the candidate."""
        rounds.monitor.alarms.publish()  # those from before an interruption
        if early := ended_early(self.night.folder):
            log.warning(early.why)
        for step in self._steps[self._first_block : early.steps if early else None]:
            if step.is_block:
                before, checkpoint = checkpoint, rounds.run(step, checkpoint)
                if checkpoint != before:
                    checkpoint = accept_block(self.night, self.quizzes, step, before, checkpoint)
            elif early or self._fits(step, rounds):
                self.night.rest_engine()
                try:
                    checkpoint = self._learn(step, checkpoint)
                except HoursOverError as error:
                    rounds.end(step.number - 1, error)
            if rounds.over:
                break
        return checkpoint

    def _learn(self, step: Step, checkpoint: Path) -> Path:
        """Run a lesson. Returns its checkpoint; the same one where there was nothing to learn, or it did harm."""
        learned = self._teach(step, checkpoint)
        return learned if learned == checkpoint else accept_lesson(self.night, self.quizzes, step, checkpoint, learned)

    def _teach(self, step: Step, checkpoint: Path) -> Path:
        night, rounds = self.night, step.rounds.start - 1
        pace = self.division.pace(night.folder, step, [each for each in self._steps if self._teaches(each)])
        if step.kind == "lessons":
            return self._teach_feedback(step, checkpoint, pace)
        if step.kind == "distill":
            arguments = (night, self.journal, rounds, checkpoint, self.quizzes.exam_questions, step.path)
            return learn_traces(*arguments, trained=self.trained, pace=pace)
        return learn_own_answers(night, rounds, checkpoint, self.quizzes.exam_questions, step.path, pace=pace)

    def _teach_feedback(self, step: Step, checkpoint: Path, pace: Pace | None) -> Path:
        def lessons() -> Path:
            return learn_feedback(self.night, self.journal, checkpoint, self.quizzes.exam_questions, pace)

        return self.night.run_nested("feedback", step.path, lessons, checkpoint)

    def _teaches(self, step: Step) -> bool:
        """Whether a step may have something to learn: `lessons` has not on a day without the owner's feedback."""
        if step.kind != "lessons":
            return True
        counts = read_counts(self.journal)
        return any(counts[table] for table in ("corrections", "words", "feedback", "preferences"))

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

    @property
    def _steps(self) -> tuple[Step, ...]:
        return self.night.config.steps

    @property
    def _first_block(self) -> int:
        """The index of the first block of rounds among the steps."""
        return next((index for index, step in enumerate(self._steps) if step.is_block), len(self._steps))
