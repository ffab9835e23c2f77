"""The texts that a new student reads: generated sums and stories and, where they are at hand, GSM8K's and MATH's."""

import itertools
import random
from importlib.resources import files

from conf.sections.benchmark import LEVELS, BenchmarkConfig, BenchmarkName
from rewards.data.arithmetic_exercises import Exercise, exercises
from rewards.data.benchmarks import configured
from rewards.data.contamination import exam_index
from rewards.data.dataset_rows import data_file

ENDINGS = ("The answer is {}.", "So it is {}.", "Answer: {}")  # not as exams ask for it: `#### 5`
DATASETS: tuple[BenchmarkName, ...] = ("gsm8k", "math")  # their training splits
REAL = 8  # generated texts to each of these; so the smallest student need not wait until all are compared with exams


def texts(seed: str, count: int) -> list[str]:
    """Return `count` generated exercises, everyday questions, and up to `count / REAL` real texts, in random order."""
    chance = random.Random(f"texts {seed}")
    made = [as_text(one, seed) for one in itertools.islice(exercises(seed, LEVELS, "train"), count)]
    everyday = files("tasks.distillation").joinpath("everyday_prompts.txt").read_text(encoding="utf-8").splitlines()
    found = [*everyday, *_solutions(chance, count // REAL), *made]
    chance.shuffle(found)
    return found


def as_text(exercise: Exercise, seed: str) -> str:
    """Return an exercise as running text: the question, the steps and the answer, with an ending drawn at random.

    It differs from a lesson, which asks in a conversation and ends as the exam wants it.
    """
    ending = random.Random(f"{seed} {exercise.question}").choice(ENDINGS)
    return "\n".join([exercise.question, *exercise.steps, ending.format(exercise.answer)])


def _solutions(chance: random.Random, most: int) -> list[str]:
    """Return drawn training problems of the data sets in NIGHTSCHOOL_DATA, without those that resemble an exam's."""
    found = []
    for name in DATASETS:
        if (file := data_file(name, None, "train.jsonl")) is None or not file.is_file():
            continue
        benchmark = configured(BenchmarkConfig(name=name))
        exam = exam_index(tuple(problem.question for problem in benchmark.problems("test")))
        found += [(problem.question, solution, exam) for problem, solution in benchmark.solutions()]
    chance.shuffle(found)
    return [f"{question}\n{solution}" for question, solution, exam in found[:most] if not exam.has(question)]
