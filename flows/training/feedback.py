"""The owner's feedback, one channel after the other: corrections, words, praise, picks."""

from pathlib import Path

from conf.schema import NightConfig
from conf.sections.lessons import LessonConfig
from flows.evaluation.run import evaluate_for_report
from flows.run.context import Night
from tasks.feedback.train import corrections, feedback, picks, words
from tasks.stage import Artifact, Stage

LESSONS = "lessons"  # the folder of the channels' stages


def learn_feedback(
    night: Night, day: Artifact, checkpoint: Path, exam_questions: tuple[str, ...], by_day: tuple[str, ...] = ()
) -> Path:
    """Learn from every channel that is switched on, in order. Returns the last checkpoint.

    With `lessons.examine`, an exam follows each channel that taught something; the checkpoint before the first such
    channel is examined too. `by_day`: where the lines are that the student has learnt by day (`file:line`).
    """
    config, examined = night.config, False
    for channel, lesson in channels(config):
        path, before = f"{LESSONS}/{channel.name}", checkpoint
        night.rest_engine()
        checkpoint = night.learn(
            channel,
            path,
            before,
            exam_questions,
            day=day,
            unseen_share=config.unseen_share,
            by_day=by_day,
            config=lesson,
        )
        if config.lessons.examine and checkpoint != before:
            if not examined:
                evaluate_for_report(night, f"{LESSONS}/evaluate", before)
            evaluate_for_report(night, f"{path}/evaluate", checkpoint)
            examined = True
            night.rest_engine()  # the next step needs the trainer
    return checkpoint


def channels(config: NightConfig) -> list[tuple[Stage, LessonConfig]]:
    """Return the channels that are switched on, each with its configuration, in the order in which they are learned."""
    known = {channel.name: channel for channel in (corrections, words, feedback, picks)}
    return [(known[name], getattr(config.lessons, name)) for name in config.channels]
