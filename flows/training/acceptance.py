"""Lessons that can be taken back: a quiz before and after each one."""

from pathlib import Path

from conf.schema import NightConfig
from flows.run.context import Night
from flows.training.validation import has_quiz, run_quiz
from tasks.layout import run_name
from tasks.plan import check_path
from tasks.stage import Artifact
from tasks.training.take_back import LEVEL, OUTCOME, half_step, judge_lesson, p_worse, sentence


def is_checked(config: NightConfig) -> bool:
    """Return whether lessons are checked; a target without training problems has no quiz."""
    return config.lessons.quiz_problems > 0 and has_quiz(config)


def accept_lesson(night: Night, lesson: str, before: Path, after: Path, exam_questions: tuple[str, ...]) -> Path:
    """Quiz the student before and after a lesson (its stage's path). Returns the checkpoint to go on with.

    The lesson's own, unless the student got worse (p < 0.1); then its half step, or else the one before. The quiz asks
    training problems, never the exam's. What did not stay as it was is noted for the report.
    """
    path, verdict = check_path(lesson), list[Artifact]()

    def ask(name: str, checkpoint: Path) -> Artifact:
        problems = night.config.lessons.quiz_problems
        return run_quiz(night, f"{path}/{name}", checkpoint, exam_questions, problems, "lessons")

    def check() -> None:
        checkpoints = {"before": before, "after": after}
        quizzes = {name: ask(name, each) for name, each in checkpoints.items()}
        night.rest_engine()
        if p_worse(quizzes["before"], quizzes["after"]) < LEVEL:
            checkpoints["half"] = night.make_checkpoint(
                half_step,
                f"{path}/half_step",
                before=before,
                after=after,
                trust_remote_code=night.config.student.trust_remote_code,
                checkpoints=night.home.checkpoints,
                trainer=night.trainer,
            )
            quizzes["half"] = ask("half", checkpoints["half"])
            night.rest_engine()
        known = judge_lesson.committed(night.folder, f"{path}/verdict", quizzes=quizzes, checkpoints=checkpoints)
        verdict.append(night.run(judge_lesson, f"{path}/verdict", quizzes=quizzes, checkpoints=checkpoints))
        if known is None and (what := sentence(run_name(lesson), verdict[0].read_json(OUTCOME))):
            night.note(what)

    night.run_nested("check", path, check)
    return night.checkpoint(verdict[0])
