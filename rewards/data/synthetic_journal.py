"""Generate a day's journal for the starter night, as an owner and a teacher could have written it.

Every line contains `"generated": true`. The exercises come from the training split, so none has an exam expression.
"""

import itertools
import random
from collections.abc import Sequence
from typing import Any, Literal

from conf.schema import BenchmarkConfig
from rewards.arithmetic import Arithmetic, as_problem, worked_solution
from rewards.data.arithmetic_exercises import Exercise, exercises

Lessons = Literal["traces", "preferences", "corrections", "feedback", "words"]
KINDS = {
    "traces": "trace",
    "preferences": "preference",
    "corrections": "correction",
    "feedback": "feedback",
    "words": "words",
}


def practised_levels(entries: Sequence[BenchmarkConfig]) -> tuple[str, ...] | None:
    """Return the Arithmetic levels that a night trains on; None if it trains on all of them or not on Arithmetic."""
    practised = [entry.levels for entry in entries if entry.name == Arithmetic.name]
    levels = tuple(sorted({level for some in practised for level in some or ()}))
    return levels if levels and None not in practised else None


def generated_lines(
    lessons: Lessons, seed: str, count: int, levels: Sequence[str] | None, at: str
) -> list[dict[str, Any]]:
    """Return `count` journal lines of one kind, each about one exercise. Equal arguments give equal lines.

    Traces are worked solutions. A preference has five answers in random order: the right one, which is chosen, and four
    bad ones: wrong, unfinished, unmarked and rambling. A correction replaces a bad answer with the right one. Feedback
    alternates between a worked solution (+1) and a bad answer (-1). Words are a worked exercise as plain text. `at` is
    an ISO date; `levels=None` means all levels.
    """
    chance = random.Random(f"{'answers' if lessons == 'preferences' else lessons} of the day {seed}")
    drawn = itertools.islice(exercises(f"day {lessons} {seed}", Arithmetic(levels=levels).levels, "train"), count)
    return [
        {"version": 1, "kind": KINDS[lessons], **_fields(lessons, number, each, chance), "generated": True, "at": at}
        for number, each in enumerate(drawn)
    ]


def _fields(lessons: Lessons, number: int, exercise: Exercise, chance: random.Random) -> dict[str, Any]:
    right = worked_solution(exercise)
    problem = as_problem(exercise)
    messages = [{"role": "user", "content": Arithmetic().prompt(problem)}]
    match lessons:
        case "traces":
            lesson = {"response": right, "teacher": "generated", "benchmark": Arithmetic.name, "truth": problem.truth}
            return {"messages": messages, "problem_id": problem.problem_id, **lesson}
        case "preferences":
            slip = _slip(exercise, chance)
            bad = [_wrong(exercise, slip), _unfinished(exercise), _unmarked(exercise), _rambling(exercise, slip)]
            answers = [right, *bad]
            chance.shuffle(answers)
            picked = {"responses": answers, "chosen": answers.index(right), "policy": "generated"}
            return {"messages": messages, **picked}
        case "corrections":
            return {"messages": messages, "response": _mistaken(exercise, chance), "correction": right}
        case "feedback":
            if number % 2 == 0:
                return {"messages": messages, "response": right, "value": 1}
            slip = _slip(exercise, chance)
            bad = chance.choice([_mistaken(exercise, chance), _rambling(exercise, slip)])
            return {"messages": messages, "response": bad, "value": -1}
        case "words":
            steps = ", then ".join(exercise.steps)
            return {"text": f"{exercise.question} We calculate {steps}. So the answer is {exercise.answer}."}


def _mistaken(exercise: Exercise, chance: random.Random) -> str:
    return chance.choice([_wrong(exercise, _slip(exercise, chance)), _unfinished(exercise), _unmarked(exercise)])


def _slip(exercise: Exercise, chance: random.Random) -> int:
    near = [exercise.answer + offset for offset in (-10, -2, -1, 1, 2, 10)]
    return chance.choice([number for number in near if number >= 0])


def _wrong(exercise: Exercise, slip: int) -> str:
    """Return a solution that miscalculates its last step."""
    calculation = exercise.steps[-1].split(" = ")[0]
    return "\n".join([*exercise.steps[:-1], f"{calculation} = {slip}", f"#### {slip}"])


def _unfinished(exercise: Exercise) -> str:
    """Return a solution that leaves out its last step and gives an intermediate number as the answer."""
    numbers = [int(word) for word in exercise.steps[-1].split() if word.isdecimal()]
    answer = next((number for number in numbers if number != exercise.answer), exercise.answer + 1)
    return "\n".join([*exercise.steps[:-1], f"#### {answer}"])


def _unmarked(exercise: Exercise) -> str:
    """Return a right solution whose answer lacks the required marker."""
    return "\n".join([*exercise.steps, f"The answer is {exercise.answer}."])


def _rambling(exercise: Exercise, slip: int) -> str:
    """Return a rambling text that has the right number among others, and more text after the marked answer."""
    steps = ", then ".join(exercise.steps)
    return (
        f"Let me think about this. First I look at the numbers. We have {steps}. So it should be {exercise.answer}, "
        f"or maybe {slip}, let me check that again.\n#### {exercise.answer} is what I think, but it could be {slip}."
    )
