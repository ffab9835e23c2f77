"""What is checked before a night writes anything: each fault is one line and exit code 2."""

import json
from pathlib import Path
from typing import Any

from conf.home import Home, InputError
from conf.schema import NightConfig
from flows.doctor import require
from flows.night import check_identity
from rewards import benchmarks
from tasks.decision import smallest_guard
from tasks.enroll import check_student


def check_night(home: Home, config: NightConfig, date: str, fresh: bool) -> None:
    """Raises InputError for whatever would make the night fail for a reason that its owner can mend."""
    require(home, config)
    if not fresh:
        check_identity(home.night(date), config)
    folder = Path(config.student.source)
    if config.student.source != "starter" and folder.is_dir():
        check_student(folder)
    for source in config.benchmarks:
        benchmarks.load(source.name, source.source, source.levels).problems("train")
    for part in config.exam.parts:
        if not benchmarks.load(part.benchmark, part.source, part.levels).problems("test"):
            raise InputError(f"exam: {part.name} has no problems; name other levels")
    for guard in config.exam.guards:
        if guard.problems < (least := smallest_guard(guard.margin)):
            raise InputError(
                f"exam.guards: {guard.name}: {guard.problems} problems can never show a loss below its margin of "
                f"{guard.margin}; at least {least}, or a wider margin"
            )


def finished_summary(home: Home, date: str) -> dict[str, Any] | None:
    """The summary of a night that is finished; None of any other."""
    file = home.night(date) / "summary.json"
    return json.loads(file.read_text()) if file.exists() else None
