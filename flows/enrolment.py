"""Which models a night begins with: the champion, the student as it comes, the teacher."""

from pathlib import Path

from conf.home import inside
from conf.schema import StudentConfig
from flows.night import Night
from models.checkpoint import is_whole, verify
from models.durable import write_atomically
from tasks.credit_by_teacher import find_teacher
from tasks.enroll import STARTER_MODEL, enroll
from tasks.registry import DAYTIME, Registry
from tasks.stage import committed
from tasks.tracking import Tracking

IRREPLACEABLE = (
    "no night can make a champion again: bring the folder back from a backup, or go back to the one before with "
    "`nightschool rollback --config {config}`, and begin this night anew with --fresh"
)


def champion_of(night: Night, tracking: Tracking) -> Path:
    """The checkpoint that serves by day; on the first night the student as it comes. It stays tonight's champion."""
    note = night.folder / "champion.txt"
    if not note.exists():
        serving = Registry(tracking.client, night.config.name).named(DAYTIME)
        write_atomically(note, serving.digest if serving else _enrolled(night).name)
    champion = inside(night.home.checkpoints, note.read_text())
    if not is_whole(champion) and committed(night.folder / "enroll"):
        _enrolled(night)
    verify(champion, IRREPLACEABLE.format(config=night.folder / "config.yaml"))
    return champion


def teacher_of(night: Night, student: Path) -> Path | None:
    """The folder of the model that on-policy distillation asks, if the night has any."""
    config = night.config
    if config.on_policy is None or all(step.kind != "on_policy" for step in config.steps):
        return None
    asked = config.on_policy
    if asked.teacher == STARTER_MODEL:
        unpacked = _enrolled(night, "enroll_teacher", StudentConfig(source=STARTER_MODEL))
        asked = asked.model_copy(update={"teacher": str(unpacked)})
    return find_teacher(asked, student, config.student.trust_remote_code)


def _enrolled(night: Night, place: str = "enroll", student: StudentConfig | None = None) -> Path:
    return night.made(
        enroll,
        place,
        student=student or night.config.student,
        checkpoints=night.home.checkpoints,
        trainer=night.trainer,
    )
