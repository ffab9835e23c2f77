"""The quizzes between rounds: small exams on training problems, which show the trend and choose nothing."""

from pathlib import Path
from typing import Any

from conf.schema import NightConfig
from conf.sections.benchmark import ExamPart
from flows.run.context import Night
from tasks.evaluation.evaluate import quiz
from tasks.layout import place_of
from tasks.stage import Artifact
from tasks.tables import EVALUATIONS, read_table


def is_quizzed(config: NightConfig, number: int) -> bool:
    """Whether a quiz comes after the round; an exam's target without training problems has none to ask."""
    every = config.grpo.quiz_every_rounds
    return every > 0 and number % every == 0 and config.exam.target.benchmark != "humaneval"


def quizzed(config: NightConfig) -> ExamPart:
    """Of what a quiz asks training problems."""
    target = config.exam.target
    whole = target.benchmark == "math"  # MATH-500 is a part of the exam's problems only
    changes = {"problems": config.grpo.quiz_problems, "subset": None if whole else target.subset}
    return target.model_copy(update=changes)


def hold_quiz(night: Night, number: int, checkpoint: Path, exam_questions: tuple[str, ...]) -> Artifact | None:
    """The quiz after a round, sat by its checkpoint; None where that is pruned and no quiz was kept."""
    config = night.config
    place = f"{place_of(number)}/quiz"
    inputs: dict[str, Any] = {
        "part": quizzed(config),
        "seed": f"{config.seed} {night.date} quiz",
        "checkpoint": checkpoint,
        "student": config.student,
        "config": config.sampler,
        "sandbox": config.sandbox,
        "max_completion_tokens": config.exam.max_completion_tokens,
        "exam_questions": exam_questions,
    }
    if not checkpoint.is_dir() and quiz.committed(night.folder, place, **inputs) is None:
        return None
    return night.run(quiz, place, **inputs, engine=night.engine)


def quiz_accuracy(found: Artifact) -> float | None:
    """The share of a quiz's graded answers that was right; None where none could be graded."""
    graded = read_table(found.folder / "evaluations.parquet", EVALUATIONS).correct.dropna()
    return None if graded.empty else float(graded.mean())
