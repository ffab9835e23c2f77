"""What updates are timed on: rollouts of random tokens of given lengths, and worked solutions of arithmetic."""

import json
import random
from itertools import islice
from pathlib import Path

from conf.schema import StudentConfig
from models.hf.loading import answer_tokens, load_tokenizer, prompt_tokens
from models.lessons.preference_data import Example
from models.rollout import Rollout
from rewards.arithmetic import Arithmetic, as_problem, worked_solution
from rewards.data.arithmetic_exercises import Exercise, exercises
from rewards.data.former_prompts import BEHIND
from rewards.verifier import Problem

LENGTHS = Path(__file__).with_name("rollout_lengths.json")  # (prompt, completions) of a starter night's third round
VOCABULARY = range(100, 40_000)  # token ids; the time does not depend on them
SEED = 7
LEVELS = ("1", "2")  # the starter night's
SOLUTIONS = 24  # of a lesson's step


def workload(name: str) -> list[Rollout]:
    """Return the rollouts of a named workload; for their advantages see `advantages`."""
    chance = random.Random(SEED)
    match name:
        case "short":  # as in a starter night
            return _rollouts(
                [(55, [min(48, max(4, round(chance.gauss(25, 10)))) for _ in range(8)]) for _ in range(24)]
            )
        case "medium":
            return _rollouts([(106, [128] * 8)] * 4)
        case "ragged":
            return _rollouts([(prompt, lengths) for prompt, lengths in json.loads(LENGTHS.read_text())])
        case "long prompt":
            return _rollouts([(400, [64] * 8)] * 4)
        case "long completion":
            return _rollouts([(106, [512] * 8)] * 2)
    raise ValueError(f"unknown workload: {name}")


def grown(groups: int) -> list[Rollout]:
    """Return 4 × `groups` groups of 8 completions of 64 tokens, to measure growth."""
    return _rollouts([(64, [64] * 8)] * 4 * groups)


def advantages(rollouts: list[Rollout]) -> list[float]:
    """Return an advantage for each rollout, as if every second completion were correct."""
    return [0.5 if rollout.sample % 2 else -0.5 for rollout in rollouts]


def lessons(student: Path, question_first: bool) -> list[Example]:
    """Return the worked solutions of a lesson's step, each of another problem, as the student's token ids.

    `question_first`: asked as 0.1.0 did.
    """
    tokenizer = load_tokenizer(student)
    problems = {(problem := as_problem(exercise)).question: (problem, exercise) for exercise in _exercises()}
    return [
        (asked(student, problem, question_first), answer_tokens(tokenizer, worked_solution(exercise)))
        for problem, exercise in islice(problems.values(), SOLUTIONS)
    ]


def asked(student: Path, problem: Problem, question_first: bool) -> list[int]:
    """Return the token ids of a problem's prompt, as it is now or as 0.1.0 asked it."""
    prompt = f"{problem.question}\n{BEHIND['arithmetic']}" if question_first else Arithmetic().prompt(problem)
    return prompt_tokens(load_tokenizer(student), [{"role": "user", "content": prompt}], StudentConfig(system=""))


def _exercises() -> list[Exercise]:
    return [*islice(exercises("lessons", LEVELS, "train"), 4 * SOLUTIONS)]


def _rollouts(groups: list[tuple[int, list[int]]]) -> list[Rollout]:
    chance = random.Random(SEED)
    rollouts = []
    for group, (prompt, lengths) in enumerate(groups):
        prompt_ids = chance.choices(VOCABULARY, k=prompt)
        for sample, length in enumerate(lengths):
            tokens = chance.choices(VOCABULARY, k=length)
            rollouts.append(
                Rollout(f"p{group}", group, sample, prompt_ids, tokens, [0.0] * length, [True] * length, "stop", "", "")
            )
    return rollouts
