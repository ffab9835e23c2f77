"""What is checked before a night writes anything: each fault is one line and exit code 2."""

import json
from typing import Any

from conf.home import Home, InputError
from conf.schema import NightConfig
from flows.doctor import require
from rewards import benchmarks
from tasks.decision import smallest_guard
from tasks.enroll import check_source


def check_night(home: Home, config: NightConfig) -> None:
    """Raises InputError for whatever would make the night fail for a reason that its owner can mend."""
    require(home, config)
    check_source(config.student)
    for source in config.benchmarks:
        benchmarks.load(source.name, source.source, source.levels).problems("train")
    check_exam(config)


def check_exam(config: NightConfig) -> None:
    """Raises InputError where the exam's problems are not there, or are too few for what they are to show."""
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
    try:
        return json.loads((home.night(date) / "summary.json").read_text())
    except OSError:  # no such night; and whether the home can be read at all is for the other checks to say
        return None
