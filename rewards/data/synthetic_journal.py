"""A generated day for the starter night: what an owner and a teacher could have left in the journal.

Every line says `"generated": true`. The exercises are of the training split and contain no exam expression.
"""

import itertools
import random
from collections.abc import Iterator, Sequence
from typing import Any

from conf.schema import BenchmarkConfig
from rewards.arithmetic import Arithmetic, as_problem, worked_solution
from rewards.data.arithmetic_exercises import Exercise, exercises


def practised_levels(entries: Sequence[BenchmarkConfig]) -> tuple[str, ...] | None:
    """Return the levels of Arithmetic that a night trains on; None for all, also where it trains on none."""
    practised = [entry.levels for entry in entries if entry.name == Arithmetic.name]
    levels = tuple(sorted({level for some in practised for level in some or ()}))
    return levels if levels and None not in practised else None


def traces(seed: str, count: int, levels: Sequence[str] | None, at: str) -> list[dict[str, Any]]:
    """Return `count` journal lines of kind `trace`: an exercise's prompt with its worked solution.

    The same arguments give the same lines. `at` is an ISO date; `levels` None means all. Raises InputError for a level
    that does not exist.
    """
    return [
        {
            **_line("trace", exercise, at),
            "response": worked_solution(exercise),
            "teacher": "generated",
            "benchmark": Arithmetic.name,
            "truth": str(exercise.answer),
            "problem_id": as_problem(exercise).problem_id,
        }
        for exercise in _drawn(f"day traces {seed}", count, levels)
    ]


def preferences(seed: str, count: int, levels: Sequence[str] | None, at: str) -> list[dict[str, Any]]:
    """Return `count` journal lines of kind `preference`: five answers in random order, the right one chosen.

    The other four are wrong, unfinished, without the marker, and rambling. Arguments and errors as for `traces`.
    """
    chance = random.Random(f"answers of the day {seed}")
    return [
        _line("preference", exercise, at) | _pick(exercise, chance)
        for exercise in _drawn(f"day preferences {seed}", count, levels)
    ]


def corrections(seed: str, count: int, levels: Sequence[str] | None, at: str) -> list[dict[str, Any]]:
    """Return `count` journal lines of kind `correction`: a wrong, unfinished or unmarked answer, and the right one.

    Arguments and errors as for `traces`.
    """
    chance = random.Random(f"corrections of the day {seed}")
    return [
        _line("correction", exercise, at)
        | {"response": _mistaken(exercise, chance), "correction": worked_solution(exercise)}
        for exercise in _drawn(f"day corrections {seed}", count, levels)
    ]


def feedback(seed: str, count: int, levels: Sequence[str] | None, at: str) -> list[dict[str, Any]]:
    """Return `count` journal lines of kind `feedback`: in turn a worked solution (+1) and a bad answer (-1).

    Arguments and errors as for `traces`.
    """
    chance = random.Random(f"feedback of the day {seed}")
    return [
        _line("feedback", exercise, at) | (_bad(exercise, chance) if number % 2 else _good(exercise))
        for number, exercise in enumerate(_drawn(f"day feedback {seed}", count, levels))
    ]


def words(seed: str, count: int, levels: Sequence[str] | None, at: str) -> list[dict[str, Any]]:
    """Return `count` journal lines of kind `words`: an exercise as plain text, with its steps and its answer.

    Arguments and errors as for `traces`.
    """
    return [
        {"version": 1, "kind": "words", "text": _as_text(exercise), "generated": True, "at": at}
        for exercise in _drawn(f"day words {seed}", count, levels)
    ]


def _drawn(seed: str, count: int, levels: Sequence[str] | None) -> Iterator[Exercise]:
    return itertools.islice(exercises(seed, Arithmetic(levels=levels).levels, "train"), count)


def _line(kind: str, exercise: Exercise, at: str) -> dict[str, Any]:
    prompt = Arithmetic().prompt(as_problem(exercise))
    messages = [{"role": "user", "content": prompt}]
    return {"version": 1, "kind": kind, "messages": messages, "generated": True, "at": at}


def _pick(exercise: Exercise, chance: random.Random) -> dict[str, Any]:
    right = worked_solution(exercise)
    slip = _slip(exercise, chance)
    answers = [right, _wrong(exercise, slip), _unfinished(exercise), _unmarked(exercise), _rambling(exercise, slip)]
    chance.shuffle(answers)
    return {"responses": answers, "chosen": answers.index(right), "policy": "generated"}


def _mistaken(exercise: Exercise, chance: random.Random) -> str:
    return chance.choice([_wrong(exercise, _slip(exercise, chance)), _unfinished(exercise), _unmarked(exercise)])


def _good(exercise: Exercise) -> dict[str, Any]:
    return {"response": worked_solution(exercise), "value": 1}


def _bad(exercise: Exercise, chance: random.Random) -> dict[str, Any]:
    slip = _slip(exercise, chance)
    return {"response": chance.choice([_mistaken(exercise, chance), _rambling(exercise, slip)]), "value": -1}


def _as_text(exercise: Exercise) -> str:
    return f"{exercise.question} We calculate {', then '.join(exercise.steps)}. So the answer is {exercise.answer}."


def _slip(exercise: Exercise, chance: random.Random) -> int:
    """Return a wrong number near the answer."""
    near = [exercise.answer + offset for offset in (-10, -2, -1, 1, 2, 10)]
    return chance.choice([number for number in near if number >= 0])


def _wrong(exercise: Exercise, slip: int) -> str:
    """Return all steps, the last one miscalculated."""
    calculation = exercise.steps[-1].split(" = ")[0]
    return "\n".join([*exercise.steps[:-1], f"{calculation} = {slip}", f"#### {slip}"])


def _unfinished(exercise: Exercise) -> str:
    """Return all steps but the last, with an intermediate result as the answer."""
    numbers = [int(word) for word in exercise.steps[-1].split() if word.isdecimal()]
    answer = next((number for number in numbers if number != exercise.answer), exercise.answer + 1)
    return "\n".join([*exercise.steps[:-1], f"#### {answer}"])


def _unmarked(exercise: Exercise) -> str:
    """Return a right answer without the marker that it must have."""
    return "\n".join([*exercise.steps, f"The answer is {exercise.answer}."])


def _rambling(exercise: Exercise, slip: int) -> str:
    """Return a text with the right number among others, which continues after the marker."""
    steps = ", then ".join(exercise.steps)
    return (
        f"Let me think about this. First I look at the numbers. We have {steps}. So it should be {exercise.answer}, "
        f"or maybe {slip}, let me check that again.\n#### {exercise.answer} is what I think, but it could be {slip}."
    )
