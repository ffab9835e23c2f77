"""The day copy on disk: a restart continues from it, instead of learning the day's lessons again."""

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path

from conf.schema import NightConfig
from conf.sections.teaching import ADAPTED, DAY_ADAPTER
from conf.storage.durable import read_json, write_atomically
from conf.storage.journal import line_of
from models.lessons.outcome import LessonOutcome
from tasks.teaching.lessons import Lesson

NOT_LEARNING = {"best_of", "max_answer_tokens", "implicit_reward"}  # settings that change no lesson
LESSONS = "lessons.json"  # beside an adapter: what it has learned, in order


def write(folder: Path, champion: Path, config: NightConfig, taught: Iterable[tuple[Lesson, LessonOutcome]]) -> None:
    """Write down, beside the adapter in `folder`, what it has learned from which champion and with which settings."""
    lessons = [[lesson.name, _digest(lesson), asdict(outcome)] for lesson, outcome in taught]
    write_atomically(folder / LESSONS, json.dumps({"made": _made(champion, config), "lessons": lessons}))


def find(
    folders: Iterable[Path], champion: Path, config: NightConfig | None, lessons: Sequence[Lesson]
) -> tuple[Path | None, list[LessonOutcome]]:
    """Return a saved adapter that has learned nothing but the first of these lessons, and the outcomes of those.

    The adapter is None if there is none. It must have learned with the settings of `config`, if that is not None.
    """
    made = _made(champion, config)
    for folder in folders:
        saved = read_json(folder / LESSONS, {})
        known = saved.get("lessons", [])
        ours = [[lesson.name, _digest(lesson)] for lesson in lessons[: len(known)]]
        if known and saved["made"][: len(made)] == made and [each[:2] for each in known] == ours:
            return folder, [LessonOutcome(**outcome) for _, _, outcome in known]
    return None, []


def _digest(lesson: Lesson) -> str:
    return hashlib.sha256(b"".join(line_of(entry) for entry in lesson.entries)).hexdigest()


def _made(champion: Path, config: NightConfig | None) -> list[object]:
    made: list[object] = [champion.name, ADAPTED, DAY_ADAPTER.model_dump(mode="json")]
    if config is None:
        return made
    settings = [
        part.model_dump(mode="json", exclude=NOT_LEARNING) for part in (config.teach, config.student, config.exam)
    ]
    return [*made, config.engine.max_model_len, config.unseen_share, *settings]
