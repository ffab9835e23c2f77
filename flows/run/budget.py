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
from flows.run.history import finished, round_metrics
from tasks.layout import is_round
from tasks.workers import HoursOverError

# Seconds that whatever is not a round may go on after the night's hours: rather late with an outcome than without one.
LATE = 30 * 60.0
EXAM_MARGIN = 1.25  # the candidate's exam and ranking take at most so many times as long as the slower of the others'
REST = 60.0  # seconds for the last state, the decision, promotion and report
MERGE = 60.0  # seconds, where the night trains adapters


@dataclass(frozen=True)
class Hours:
    """Until when a night may go on: seconds since the epoch (inf: as long as it takes), and what says so."""

    end: float = math.inf
    because: str = ""

    @classmethod
    def of(cls, config: NightConfig, date: str, since: float | None = None) -> "Hours":
        """The hours of a night that starts or goes on: until its deadline or its budget's end, what comes first.

        `since`: from when on the budget counts, in seconds since the epoch (now).
        """
        ends: list[tuple[float, str]] = []
        if config.budget_minutes is not None:
            start = time.time() if since is None else since
            ends.append((start + 60 * config.budget_minutes, f"budget_minutes ({config.budget_minutes:g})"))
        if config.deadline is not None:
            moment = deadline_of(date, config.deadline, config.deadline_time_zone)
            ends.append((moment.timestamp(), f"the deadline ({config.deadline})"))
        return cls(*min(ends)) if ends else cls()


class Allowance:
    """Whether another round fits, so that the night ends within its hours: exam, decision and report included.

    `rounds`, `quizzes`: seconds of this night's rounds that ran whole, and of its quizzes. `exam`: of the slower exam
    of champion and student after distillation, sat before the rounds; the first quiz is thought to take as long.
    `ranking`: of the slower one's ranking of the held-out picks.
    """

    def __init__(self, hours: Hours, config: NightConfig, nights: Path, exam: float, ranking: float = 0.0) -> None:
        self.hours, self.config, self.nights = hours, config, nights
        self.rounds: list[float] = []
        self.quizzes: list[float] = []
        self.exam = exam
        self.after = EXAM_MARGIN * (exam + ranking) + REST + (MERGE if config.lora is not None else 0.0)

    def require(self, number: int, quizzed: bool) -> None:
        """Raises HoursOverError where the round does not fit any more. One of which nothing is known takes no time."""
        if math.isinf(self.hours.end):
            return
        needed = likely(self.rounds or past_rounds(self.nights, self.config.name))
        needed += max(self.quizzes, default=self.exam) if quizzed else 0.0
        self.require_seconds(f"round {number}", needed)

    def require_seconds(self, what: str, needed: float) -> None:
        """Raises HoursOverError where something that is to take so long does not fit any more."""
        left = self.hours.end - time.time()
        if left < needed + self.after:
            raise HoursOverError(
                f"{what} was not begun: it would take about {_told(needed)} and what comes after the rounds "
                f"{_told(self.after)}, but {self.hours.because} left {_told(max(left, 0.0))}"
            )


def end_of_asking(hours: Hours, config: NightConfig, folder: Path, before: Path | None) -> float:
    """Return until when a teacher may be asked, so that all but the rounds still fits: seconds since the epoch.

    The night before says what the other stages take; where it does not, half of the time left is theirs.
    """
    if math.isinf(hours.end):
        return math.inf
    waiting = stages_left(folder, config, before).items()
    others = [seconds for path, seconds in waiting if not path.startswith("ask_teacher") and not is_round(path)]
    known = sum(seconds for seconds in others if seconds is not None)
    left = hours.end - time.time() - REST
    return hours.end - REST - (max(known, left / 2) if None in others else known)


def likely(rounds: Sequence[float]) -> float:
    """What the next round takes after rounds of so many seconds: the slower of their median and the last; 0 of none."""
    return max(statistics.median(rounds), rounds[-1]) if rounds else 0.0


def past_rounds(nights: Path, name: str) -> list[float]:
    """Seconds of the rounds that ran whole in the newest finished night of a configuration's name; none without one."""
    for night in finished(nights, name):
        if found := [one["seconds_round"] for one in round_metrics(night) if "seconds_round" in one]:
            return found
    return []


def _told(seconds: float) -> str:
    return f"{seconds / 60:.1f} minutes"
