"""Tasks from reasoning-gym (Apache-2.0): over a hundred kinds of generated problems, each with its own grader.

To use its task `leg_counting`, for example, `pip install -e '.[environments]'` and configure
`{name: "rewards.environments.reasoning_gym:ReasoningGym", source: leg_counting}`.
"""

import importlib
import inspect
import json
import re
from functools import cached_property
from typing import Any

from conf.storage.home import InputError
from rewards.verifier import Attempt, Benchmark, Problem, Score, Split

SEEDS = {"train": 0, "test": 1_000_000}  # far apart, because the package adds a problem's index to the seed
PROBLEMS = 500  # per split
ANSWER = re.compile(r"<answer>(.*?)</answer>", re.DOTALL)
# Some graders evaluate an answer as Python, or with a library that does so: a model could then run any program.
EVALUATES = re.compile(r"\b(?:eval|exec|parse_expr|sympify|parse_latex)\(")
NONSENSE = ("banana", "nan", "")  # no grader may take these for an answer
TRIED = 3  # problems on which a task's grader is tried


class ReasoningGym(Benchmark):
    """One reasoning-gym task. Only a full score counts as correct; a partial score is kept as a part of the `Score`.

    Raises InputError if the package is missing, if it has no such task, or if the task's grader would run a model's
    answer as code, takes nonsense for an answer, or refuses the task's own answer.
    """

    name = "reasoning_gym"
    instruction = "Solve the task below. Give only the final answer, between <answer> and </answer>, nothing else."

    def __init__(self, task: str | None) -> None:
        try:
            datasets = importlib.import_module("reasoning_gym.factory").DATASETS
        except ImportError as error:
            raise InputError("reasoning_gym: its package is missing: pip install -e '.[environments]'") from error
        if task not in datasets or task == "composite":
            raise InputError(f"reasoning_gym: source: {task}: no such task; see reasoning_gym's gallery for the names")
        if EVALUATES.search(inspect.getsource(inspect.getmodule(datasets[task][0]) or datasets[task][0])):
            raise InputError(
                f"reasoning_gym: source: {task}: its grader evaluates answers as programs; take another task"
            )
        self.task = task
        tried = (json.loads(_written(self._grader[index])) for index in range(TRIED))  # as `score_one` reads them
        if not all(map(self._is_fair, tried)):
            raise InputError(
                f"reasoning_gym: source: {task}: its grader can't tell right from wrong; take another task"
            )

    def problems(self, split: Split) -> list[Problem]:
        """Return up to 500 problems with distinct questions. The exam leaves out questions that occur in training."""
        found: dict[str, Problem] = {}
        for index, entry in enumerate(self._dataset(split)):
            problem_id = f"reasoning_gym/{self.task}/{split}/{index}"
            problem = Problem(problem_id, self.name, entry["question"].strip(), _written(entry))
            found.setdefault(problem.question, problem)
        if split == "test":
            practised = {problem.question for problem in self.problems("train")}
            found = {question: problem for question, problem in found.items() if question not in practised}
        return list(found.values())

    def kind(self, problem: Problem) -> str:
        """Return the name of the task: a night tracks solve rates by task, because no problem comes up twice."""
        return f"reasoning_gym/{self.task}"

    def score_one(self, attempt: Attempt) -> Score:
        """Grade the last answer between <answer> tags with the task's own grader."""
        answers = ANSWER.findall(attempt.completion)
        if not answers:
            return Score(0.0, "no_answer")
        try:
            entry = json.loads(attempt.problem.truth)
        except ValueError:
            return Score.of("grader_failed", "the truth is not JSON")
        partial = self._partial(answers[-1].strip(), entry)
        right = partial == 1.0
        return Score(float(right), "correct" if right else "wrong", parts={"score": partial})

    def _partial(self, answer: str, entry: dict[str, Any]) -> float:
        try:
            return float(self._grader.score_answer(answer, entry=entry))
        except Exception:  # some graders raise on an answer that they can't read
            return 0.0

    def _is_fair(self, entry: dict[str, Any]) -> bool:
        """Return whether the task's own answer, if it has one, gets a full score, and nonsense does not."""
        own = entry["answer"]
        fooled = any(self._partial(text, entry) == 1.0 for text in NONSENSE)
        return not fooled and (own is None or self._partial(str(own), entry) == 1.0)

    @cached_property
    def _grader(self) -> Any:
        return self._dataset("train")

    def _dataset(self, split: Split) -> Any:
        return importlib.import_module("reasoning_gym").create_dataset(self.task, seed=SEEDS[split], size=PROBLEMS)


def _written(entry: dict[str, Any]) -> str:
    return json.dumps(entry, default=str)
