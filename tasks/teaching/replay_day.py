"""The day copy at night: made anew from the journal, so that it can sit the exam beside the night's models."""

import json
from collections.abc import Sequence
from pathlib import Path

from conf.schema import NightConfig
from conf.sections.teaching import TeachConfig
from tasks.stage import Artifact, stage
from tasks.teaching import learner_process
from tasks.teaching.lessons import Lesson, lessons_without, why_only_tonight
from tasks.workers import Worker

DAY = "day.json"


def lessons_of_day(champion: Path, config: NightConfig, journal: Path, nights: Path) -> list[Lesson]:
    """Return the lessons that tonight's champion has not learnt and the day copy has, those of before tonight."""
    lessons = lessons_without(champion, journal, nights, config.name)
    return [lesson for lesson in lessons if lesson.night and not why_only_tonight(lesson, config.unseen_share)]


@stage(retries=2, resources=("journal", "nights", "checkpoints", "trainer"))
def replay_day(
    folder: Path,
    *,
    day: Artifact,
    champion: Path,
    config: NightConfig,
    teach: TeachConfig,
    anchors: Sequence[tuple[str, str]],
    journal: Path,
    nights: Path,
    checkpoints: Path,
    trainer: Worker,
) -> None:
    """Make the day copy anew, in the order of the lessons; keep its adapter as a checkpoint.

    `day`: the frozen journal, after which nothing is added. `teach`: the night's settings, which are the classroom's
    unless that had others on its command line. `anchors`: none if nobody taught this champion by day. `day.json` has
    the number of `lessons`, the names of those `learnt`, and their `sources` in the journal (`file:line`).
    checkpoint.txt names the champion where none was learnt.
    """
    lessons = lessons_of_day(champion, config, journal, nights)
    by_name = [(lesson.name, lesson.entries) for lesson in lessons]
    config = config.model_copy(update={"teach": teach})
    adapter, learnt = trainer.call(learner_process.keep_day_copy, champion, config, anchors, by_name, checkpoints)
    sources = [source for lesson in lessons if lesson.name in learnt for source in lesson.sources]
    (folder / DAY).write_text(json.dumps({"lessons": len(lessons), "learnt": learnt, "sources": sources}))
    (folder / "checkpoint.txt").write_text((adapter or champion).name)
