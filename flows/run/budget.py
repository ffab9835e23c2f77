"""A night's time budget: when its hours end, how they are divided, and whether another round fits.

| phase | share of the night's hours |
|:--|:--|
| exam | the time for its maximum number of problems; while that exceeds 15 %, the number is halved (to 100 at least) |
| guards | part of the exam's time, which is at least that for one look and the guards |
| report | one minute for decision, promotion and report, and one more if adapters are merged |
| lessons, reward model | at most half the learning time (time left before them, minus exam and report); see below |
| rounds | the rest, including their quizzes |

On a slow machine, lessons get more: the time of up to ten rounds, as long as three rounds still fit.
"""

import json
import math
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from conf.schema import NightConfig
from conf.sections.stages import Step
from conf.storage.durable import write_atomically
from conf.storage.layout import DIVISION, MANIFEST, PACE_FOLDER
from flows.run.dates import Hours
from flows.run.estimate import EXAM_SHARE, Estimate, most_for_lessons
from models.lessons.pace import TIMED, Pace
from tasks.evaluation.sequential import looks
from tasks.stage import Artifact
from tasks.workers.worker import HoursOverError

# Seconds that saving the last round, exam, decision and report may run past the night's hours: a late outcome is better
# than none.
LATE = 30 * 60.0
LEAST_EXAM = 100  # problems: the first look is never shortened
REST = 60.0  # seconds to save the last state, decide, promote and write the report
MERGE = 60.0  # seconds, if the night merges adapters


@dataclass(frozen=True)
class Division:
    """How a night divides its hours, in seconds. Fixed before the first lesson, and kept when the night resumes.

    `most`: the maximum number of exam problems. `hours`: the time from the night's first start to its end. `before`:
    the time spent before the division. `after`: the time for the report. `round`: the time expected per round, or None.
    `enough`: the minutes of the shortest night that fits the lesson and one round. `steps`: the number of optimizer
    steps expected to fit into a worked-solutions lesson, or None. `answer`: the time per answer in the quiz before the
    lessons, or None. Without a time limit, only `most` is set.
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
    steps: int | None = None
    answer: float | None = None

    @property
    def looks(self) -> tuple[int, ...]:
        """For each look of the exam, the number of problems answered up to and including that look."""
        return tuple(looks(self.most))

    def pace(self, night: Path, step: Step, steps: Sequence[Step]) -> Pace | None:
        """Give a lesson an equal share of the time left for lessons. Returns None if the night has no time limit."""
        if self.lessons is None:
            return None
        waiting = max(1, sum(not other.is_block and other.number >= step.number for other in steps))
        return Pace(self.left(night, steps) / waiting, night / PACE_FOLDER / f"{step.path}.json")

    def left(self, night: Path, steps: Sequence[Step]) -> float:
        """Return the seconds left for lessons and the reward model, or inf if the night has no time limit."""
        if self.lessons is None:
            return math.inf
        paths = {"fit_reward_model", *(step.path for step in steps if not step.is_block)}
        paths |= {step.rehearsal_path for step in steps if step.kind == "distill"}
        return max(0.0, self.lessons - sum(_seconds(night / path) for path in paths))


def divide(
    hours: Hours,
    config: NightConfig,
    night: Path,
    problems: int,
    stored: int,
    quiz: Artifact | None,
    expected: Callable[[], Estimate | None] = lambda: None,
    guards: int = 0,
) -> Division:
    """Divide the night's hours and record the division, or return the recorded division if there is one.

    `problems`: the number of problems in the exam's target. `stored`: how many of these the champion has answered on
    earlier nights. `quiz`: the quiz before the lessons, which shows the time per answer; without it, the exam gets its
    maximum share. `expected`: estimates the night (see speed.py); called only if it has a time limit. `guards`: the
    number of problems in the exam's guards, which both models answer.
    """
    file = night / DIVISION
    if file.exists():
        return Division(**json.loads(file.read_text()))
    division = Division(problems)
    if not math.isinf(hours.end):
        whole, left, most = hours.end - hours.start, hours.end - time.time(), problems
        exam, answer = EXAM_SHARE * whole, None
        if quiz is not None:
            answer = seconds_answering(quiz) / (quiz.figure("asked") or config.lessons.quiz_problems)

            def answers(asked: int, guards: int = 0) -> int:
                return 2 * asked - min(stored, asked) + 2 * guards

            while answer * answers(most) > exam and most > LEAST_EXAM:
                most = max(LEAST_EXAM, most // 2)
            exam = answer * max(answers(most), answers(min(problems, LEAST_EXAM), guards))
        after = REST + (MERGE if config.merges else 0.0)
        shared = max(0.0, left - exam - after)
        known = expected()
        a_round, a_step = (known.round, known.step) if known else (None, None)
        lessons = most_for_lessons(shared, a_round) if any(not step.is_block for step in config.steps) else 0.0
        sharing = sum(step.kind == "distill" for step in config.steps)
        steps = max(TIMED, math.ceil(lessons / sharing / a_step)) if a_step and sharing else None
        rounds, before = shared - lessons if config.rounds else 0.0, whole - left
        lessons += _seconds(night / "fit_reward_model")  # if it was fitted before, `left` subtracts its time again
        enough = known.minutes_enough() if known else None
        division = Division(most, exam, whole, before, after, lessons, rounds, a_round, enough, steps, answer)
    write_atomically(file, json.dumps(asdict(division)))
    return division


def seconds_answering(quiz: Artifact | None) -> float:
    """Return how many seconds a quiz spent on answering, excluding the engine's start-up; 0 without a quiz."""
    return 0.0 if quiz is None else quiz.figure("seconds_answering") or quiz.seconds


def _seconds(stage: Path) -> float:
    """Return the total seconds of the committed stages in or below a folder, or 0 if there are none."""
    return sum(json.loads(file.read_text())["seconds"] for file in stage.rglob(MANIFEST))


class Allowance:
    """Decides whether another round fits into the night's hours along with the quiz, exam, decision and report.

    All times are in seconds. `rounds`, `quizzes`: the times of tonight's uninterrupted rounds and of tonight's quizzes
    between rounds. `quiz`, `latest`: the times of the quizzes before and after the lessons (default: `quiz`). The quiz
    after the rounds is expected to take as long as `latest`. If `latest` is below `quiz`, the answers have become
    shorter, so less time is reserved for the exam. `ranking`: the time of the slowest ranking of the held-out picks.
    """

    def __init__(
        self,
        hours: Hours,
        config: NightConfig,
        division: Division,
        *,
        quiz: float = 0.0,
        latest: float | None = None,
        ranking: float = 0.0,
    ) -> None:
        self.hours, self.config = hours, config
        self.first_round = division.round or 0.0  # expected time, used while no round has been timed
        self.rounds: list[float] = []
        self.quizzes: list[float] = []
        self.quiz = quiz if latest is None else latest
        saved = division.most * (division.answer or 0.0) * max(0.0, 1.0 - self.quiz / quiz) if quiz else 0.0
        self.after = max(0.0, (division.exam or 0.0) - saved) + (division.after or 0.0) + self.quiz + ranking

    @property
    def round(self) -> float:
        """The expected seconds of the next round; 0 if unknown.

        It is the longer of the last round and the median round, but at most twice the median: in a much longer round,
        the night stood still (Ctrl-Z, a suspended machine).
        """
        if not (rounds := self.rounds):
            return self.first_round
        return min(max(statistics.median(rounds), rounds[-1]), 2 * statistics.median_low(rounds))

    def rate_factor(self, number: int) -> float:
        """Return the factor by which a round scales the learning rate.

        The factor falls linearly from 1 towards 0 over the planned rounds, or over as many as fit into the hours.
        """
        last = self.config.rounds
        if not math.isinf(self.hours.end) and self.round:
            left = self.hours.end - time.time() - self.after
            last = min(last, number - 1 + max(1, math.floor(left / self.round)))
        return 1 - (number - 1) / last

    def require(self, number: int, quizzed: bool) -> None:
        """Raise HoursOverError if a round (and its quiz, if `quizzed`) no longer fits into the night's hours."""
        if math.isinf(self.hours.end):
            return
        needed = self.round + (max(self.quizzes, default=self.quiz) if quizzed else 0.0)
        self.require_seconds(f"round {number}", needed)

    def require_seconds(self, what: str, needed: float) -> None:
        """Raise HoursOverError if `what`, which takes `needed` seconds, no longer fits into the night's hours."""
        left = self.hours.end - time.time()
        if left < needed + self.after:
            raise HoursOverError(
                f"{what} needs about {_minutes(needed)}, and exam and report {_minutes(self.after)}, "
                f"but {self.hours.because} left {_minutes(max(left, 0.0))}"
            )


def end_of_asking(hours: Hours) -> float:
    """Return when to stop asking a teacher or judge, in seconds since the epoch: halfway through the time left."""
    return hours.end - REST - (hours.end - time.time() - REST) / 2 if math.isfinite(hours.end) else math.inf


def _minutes(seconds: float) -> str:
    return f"{seconds / 60:.1f} minutes"
