"""Arithmetic: generated word problems and sums, answered as `#### <number>`."""

import itertools
import re
from collections.abc import Sequence
from fractions import Fraction
from functools import cache

from conf.sections.benchmark import LEVELS
from rewards.data.arithmetic_exercises import Exercise, exercises, written_exercise
from rewards.verifier import Attempt, Benchmark, Problem, Score, Split

EXAM_PROBLEMS = {"1": 278, "2": 590, "3": 400, "4": 400, "5": 400}  # by level; levels 1 and 2 have no others
NUMBER = re.compile(r"-?[0-9]{1,30}(\.[0-9]{1,30})?")


class Arithmetic(Benchmark):
    """Generated problems in five levels: an endless supply for training and 2,068 fixed ones for the exam.

    Level 1: one step, numbers up to 20. Level 2: two steps. Level 3: three steps, numbers up to 50. Level 4: four
    steps, numbers up to 100. Level 5: four steps with larger numbers and a division or a percentage. Training never
    draws an expression that belongs to the exam (see `arithmetic_exercises`).
    """

    name = "arithmetic"
    instruction = "Solve the problem below. Give the steps, then the answer as #### <number> on a last line."
    answer_line = "#### {}"
    bounded = True

    def __init__(self, levels: Sequence[str] | None = None) -> None:
        self.levels = tuple(level for level in LEVELS if level in (levels or LEVELS))

    def problems(self, split: Split) -> list[Problem]:
        """Return all exam problems for `test`, or 2,000 of the endless training problems for `train`."""
        if split == "train":
            return self.draw("0", 2000)
        return [problem for level in self.levels for problem in _exam(level)]

    def draw(self, seed: str, count: int) -> list[Problem]:
        """Return `count` training problems, always the same for a given seed. Short exercises can occur twice."""
        return [as_problem(exercise) for exercise in itertools.islice(exercises(seed, self.levels, "train"), count)]

    def kind(self, problem: Problem) -> str:
        """Return the names of the benchmark, the level and the kind of exercise, as in `arithmetic/2/gain-lose`."""
        return "/".join(problem.problem_id.split("/", 3)[:3])

    def score_one(self, attempt: Attempt) -> Score:
        """Give a reward of 1 if only the true number follows the last `####`, else 0; None for a non-numeric truth."""
        if not NUMBER.fullmatch(attempt.problem.truth):
            return Score.of("grader_failed", "the truth is not a number")
        _, marker, answer = attempt.completion.rpartition("####")
        answer = answer.strip()
        if not marker or not NUMBER.fullmatch(answer):
            return Score.of("no_answer")
        correct = Fraction(answer) == Fraction(attempt.problem.truth)
        return Score.of("correct" if correct else "wrong", f"answered {answer}")

    def question_prompt(self, examples: Sequence[Problem]) -> str:
        """Return a prompt that shows the examples as bare sums and asks for a new sum like them."""
        sums = "\n".join(problem.question.removeprefix("What is ").removesuffix("?") for problem in examples)
        return f"{sums}\nWrite one new sum like these, other numbers, nothing else."

    def proposed(self, text: str) -> Problem | None:
        """Return the sum in the text's first line as a training problem; None if it is not a sum or is in the exam.

        A student that knows the answer format also writes the result after the sum; this result is ignored.
        """
        first_line = text.strip().partition("\n")[0].partition(" =")[0]
        exercise = written_exercise(first_line.removeprefix("What is ").removesuffix("?"))
        if exercise is None or exercise.split != "train":
            return None
        return as_problem(exercise)


def worked_solution(exercise: Exercise) -> str:
    """Return the solution as a teacher would write it: one step per line, then `#### <number>`."""
    return "\n".join([*exercise.steps, f"#### {exercise.answer}"])


def as_problem(exercise: Exercise) -> Problem:
    """Return the exercise as a problem of the benchmark."""
    problem_id = f"arithmetic/{exercise.level}/{exercise.kind}/{exercise.expression}"
    return Problem(problem_id, "arithmetic", exercise.question, str(exercise.answer), exercise.level)


@cache
def _exam(level: str) -> tuple[Problem, ...]:
    """Return a level's exam problems: the first distinct ones in an endless stream of exercises."""
    problems: dict[str, Problem] = {}
    for exercise in exercises("exam", (level,), "test"):
        problem = as_problem(exercise)
        problems.setdefault(problem.problem_id, problem)
        if len(problems) == EXAM_PROBLEMS[level]:
            break
    return tuple(problems.values())
