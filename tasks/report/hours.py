"""How a night's hours were divided: what was planned before the lessons, and what became of it."""

import json
from pathlib import Path
from typing import Any

from tasks.layout import DIVISION, MANIFEST, QUIZ, is_round

PARTS = {
    "lessons": ("distill", "self_distill", "rehearsal", "lessons", "import_traces", "reference_solutions"),
    "reward_model": ("fit_reward_model", "picks"),
    "rounds": ("round",),
    "quizzes": (QUIZ,),
    "exam": ("exam", "evaluate"),
}


def division_of(night: Path) -> dict[str, Any] | None:
    """Return the planned seconds by part (`planned`) and those that were spent (`real`), and what division.json has.

    Lessons and reward model are planned together, and so are rounds and quizzes. None before the hours were divided,
    and for a night without hours.
    """
    file = night / DIVISION
    division = json.loads(file.read_text()) if file.exists() else {"hours": None}
    if division["hours"] is None:
        return None
    planned = {part: division[part] for part in ("lessons", "rounds", "exam")}
    real = {part: sum(seconds_of(night, name) for name in names) for part, names in PARTS.items()}
    return division | {"planned": planned, "real": real}


def seconds_of(night: Path, name: str) -> float:
    """Return the seconds of all committed stages whose path begins with this name, with the rounds' updates."""
    folders = [each for each in night.glob(f"{name}*") if is_round(each.name) or _stem(each.name) == name]
    manifests = [file for folder in folders for file in folder.rglob(MANIFEST)]
    updates = [file for folder in folders for file in folder.glob("checkpoint/metrics.json")]
    spent = sum(json.loads(file.read_text())["seconds"] for file in manifests)
    return spent + sum(json.loads(file.read_text()).get("seconds_update", 0.0) for file in updates)


def _stem(name: str) -> str:
    """Return a stage's name without the number of its repetition: `distill` of `distill-2`."""
    stem, _, number = name.rpartition("-")
    return stem if number.isdecimal() else name
