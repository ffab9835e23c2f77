"""Runs the night's recipe: the configured `stages`, in order, from the starting checkpoint to the candidate."""

import time
from dataclasses import dataclass
from itertools import dropwhile, takewhile
from pathlib import Path

from conf.sections.stages import Step
from flows.grpo import Rounds
from flows.run.budget import LATE, Allowance, Division
from flows.run.context import Night, log
from flows.training.lessons import LESSONS, Lessons
from flows.training.quizzes import Quizzes
from tasks.monitoring.incidents import end_early, ended_early
from tasks.stage import committed, run_name
from tasks.workers.worker import HoursOverError, WorkerDiedError


class LessonDiedError(Exception):
    """A lesson ended the trainer's process, each time that it was tried."""


@dataclass(frozen=True)
class Recipe:
    """The night's lessons and blocks of rounds. Each passes its checkpoint to the next, starting with `student`."""

    night: Night
    student: Path
    lessons: Lessons
    quizzes: Quizzes
    division: Division

    def before_rounds(self) -> Path:
        """Run the lessons before the first block of rounds, as far as the night's hours allow.

        Returns the checkpoint that the report calls `distilled`.
        """
        checkpoint = self.student
        for step in takewhile(lambda step: not step.is_block, self._steps):
            try:
                checkpoint = self._learn(step, checkpoint)
            except (HoursOverError, LessonDiedError) as error:
                why = f"Training stopped during the lessons, before any round: {error}."
                end_early(self.night.folder, 0, why, step.number - 1, died=isinstance(error, LessonDiedError))
                break
        return checkpoint

    def run(self, rounds: Rounds, checkpoint: Path) -> Path:
        """Run the blocks of rounds, and the lessons between and after them. Returns the candidate."""
        rounds.monitor.alarms.publish()  # alarms from before an interruption
        if early := ended_early(self.night.folder):
            log.warning(early.why)
        for step in dropwhile(lambda step: not step.is_block, self._steps):
            if step.is_block:
                before, checkpoint = checkpoint, rounds.run(step, checkpoint)
                if checkpoint != before:
                    checkpoint = self.quizzes.keep_unless_worse(step, before, checkpoint)
            else:
                try:
                    if not early:
                        self._require_time(step, rounds.allowance)
                        self.night.limit_workers(before_end=rounds.allowance.after)
                    checkpoint = self._learn(step, checkpoint)
                except (HoursOverError, LessonDiedError) as error:
                    rounds.end(step.number - 1, error)
                finally:
                    self.night.limit_workers(before_end=-LATE)
            if rounds.over:
                break
        return checkpoint

    def _learn(self, step: Step, checkpoint: Path) -> Path:
        """Run a lesson. Returns its checkpoint, or `checkpoint` if nothing was learned or the student got worse.

        Raises LessonDiedError if the trainer dies or hangs each time that it is tried.
        """
        steps = [each for each in self.night.config.steps if self._teaches(each)]
        pace = self.division.pace(self.night.folder, step, steps)
        if pace is not None:
            pace = pace.within(self.night.trainer.until - time.time())
        try:
            learned = self.lessons.teach(step, checkpoint, pace)
        except WorkerDiedError as error:
            raise LessonDiedError(str(error)) from error
        return learned if learned == checkpoint else self.quizzes.keep_unless_worse(step, checkpoint, learned)

    def _teaches(self, step: Step) -> bool:
        """Return whether a step may have something to teach. A `lessons` step needs feedback from the owner."""
        if step.kind != "lessons":
            return True
        counts = self.lessons.journal.read_json("counts.json")
        own = (counts[table] for table in ("corrections", "words", "feedback", "preferences"))
        return any(each["new"] + each["generated"] for each in own)

    def _require_time(self, step: Step, allowance: Allowance) -> None:
        """Raise HoursOverError if the time left is too short for a lesson, judging by tonight's lessons of its kind."""
        if self._is_committed(step):
            return
        earlier = [each for each in self.night.config.steps[: step.number - 1] if each.kind == step.kind]
        known = [committed(self.night.folder / each.path) for each in earlier]
        seconds = max((lesson.seconds for lesson in known if lesson), default=0.0)
        allowance.require_seconds(f"the lesson {run_name(step.path)}", seconds)

    def _is_committed(self, step: Step) -> bool:
        if step.kind != "lessons":
            return committed(self.night.folder / step.path) is not None
        return all(committed(self.night.folder / LESSONS / channel) for channel in self.night.config.channels)

    @property
    def _steps(self) -> tuple[Step, ...]:
        """The steps that the night takes: all, or only the first ones if its training has ended early."""
        early = ended_early(self.night.folder)
        return self.night.config.steps[: early.steps if early else None]
