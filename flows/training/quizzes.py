"""Quizzes on training problems. They show a night's trend and judge its lessons, but never decide a promotion."""

from dataclasses import dataclass, field
from pathlib import Path

from conf.schema import NightConfig
from conf.sections.benchmark import ExamPart
from conf.sections.stages import Step
from conf.storage.layout import QUIZ, check_path, quiz_of_block, run_name
from flows.run.context import Night, log
from rewards.data.benchmarks import configured
from tasks.evaluation.evaluate import quiz
from tasks.stage import Artifact, committed
from tasks.training.take_back import OUTCOME, check_lesson, sentence
from tasks.workers.worker import HoursOverError, WorkerDiedError

BETWEEN_ROUNDS = 100  # problems in a quiz between rounds
TAUGHT = {"distill": "worked solutions", "self_distill": "its own answers", "lessons": "what you taught"}


@dataclass
class Quizzes:
    """The quizzes before and after lessons and blocks. All ask the same problems, none of which is one of the exam's.

    Each checkpoint is quizzed only once: the quiz after a lesson is also the quiz before the next lesson.
    """

    night: Night
    taken: dict[Path, Artifact] = field(default_factory=dict)

    def ask(self, name: str, checkpoint: Path) -> Artifact | None:
        """Return a checkpoint's quiz, or None if the night has no quizzes. A new quiz runs as `quiz/<name>`."""
        config = self.night.config
        if not config.lessons.quiz_problems or not has_quiz(config):
            return None
        if checkpoint not in self.taken:
            problems = config.lessons.quiz_problems
            self.taken[checkpoint] = run_quiz(self.night, f"{QUIZ}/{name}", checkpoint, problems, "lessons")
        return self.taken[checkpoint]

    def ask_if_possible(self, name: str, checkpoint: Path) -> Artifact | None:
        """Return what `ask` returns, or log a warning and return None if time runs out or the engine dies.

        A quiz that was skipped stays skipped once the night has decided.
        """
        folder = self.night.folder
        if committed(folder / "decide") and committed(folder / QUIZ / name) is None and checkpoint not in self.taken:
            return None
        try:
            return self.ask(name, checkpoint)
        except (HoursOverError, WorkerDiedError) as error:
            log.warning("the quiz %s is skipped: %s", name, error)
            return None

    def keep_unless_worse(self, step: Step, before: Path, after: Path) -> Path:
        """Quiz the student before and after a lesson or block. Returns the checkpoint to continue with.

        If the student got worse, returns `before` and notes this for the report. Otherwise returns `after`. Without
        quizzes, or if a block's quiz is skipped because time runs out or the engine dies, also returns `after`.
        """
        night, name = self.night, quiz_of_block(step.path)
        ask = self.ask_if_possible if step.is_block else self.ask
        first, second = ask(f"{name}-before", before), ask(name, after)
        if first is None or second is None:
            return after
        path = f"{check_path(step.path)}/verdict"
        inputs = {"quizzes": {"before": first, "after": second}, "checkpoints": {"before": before, "after": after}}
        known = night.committed(check_lesson, path, **inputs)
        verdict = night.run(check_lesson, path, **inputs)
        what = f"The block of {run_name(name)}" if step.is_block else f"The lesson on {TAUGHT[step.kind]}{step.again}"
        if known is None and (said := sentence(what, verdict.read_json(OUTCOME))):
            night.note(said if step.is_block else f"{said} Its journal lines are taught again on a later night.")
        kept = night.checkpoint(verdict)
        night.edges.add(verdict, kept)
        return kept


def is_quizzed(config: NightConfig, number: int) -> bool:
    """Return whether a quiz follows round `number`. Without training problems (see `has_quiz`), none does."""
    every = config.grpo.quiz_every_rounds
    return every > 0 and number % every == 0 and has_quiz(config)


def has_quiz(config: NightConfig) -> bool:
    """Return whether the exam's target, or its whole benchmark, has training problems for a quiz."""
    return "train" in configured(quiz_part(config, 1)).splits


def quiz_part(config: NightConfig, problems: int) -> ExamPart:
    """Return what a quiz asks: the exam's target, or its whole benchmark if the target has no training problems."""
    part = config.exam.target.model_copy(update={"problems": problems})
    return part if "train" in configured(part).splits else part.model_copy(update={"subset": None})


def run_quiz(night: Night, path: str, checkpoint: Path, problems: int = BETWEEN_ROUNDS, seed: str = "quiz") -> Artifact:
    """Quiz a checkpoint on `problems` problems, never on those of the exam. The `seed` decides which ones it asks."""
    config = night.config
    return night.run(
        quiz,
        path,
        part=quiz_part(config, problems),
        seed=f"{config.seed} {night.date} {seed}",
        player=night.player(checkpoint, config.exam.max_completion_tokens),
    )
