"""A night's hours: until when it may go on, how they are divided, and whether another round fits.

| part | of the night's hours |
|:--|:--|
| exam | what its longest planned length takes, at most 15 %: else that length is halved |
| report | a minute for decision, promotion and report; another where adapters are merged |
| lessons, reward model | a third of what is left before the first lesson, together |
| rounds | the rest, with their quizzes |
"""

import json
import math
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from conf.schema import NightConfig
from conf.sections.hours import deadline_of
from conf.sections.stages import Step
from conf.storage.durable import write_atomically
from conf.storage.layout import DIVISION, MANIFEST, PACE_FOLDER
from flows.run.history import finished, round_seconds
from models.lessons.pace import Pace
from tasks.evaluation.sequential import looks
from tasks.stage import Artifact
from tasks.workers.worker import HoursOverError

# Seconds that exam, decision and report may take after the night's hours: a late outcome is better than none.
LATE = 30 * 60.0
EXAM_SHARE, LESSONS_SHARE = 0.15, 1 / 3
LEAST_EXAM = 100  # problems: the first look is never shortened
REST = 60.0  # seconds for the last state, the decision, promotion and report
MERGE = 60.0  # seconds, where the night trains adapters


@dataclass(frozen=True)
class Hours:
    """When a night's hours began and end: seconds since the epoch (inf: never), and the setting that says so."""

    end: float = math.inf
    because: str = ""
    start: float = 0.0

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
        return cls(*min(ends), start) if ends else cls(start=start)


@dataclass(frozen=True)
class Division:
    """How a night's hours are divided, in seconds; fixed before the first lesson, and kept when the night resumes.

    `most`: problems in the longest exam. `hours`: from the first start to the end. `before`: what was over when they
    were divided. `round`: what one is expected to take; None: unknown. `enough`: minutes of a night into which a round
    would fit. Without hours all but `most` are None, and nothing is cut short.
    """

    most: int
    exam: float | None = None
    hours: float | None = None
    before: float | None = None
    after: float | None = None
    lessons: float | None = None
    rounds: float | None = None
    round: float | None = None
    enough: int | None = None

    @property
    def looks(self) -> tuple[int, ...]:
        """The exam's looks: how many problems are answered after each."""
        return tuple(looks(self.most))

    def pace(self, night: Path, step: Step, steps: Sequence[Step]) -> Pace | None:
        """Return the share of a lesson: what is left for all, in even shares; None where the night has no hours."""
        if self.lessons is None:
            return None
        waiting = max(1, sum(not other.is_block and other.number >= step.number for other in steps))
        return Pace(self.left(night, steps) / waiting, night / PACE_FOLDER / f"{step.path}.json")

    def left(self, night: Path, steps: Sequence[Step]) -> float:
        """Return what is left of the seconds for lessons and reward model; inf where the night has no hours."""
        if self.lessons is None:
            return math.inf
        spent = sum(_seconds(night / step.path) for step in steps if not step.is_block)
        return max(0.0, self.lessons - spent - _seconds(night / "fit_reward_model"))


def divide(
    hours: Hours,
    config: NightConfig,
    night: Path,
    problems: int,
    stored: int,
    quiz: Artifact | None,
    expected: Callable[[], tuple[float, int] | None] = lambda: None,
) -> Division:
    """Return the night's division: as it was written down, or made now.

    `problems`: of the exam's target. `stored`: how many of them the champion has answered before. `quiz`: the one
    before the lessons, which shows how long an answer takes; without it the exam gets its largest share. `expected`:
    the seconds of a round, and the minutes of a night that has time for one; asked only where a night has hours.
    """
    file = night / DIVISION
    if file.exists():
        return Division(**json.loads(file.read_text()))
    division = Division(problems)
    if not math.isinf(hours.end):
        whole, left, most = hours.end - hours.start, hours.end - time.time(), problems
        exam = EXAM_SHARE * whole
        if quiz is not None:
            seconds_an_answer = seconds_answering(quiz) / config.lessons.quiz_problems
            while (needed := seconds_an_answer * (2 * most - min(stored, most))) > exam and most > LEAST_EXAM:
                most = max(LEAST_EXAM, most // 2)
            exam = needed
        after = REST + (MERGE if config.merges else 0.0)
        shared = max(0.0, left - exam - after)
        lessons = LESSONS_SHARE * shared if any(not step.is_block for step in config.steps) else 0.0
        known = expected() or (None, None)
        division = Division(most, exam, whole, whole - left, after, lessons, shared - lessons, *known)
    write_atomically(file, json.dumps(asdict(division)))
    return division


def seconds_answering(quiz: Artifact | None) -> float:
    """Return what a quiz's answers took, without the engine's start; 0 without a quiz."""
    return 0.0 if quiz is None else quiz.figure("seconds_answering") or quiz.seconds


def _seconds(stage: Path) -> float:
    """Return the seconds of a committed stage, or of those in its folder; 0 where there is none."""
    return sum(json.loads(file.read_text())["seconds"] for file in stage.rglob(MANIFEST))


class Allowance:
    """Decides whether another round fits into the night's hours, with quiz, exam, decision and report after it.

    `rounds`, `quizzes`: seconds of this night's uninterrupted rounds, and of the quizzes between them. `quiz`: of the
    one before the lessons; `latest`: of the one after them, as long as which that after the rounds takes (default:
    `quiz`). A student that has learned to be brief also takes less time in the exam. `ranking`: of the slower ranking
    of the held-out picks.
    """

    def __init__(
        self,
        hours: Hours,
        config: NightConfig,
        nights: Path,
        division: Division,
        *,
        quiz: float = 0.0,
        latest: float | None = None,
        ranking: float = 0.0,
    ) -> None:
        self.hours, self.config, self.nights = hours, config, nights
        self.first_round = division.round or 0.0  # expected, where no earlier night had any
        self.rounds: list[float] = []
        self.quizzes: list[float] = []
        self.quiz = quiz if latest is None else latest
        saved = division.most * max(0.0, quiz - self.quiz) / max(1, config.lessons.quiz_problems)
        self.after = max(0.0, (division.exam or 0.0) - saved) + (division.after or 0.0) + self.quiz + ranking

    @property
    def round(self) -> float:
        """Seconds that the next round is expected to take: the larger of median and last so far; 0: unknown."""
        rounds = self.rounds or past_rounds(self.nights, self.config.name)
        return max(statistics.median(rounds), rounds[-1]) if rounds else self.first_round

    def rate_factor(self, number: int) -> float:
        """Return the share of the learning rate at which a round learns.

        It falls linearly from 1 towards 0 over the rounds that are planned, or that will fit into the hours.
        """
        last = self.config.rounds
        if not math.isinf(self.hours.end) and self.round:
            left = self.hours.end - time.time() - self.after
            last = min(last, number - 1 + max(1, math.floor(left / self.round)))
        return 1 - (number - 1) / last

    def require(self, number: int, quizzed: bool) -> None:
        """Raise HoursOverError where the round does not fit any more."""
        if math.isinf(self.hours.end):
            return
        needed = self.round + (max(self.quizzes, default=self.quiz) if quizzed else 0.0)
        self.require_seconds(f"round {number}", needed)

    def require_seconds(self, what: str, needed: float) -> None:
        """Raise HoursOverError where something that takes so many seconds does not fit any more."""
        left = self.hours.end - time.time()
        if left < needed + self.after:
            raise HoursOverError(
                f"{what} was not begun: it would take about {_minutes(needed)} and what comes after the rounds "
                f"{_minutes(self.after)}, but {self.hours.because} left {_minutes(max(left, 0.0))}"
            )


def end_of_asking(hours: Hours) -> float:
    """Return until when a teacher or judge may be asked, in seconds since the epoch: half of the time left."""
    return hours.end - REST - (hours.end - time.time() - REST) / 2 if math.isfinite(hours.end) else math.inf


def past_rounds(nights: Path, name: str) -> list[float]:
    """Return the seconds of the uninterrupted rounds of the newest finished night of a configuration's name."""
    return next(filter(None, map(round_seconds, finished(nights, name))), [])


def _minutes(seconds: float) -> str:
    return f"{seconds / 60:.1f} minutes"
