"""The owner's feedback, one channel after the other: corrections, words, praise, picks."""

from pathlib import Path

from conf.schema import NightConfig
from conf.sections.lessons import LessonConfig
from flows.run.context import Night
from tasks.feedback.train import corrections, feedback, picks, words
from tasks.stage import Artifact, Stage

LESSONS = "lessons"  # the folder of the channels' stages


def learn_feedback(
    night: Night, day: Artifact, checkpoint: Path, exam_questions: tuple[str, ...], by_day: tuple[str, ...] = ()
) -> Path:
    """Learn from every channel that is switched on, in order. Returns the last checkpoint.

    `by_day`: where the lines are that the student has learned by day (`file:line`).
    """
    config = night.config
    for channel, lesson in channels(config):
        night.rest_engine()
        checkpoint = night.learn(
            channel,
            f"{LESSONS}/{channel.name}",
            checkpoint,
            exam_questions,
            day=day,
            unseen_share=config.unseen_share,
            by_day=by_day,
            config=lesson,
        )
    return checkpoint


def channels(config: NightConfig) -> list[tuple[Stage, LessonConfig]]:
    """Return the channels that are switched on, each with its configuration, in the order in which they are learned."""
    known = {channel.name: channel for channel in (corrections, words, feedback, picks)}
    return [(known[name], getattr(config.lessons, name)) for name in config.channels]
