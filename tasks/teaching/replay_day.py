"""Rebuilds the day copy from the journal at night, so that it can take the exam alongside the night's models."""

import json
from collections.abc import Sequence
from pathlib import Path

from conf.schema import NightConfig
from conf.sections.teaching import TeachConfig
from tasks.journal.freeze import frozen_lessons
from tasks.stage import Artifact, stage
from tasks.teaching import learner_process
from tasks.teaching.lessons import Lesson, lessons_without, why_only_tonight
from tasks.workers.worker import Worker

DAY = "day.json"


def lessons_of_day(champion: Path, day: Artifact, config: NightConfig, journal: Path) -> list[Lesson]:
    """Return the lessons in the frozen journal `day` that the day copy learns and `champion` has not learned yet."""
    frozen, lessons = frozen_lessons(day), lessons_without(champion, journal)
    tonights = (lesson for lesson in lessons if frozen.issuperset(lesson.names))
    return [lesson for lesson in tonights if not why_only_tonight(lesson, config.unseen_share)]


@stage(retries=2, resources=("journal", "checkpoints", "trainer"))
def replay_day(
    folder: Path,
    *,
    day: Artifact,
    champion: Path,
    config: NightConfig,
    teach: TeachConfig,
    anchors: Sequence[tuple[str, str]],
    journal: Path,
    checkpoints: Path,
    trainer: Worker,
) -> None:
    """Rebuild the day copy from its lessons, in order, and keep its adapter as a checkpoint.

    `day`: the frozen journal; later lessons are left out. `teach`: the night's settings, which the classroom also uses
    unless its command line sets others. `anchors`: empty if nobody has taught this champion by day. `day.json` has the
    number of `lessons` and the number `learned`. `checkpoint.txt` names the adapter or, if there is none, the champion.
    """
    lessons = lessons_of_day(champion, day, config, journal)
    config = config.model_copy(update={"teach": teach})
    adapter, count = trainer.call(learner_process.keep_day_copy, champion, config, anchors, lessons, checkpoints)
    (folder / DAY).write_text(json.dumps({"lessons": len(lessons), "learned": count}))
    (folder / "checkpoint.txt").write_text((adapter or champion).name)
