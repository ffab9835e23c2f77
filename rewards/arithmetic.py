"""Arithmetic: generated word problems and sums, answered as `#### <number>`."""

import itertools
import re
import time
from collections.abc import Iterator, Sequence
from fractions import Fraction

from conf.storage.home import InputError
from rewards.data.arithmetic_exercises import LEVELS, Exercise, exercises
from rewards.verifier import Attempt, Problem, Score, Split

EXAM_SEED = "exam"
EXAM_PROBLEMS = {"1": 200, "2": 200, "3": 100, "4": 100, "5": 100}
NUMBER = re.compile(r"-?[0-9]{1,30}(\.[0-9]{1,30})?")


class Arithmetic:
    """Five levels: 1 one step with numbers to 20, 2 two steps, 3 three steps with numbers to 50, 4 four steps
    with numbers to 100, 5 four steps with larger numbers and a division or percent.

    The training problems are endless; the exam's 700 are fixed, and training can never draw one of their
    expressions (see `arithmetic_exercises`).
    """

    name = "arithmetic"

    def __init__(self, source: str | None = None, levels: Sequence[str] | None = None) -> None:
        if source is not None:
            raise InputError("arithmetic: its problems are generated, a source folder has no meaning; remove `source`")
        unknown = sorted(set(levels or ()) - set(LEVELS))
        if unknown:
            raise InputError(f"arithmetic: no level {', '.join(unknown)}; there are {', '.join(LEVELS)}")
        self.levels = tuple(level for level in LEVELS if level in (levels or LEVELS))

    def problems(self, split: Split) -> list[Problem]:
        """The exam's problems, or 2,000 of the endless training problems."""
        if split == "train":
            return self.draw("0", 2000)
        return [problem for level in self.levels for problem in _exam(level)]

    def draw(self, seed: str, count: int) -> list[Problem]:
        """`count` training problems, the same for the same seed; a short exercise may come twice."""
        return [as_problem(exercise) for exercise in itertools.islice(exercises(seed, self.levels, "train"), count)]

    def kind(self, problem: Problem) -> str:
        """What a solve rate is counted under: level and template."""
        return "/".join(problem.problem_id.split("/", 3)[:3])

    def prompt(self, problem: Problem) -> str:
        """The question, and the format of the answer."""
        return f"{problem.question}\nGive the steps, then the answer on a last line as #### <number>."

    def score(self, attempts: Sequence[Attempt]) -> list[Score]:
        """1 where the text after the last `####` is exactly the true number, else 0; null where the truth is none."""
        return [_score(attempt) for attempt in attempts]


def worked_solution(exercise: Exercise) -> str:
    """The answer as a teacher would write it: a step a line, then `#### <number>`."""
    return "\n".join([*exercise.steps, f"#### {exercise.answer}"])


def as_problem(exercise: Exercise) -> Problem:
    """The exercise as an item of the benchmark."""
    problem_id = f"arithmetic/{exercise.level}/{exercise.kind}/{exercise.expression}"
    return Problem(problem_id, "arithmetic", exercise.question, str(exercise.answer), exercise.level)


def _different(stream: Iterator[Exercise]) -> Iterator[Problem]:
    seen: set[str] = set()
    for exercise in stream:
        problem = as_problem(exercise)
        if problem.problem_id not in seen:
            seen.add(problem.problem_id)
            yield problem


def _exam(level: str) -> Iterator[Problem]:
    return itertools.islice(_different(exercises(EXAM_SEED, (level,), "test")), EXAM_PROBLEMS[level])


def _score(attempt: Attempt) -> Score:
    started = time.perf_counter()
    if not NUMBER.fullmatch(attempt.problem.truth):
        return Score(None, "grader_failed", "the truth is not a number")
    _, marker, answer = attempt.completion.rpartition("####")
    answer = answer.strip()
    if not marker or not NUMBER.fullmatch(answer):
        return Score(0.0, "no_answer", parts={"correct": 0.0}, seconds=time.perf_counter() - started)
    right = Fraction(answer) == Fraction(attempt.problem.truth)
    verdict = "correct" if right else "wrong"
    return Score(float(right), verdict, f"answered {answer}", {"correct": float(right)}, time.perf_counter() - started)
