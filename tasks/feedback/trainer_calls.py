"""The owner's own channels in the trainer's process: each lesson from one checkpoint to the next."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from conf.schema import TrainerConfig
from conf.sections.lessons import FeedbackConfig, LessonConfig, PicksConfig
from models.lessons.preference_data import Example, Judged, Pick
from tasks.training.trainer_process import lesson_config, study

Learnt = tuple[Path, list[dict[str, float]]]  # the new checkpoint, and the figures of every step


def imitate(
    checkpoint: Path, config: TrainerConfig, lesson: LessonConfig, examples: Sequence[Example], checkpoints: Path
) -> Learnt:
    """Supervised lessons on answers, or on text."""
    from models.lessons import sft_preference

    steps = partial(sft_preference.imitation, examples=examples, config=lesson, seed=config.seed)
    return study(checkpoint, lesson_config(config, lesson.learning_rate), steps, checkpoints)


def kto(
    checkpoint: Path, config: TrainerConfig, lesson: FeedbackConfig, examples: Sequence[Judged], checkpoints: Path
) -> Learnt:
    """Praise and scolding."""
    from models.lessons import sft_preference

    steps = partial(sft_preference.kto, examples=examples, config=lesson, seed=config.seed)
    return study(checkpoint, lesson_config(config, lesson.learning_rate), steps, checkpoints)


def dpo(
    checkpoint: Path, config: TrainerConfig, lesson: PicksConfig, picks: Sequence[Pick], checkpoints: Path
) -> Learnt:
    """Picks, each answer picked against the others."""
    from models.lessons import sft_preference

    steps = partial(sft_preference.dpo, picks=picks, config=lesson, seed=config.seed)
    return study(checkpoint, lesson_config(config, lesson.learning_rate), steps, checkpoints)
