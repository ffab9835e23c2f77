"""The night's course: the steps of `stages`, one after the other, from the champion to the candidate."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from conf.sections.stages import Step
from flows.evaluation.run import sit_for_report
from flows.grpo import Rounds
from flows.run.context import Night, log
from flows.training.distillation import learn_own_answers, learn_traces
from flows.training.feedback import LESSONS, channels, learn
from flows.training.lost_round import LostRoundError
from tasks.incidents import end_early, ended_early
from tasks.stage import MANIFEST, Artifact, committed, run_name
from tasks.training.update import UpdateChangedError
from tasks.workers import HoursOverError


@dataclass(frozen=True)
class Course:
    """Lessons and blocks of rounds hand on a checkpoint, each to the next.

    `questions`: the exam's, which no lesson may learn.
    """

    night: Night
    day: Artifact
    questions: tuple[str, ...]

    def before_rounds(self, champion: Path) -> Path:
        """The lessons up to the first block of rounds, or as many as the night's hours leave time for, exams included.

        Returns the checkpoint that sits the exam as `distilled`.
        """
        early, checkpoint = ended_early(self.night.folder), champion
        steps = self._steps[: self._first]
        for step in steps[: early.steps] if early else steps:
            before = checkpoint
            try:
                checkpoint = self._lesson(step, checkpoint)
            except HoursOverError as error:
                why = f"The night ended its lessons, and had no rounds: {error}."
                end_early(self.night.folder, 0, why, step.number - 1)
                break
            if not early:
                self._examine(step, before, checkpoint)
        return checkpoint

    def run(self, rounds: Rounds, distilled: Path) -> Path:
        """The rest, or as much of it as the night's hours and alarms allow. Returns the candidate.

        What an earlier start of the night left of a round, and was damaged since, is made again: from the round before,
        or, where that is damaged too or was pruned, from as far back as it takes, be it the block before. Rollouts on
        the disk stay.
        """
        rounds.watch.book.publish()  # those from before an interruption
        if early := ended_early(self.night.folder):
            log.warning(early.why, extra={"rounds": early.rounds})
        while True:
            try:
                candidate = self._go_through(rounds, distilled)
                rounds.require_whole(candidate)
            except (LostRoundError, UpdateChangedError) as lost:
                rounds.take_back(lost)
                continue
            rounds.books.shutdown()
            return candidate

    def _go_through(self, rounds: Rounds, checkpoint: Path) -> Path:
        early = ended_early(self.night.folder)
        for step in self._steps[self._first : early.steps if early else None]:
            before = checkpoint
            if step.is_block:
                checkpoint = rounds.run(step, checkpoint)
            elif early or self._fits(step, rounds):
                if not self._stands(step):
                    rounds.require_whole(checkpoint)
                self.night.rest_engine()
                try:
                    checkpoint = self._lesson(step, checkpoint)
                except HoursOverError as error:
                    rounds.end(step.number - 1, error)
            if rounds.over:
                break
            if not early:
                self._examine(step, before, checkpoint, rounds)
        return checkpoint

    def _examine(self, step: Step, before: Path, checkpoint: Path, rounds: Rounds | None = None) -> None:
        """The exam after a step that changed the student, for the report; the owner's channels have theirs one by one.
        One that the night's hours have no time for is left out.

        Raises LostRoundError where the checkpoint of the last of the `rounds` so far was damaged since.
        """
        if not self.night.config.lessons.examine or step.kind == "lessons" or checkpoint == before:
            return
        if rounds is not None and committed(self.night.folder / step.exam) is None:
            rounds.require_whole(checkpoint)
            try:
                rounds.allowance.require_seconds("the exam after a step", rounds.allowance.exam)
            except HoursOverError as error:
                log.warning("%s is left out: %s", step.exam, error)
                return
        sit_for_report(self.night, step.exam, checkpoint)
        self.night.rest_engine()  # what comes next is another lesson, perhaps

    def _fits(self, step: Step, rounds: Rounds) -> bool:
        """Whether a lesson fits into the night's hours, by what its like took before. If not, the learning ends."""
        if self._stands(step):
            return True
        try:
            rounds.allowance.require_seconds(f"the lesson {run_name(step.place)}", max(self._taken(step), default=0.0))
        except HoursOverError as error:
            rounds.end(step.number - 1, error)
            return False
        return True

    def _taken(self, step: Step) -> Iterator[float]:
        """The seconds of the lessons of this kind that the night has had."""
        for other in self._steps[: step.number - 1]:
            manifest = self.night.folder / other.place / MANIFEST
            if other.kind == step.kind and manifest.exists():
                yield json.loads(manifest.read_text())["seconds"]

    def _lesson(self, step: Step, checkpoint: Path) -> Path:
        """A lesson's checkpoint, made from the one before it; the same one where there was nothing to learn."""
        night, questions, rounds = self.night, self.questions, step.rounds.start - 1
        if step.kind == "distill":
            return learn_traces(night, self.day, rounds, checkpoint, questions, step.place)
        if step.kind == "self_distill":
            return learn_own_answers(night, rounds, checkpoint, questions, step.place)
        return learn(night, self.day, checkpoint, questions)

    def _stands(self, step: Step) -> bool:
        """Whether what a lesson made is there, and whole."""
        if step.kind != "lessons":
            return self.night.has(step.place)
        return all(self.night.has(f"{LESSONS}/{channel.name}") for channel, _ in channels(self.night.config))

    @property
    def _steps(self) -> tuple[Step, ...]:
        return self.night.config.steps

    @property
    def _first(self) -> int:
        """Where the first block of rounds is among the steps."""
        return next((place for place, step in enumerate(self._steps) if step.is_block), len(self._steps))
