"""The owner's feedback, one channel after the other: corrections, words, praise, picks."""

import time
from pathlib import Path

from conf.schema import NightConfig
from conf.sections.lessons import LessonConfig
from flows.run.context import Night
from models.lessons.pace import Pace
from tasks.stage import Artifact, Stage
from tasks.training.feedback import corrections, feedback, picks, words

LESSONS = "lessons"  # the folder of the channels' stages


def learn_feedback(
    night: Night, day: Artifact, checkpoint: Path, exam_questions: tuple[str, ...], pace: Pace | None = None
) -> Path:
    """Learn from every channel that is switched on, in order. Returns the last checkpoint.

    `pace`: the seconds that all channels together may take; each one gets an even share of what is left.
    """
    started, on = time.perf_counter(), channels(night.config)
    for number, (channel, lesson) in enumerate(on):
        night.rest_engine()
        share = None if pace is None else pace.left(started).share(len(on) - number, channel.name)
        checkpoint = night.learn(
            channel,
            f"{LESSONS}/{channel.name}",
            checkpoint,
            exam_questions,
            day=day,
            pace=share,
            config=lesson,
        )
    return checkpoint


def channels(config: NightConfig) -> list[tuple[Stage, LessonConfig]]:
    """Return the channels that are switched on, each with its configuration, in the order in which they are learned."""
    known = {channel.name: channel for channel in (corrections, words, feedback, picks)}
    return [(known[name], getattr(config.lessons, name)) for name in config.channels]
