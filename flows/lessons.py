"""The owner's own channels, one after the other: corrections, words, praise, picks."""

from pathlib import Path
from typing import Any

from conf.schema import NightConfig
from flows.night import Night
from flows.sitting import sit
from tasks.lessons import corrections, feedback, picks, words
from tasks.stage import Artifact, Stage

LESSONS = "lessons"  # the stages' folder in the night's


def learn(night: Night, day: Artifact, checkpoint: Path, exam_questions: tuple[str, ...]) -> Path:
    """Takes a checkpoint through every channel that is switched on. Returns the last one.

    With `lessons.examine`, each channel that taught something is followed by an exam of its own, in its folder; the
    checkpoint before the first such sits one too.
    """
    config, examined = night.config, False
    for channel, own in channels(config):
        place, before = f"{LESSONS}/{channel.name}", checkpoint
        night.rest_engine()
        checkpoint = night.made(
            channel,
            place,
            day=day,
            checkpoint=before,
            trainer_config=config.trainer,
            student=config.student,
            exam_questions=exam_questions,
            max_tokens=config.engine.max_model_len,
            checkpoints=night.home.checkpoints,
            trainer=night.trainer,
            **own,
        )
        if config.lessons.examine and checkpoint != before:
            if not examined:
                sit(night, f"{LESSONS}/evaluate", before)
            sit(night, f"{place}/evaluate", checkpoint)
            examined = True
    return checkpoint


def channels(config: NightConfig) -> list[tuple[Stage, dict[str, Any]]]:
    """The channels that are switched on, with what each is given of its own, in the order in which they are learnt."""
    lessons, both = config.lessons, config.preference_learning == "both"
    unseen = {"held_out_share": config.reward_model.held_out_share if both else 0.0}
    known: list[tuple[bool, Stage, dict[str, Any]]] = [
        (lessons.corrections.enabled, corrections, {"config": lessons.corrections}),
        (lessons.words.enabled, words, {"config": lessons.words}),
        (lessons.feedback.enabled, feedback, {"config": lessons.feedback}),
        (
            config.preference_learning != "reward_model",
            picks,
            {"config": lessons.picks} | unseen,
        ),
    ]
    return [(channel, own) for on, channel, own in known if on]
