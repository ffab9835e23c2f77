"""The night's lessons: worked solutions, the student's own answers, and the owner's feedback."""

import random
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from conf.sections.lessons import DistillConfig
from conf.sections.stages import Step
from flows.run.context import Night, log
from flows.run.levels import joined_levels
from models.lessons.pace import Pace, read_steps
from rewards.data.benchmarks import configured
from tasks.distillation.attempts import rounds_of
from tasks.distillation.distill import distill
from tasks.distillation.query_teacher import ask_teacher
from tasks.distillation.rehearsal import rehearsal
from tasks.distillation.trace_sources import import_traces, own_answers, reference_solutions
from tasks.journal.tables import TRACES
from tasks.reward_model.preferences import openings_held_out
from tasks.rollouts.draw import pool_of
from tasks.stage import Artifact, Stage, committed, run_name
from tasks.tables import read_table
from tasks.training.feedback import feedback_lesson

TABLE = "traces.parquet"
LESSONS = "lessons"  # folder of the stages that train on the owner's feedback
OWN_ANSWERS_RATE = 5e-6  # a learning rate; a much higher one ruins the student


@dataclass(frozen=True)
class Lessons:
    """The night's lessons.

    `journal`: the frozen journal. `trained`: whether an earlier night trained the student. If so, worked solutions have
    a lower learning rate, and those of problems that it solves are skipped.
    `fitting`: the optimizer steps expected to fit into a lesson on worked solutions; no more are planned. None: all.
    """

    night: Night
    journal: Artifact
    trained: bool = False
    fitting: int | None = None

    def teach(self, step: Step, checkpoint: Path, pace: Pace | None = None) -> Path:
        """Teach a step's lesson. Returns the new checkpoint, or the same one if there was nothing to learn.

        `pace`: the lesson's share of the night's hours, or None to take all optimizer steps.
        """
        if step.kind == "lessons":
            teach = partial(self._feedback, checkpoint, pace)
            return self.night.edges.run_nested("feedback", step.path, teach, checkpoint)
        if step.kind == "distill":
            return self._worked_solutions(step, checkpoint, pace)
        return self._own_answers(step, checkpoint, pace)

    def _worked_solutions(self, step: Step, checkpoint: Path, pace: Pace | None) -> Path:
        """Train on the night's worked solutions. A teacher, if configured, solves problems that the student failed."""
        night, config, traces, started = self.night, self.night.config, [self.journal], time.perf_counter()
        lesson, answering, rehearsed = config.distill, None, None
        if self.fitting is not None and self.fitting < lesson.steps:
            log.info("%s: about %d of %d steps fit into its time", run_name(step.path), self.fitting, lesson.steps)
            lesson = lesson.model_copy(update={"steps": self.fitting})
        if lesson.steps:
            traces += self._further_traces(step)
            rehearsed = self._rehearsed(step, traces, checkpoint, lesson)
        if self.trained:
            lesson = lesson.model_copy(update={"learning_rate": min(lesson.learning_rate, lesson.trained_student_rate)})
            answering = night.player(checkpoint, config.grpo.max_completion_tokens)
        return self._learn(
            distill,
            step.path,
            checkpoint,
            traces=tuple(traces),
            unseen=openings_held_out(self.journal.folder),
            drawn_by=self._seed(step.path),
            config=lesson,
            rehearsed=rehearsed,
            answering=answering,
            pace=pace and pace.left(started),  # minus the time that teacher and rehearsal took
        )

    def _rehearsed(
        self, step: Step, traces: Sequence[Artifact], checkpoint: Path, lesson: DistillConfig
    ) -> Artifact | None:
        """Have the student answer everyday prompts and, if it is trained, problems of the levels it began with.

        Returns None if rehearsal is off or no worked solutions exist.
        """
        config = self.night.config
        if not lesson.rehearsal or all(read_table(one.folder / TABLE, TRACES).empty for one in traces):
            return None
        count = round(lesson.rehearsal * lesson.steps * lesson.batch_size)
        return self.night.run(
            rehearsal,
            step.rehearsal_path,
            practised=tuple(self._practised(count // 2)) if self.trained else (),
            count=count,
            player=self.night.player(checkpoint, config.grpo.max_completion_tokens),
            seed=random.Random(self._seed(step.rehearsal_path)).getrandbits(31),
        )

    def _practised(self, count: int) -> Iterator[str]:
        """Yield the prompts of up to `count` problems of each benchmark, except of episodes and of joined levels.

        No problem is one that the exam asks.
        """
        config, joined = self.night.config, joined_levels(self.night.config, self.night.home, self.night.date)
        for entry in config.benchmarks:
            levels = entry.levels
            if levels and entry.name == config.exam.target.benchmark:
                levels = tuple(level for level in levels if level not in joined)
            benchmark = configured(entry.model_copy(update={"levels": levels}), config.sandbox)
            if levels == () or benchmark.environment is not None:
                continue
            seed = self._seed("practised")
            problems = pool_of(benchmark, seed, count, self.night.exam_questions)
            yield from map(benchmark.prompt, random.Random(seed).sample(problems, min(count, len(problems))))

    def _further_traces(self, step: Step) -> Iterator[Artifact]:
        """Yield traces from the configured files, the benchmarks' reference solutions, and a teacher."""
        night, config = self.night, self.night.config.distill
        if config.files:
            own = {entry.name: configured(entry).name for entry in night.config.benchmarks if ":" in entry.name}
            yield night.run(import_traces, "import_traces", files=config.files, own=own)
        if config.reference_solutions:
            yield night.run(
                reference_solutions,
                "reference_solutions",
                count=config.reference_solutions,
                seed=self._seed("reference_solutions"),
            )
        if config.teacher is not None:
            yield night.run(
                ask_teacher,
                step.path.replace("distill", "ask_teacher"),
                config=config.teacher,
                **self._attempts(step),
            )

    def _own_answers(self, step: Step, checkpoint: Path, pace: Pace | None) -> Path:
        """Train on the student's own correct answers to hard problems, from tonight's rounds and recent nights."""
        config = self.night.config
        answers = self.night.run(
            own_answers,
            f"{step.path}_answers",
            per_problem=config.distill.traces_per_problem,
            **self._attempts(step),
        )
        return self._learn(
            distill,
            step.path,
            checkpoint,
            traces=(answers,),
            unseen=(),  # a benchmark's problem may be trained on even if the owner asked the same
            drawn_by=self._seed(step.path),
            config=config.distill.model_copy(update={"learning_rate": OWN_ANSWERS_RATE}),
            pace=pace,
        )

    def _feedback(self, checkpoint: Path, pace: Pace | None) -> Path:
        """Teach the owner's feedback, one enabled channel after the other. Returns the final checkpoint.

        `pace`: the time for all channels together. Each channel gets an equal share of the time left.
        """
        started, config = time.perf_counter(), self.night.config
        for number, name in enumerate(config.channels):
            share = None if pace is None else pace.left(started).share(len(config.channels) - number, name)
            lesson = {"day": self.journal, "pace": share, "config": getattr(config.lessons, name)}
            checkpoint = self._learn(feedback_lesson, f"{LESSONS}/{name}", checkpoint, **lesson)
        return checkpoint

    def _learn(self, lesson: Stage, path: str, checkpoint: Path, **inputs: Any) -> Path:
        """Run a lesson on a checkpoint. Returns the new checkpoint, or the same one if there was nothing to learn."""
        night, pace = self.night, inputs.get("pace")
        learned = night.make_checkpoint(
            lesson,
            path,
            checkpoint=checkpoint,
            max_tokens=night.config.engine.max_model_len,
            **inputs,
        )
        if pace and (fixed := read_steps(pace.file)) and fixed.steps < fixed.planned:
            log.info("%s: %s", run_name(path), fixed.sentence)
        return learned

    def _attempts(self, step: Step) -> dict[str, Any]:
        """Return arguments of stages that read the student's attempts on past nights and in rounds before `step`."""
        night, before = self.night, step.rounds.start - 1
        scored = (committed(folder / "score") for folder in rounds_of(night.folder, before))
        return {
            "model": night.config.name,
            "scores": tuple(one for one in scored if one),
            "upto": before,
            "night": night.folder,
        }

    def _seed(self, path: str) -> str:
        """Return the seed for drawing a lesson's examples. It differs from lesson to lesson and night to night."""
        return f"{self.night.config.seed} {self.night.date} {path}"
