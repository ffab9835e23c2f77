"""The owner's own channels in the trainer's process: each lesson from one checkpoint to the next."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from conf.lessons import FeedbackConfig, LessonConfig, PicksConfig
from conf.schema import TrainerConfig
from models.examples import Example, Judged
from models.picks import Pick
from tasks.learner import lesson_config, study

Learnt = tuple[Path, list[dict[str, float]]]  # the new checkpoint, and the figures of every step


def imitate(
    checkpoint: Path, config: TrainerConfig, lesson: LessonConfig, examples: Sequence[Example], checkpoints: Path
) -> Learnt:
    """Supervised lessons on answers, or on text."""
    from models import lessons

    steps = partial(lessons.imitation, examples=examples, config=lesson, seed=config.seed)
    return study(checkpoint, lesson_config(config, lesson.learning_rate), steps, checkpoints)


def kto(
    checkpoint: Path, config: TrainerConfig, lesson: FeedbackConfig, examples: Sequence[Judged], checkpoints: Path
) -> Learnt:
    """Praise and scolding."""
    from models import lessons

    steps = partial(lessons.kto, examples=examples, config=lesson, seed=config.seed)
    return study(checkpoint, lesson_config(config, lesson.learning_rate), steps, checkpoints)


def dpo(
    checkpoint: Path, config: TrainerConfig, lesson: PicksConfig, picks: Sequence[Pick], checkpoints: Path
) -> Learnt:
    """Picks, each answer picked against the others."""
    from models import lessons

    steps = partial(lessons.dpo, picks=picks, config=lesson, seed=config.seed)
    return study(checkpoint, lesson_config(config, lesson.learning_rate), steps, checkpoints)
