"""A night's hours: until when it may go on, and whether another round fits."""

import math
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from conf.schema import NightConfig
from conf.sections.hours import deadline_of
from flows.run.estimate import stages_left
from flows.run.history import finished, round_seconds
from tasks.workers import HoursOverError

# Seconds that exam, decision and report may take after the night's hours: a late outcome is better than none.
LATE = 30 * 60.0
EXAM_MARGIN = 1.25  # the candidate's exam and ranking take at most this many times the slower of the others'
REST = 60.0  # seconds for the last state, the decision, promotion and report
MERGE = 60.0  # seconds, where the night trains adapters


@dataclass(frozen=True)
class Hours:
    """When a night's hours end: seconds since the epoch (inf: never), and the setting that says so."""

    end: float = math.inf
    because: str = ""

    @classmethod
    def of(cls, config: NightConfig, date: str, since: float | None = None) -> "Hours":
        """Return the hours of a night that starts or resumes: until its deadline or the end of its budget, the earlier.

        `since`: when the night began, in seconds since the epoch (default: now).
        """
        ends: list[tuple[float, str]] = []
        start = time.time() if since is None else since
        if config.budget_minutes is not None:
            ends.append((start + 60 * config.budget_minutes, f"budget_minutes ({config.budget_minutes:g})"))
        if config.deadline is not None:
            moment = deadline_of(date, config.deadline, config.deadline_time_zone, start)
            ends.append((moment.timestamp(), f"the deadline ({config.deadline})"))
        return cls(*min(ends)) if ends else cls()


class Allowance:
    """Decides whether another round fits into the night's hours, with exam, decision and report after it.

    `rounds`, `quizzes`: seconds of this night's uninterrupted rounds, and of its quizzes. `exam`: of the slower one of
    the exams before the rounds; the first quiz is expected to take as long. `ranking`: of the slower ranking of the
    held-out picks.
    """

    def __init__(self, hours: Hours, config: NightConfig, nights: Path, exam: float, ranking: float = 0.0) -> None:
        self.hours, self.config, self.nights = hours, config, nights
        self.rounds: list[float] = []
        self.quizzes: list[float] = []
        self.exam = exam
        self.after = EXAM_MARGIN * (exam + ranking) + REST + (MERGE if config.merges else 0.0)

    def require(self, number: int, quizzed: bool) -> None:
        """Raise HoursOverError where the round does not fit any more. A first round is expected to take no time."""
        if math.isinf(self.hours.end):
            return
        needed = expected_seconds(self.rounds or past_rounds(self.nights, self.config.name))
        needed += max(self.quizzes, default=self.exam) if quizzed else 0.0
        self.require_seconds(f"round {number}", needed)

    def require_seconds(self, what: str, needed: float) -> None:
        """Raise HoursOverError where something that takes so many seconds does not fit any more."""
        left = self.hours.end - time.time()
        if left < needed + self.after:
            raise HoursOverError(
                f"{what} was not begun: it would take about {_minutes(needed)} and what comes after the rounds "
                f"{_minutes(self.after)}, but {self.hours.because} left {_minutes(max(left, 0.0))}"
            )


def end_of_asking(hours: Hours, config: NightConfig, folder: Path, before: Path | None) -> float:
    """Return until when a teacher may be queried, in seconds since the epoch: all stages but the rounds still fit then.

    They take as long as in the night before; without one, half of the time left.
    """
    if math.isinf(hours.end):
        return math.inf
    if before is None:
        return hours.end - REST - (hours.end - time.time() - REST) / 2
    waiting = stages_left(folder, config, before).items()
    return hours.end - REST - sum(s for path, s in waiting if not path.startswith(("ask_teacher", "round-")))


def expected_seconds(rounds: Sequence[float]) -> float:
    """Return what the next round takes after these: the larger of their median and the last; 0 after none."""
    return max(statistics.median(rounds), rounds[-1]) if rounds else 0.0


def past_rounds(nights: Path, name: str) -> list[float]:
    """Return the seconds of the uninterrupted rounds of the newest finished night of a configuration's name."""
    return next(filter(None, map(round_seconds, finished(nights, name))), [])


def _minutes(seconds: float) -> str:
    return f"{seconds / 60:.1f} minutes"
