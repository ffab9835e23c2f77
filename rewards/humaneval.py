"""HumanEval (Chen et al. 2021, arXiv:2107.03374): functions to complete, judged by the dataset's own `check`."""

import ast
import logging
from collections.abc import Collection, Sequence
from typing import Any

from conf.storage.home import InputError
from rewards.data.dataset_rows import data_file, hub_rows, read_rows
from rewards.programs.completion import preamble, whole_program
from rewards.programs.unit_tests import NO_PROGRAM, UNREADABLE, ProgramTests, failing_references, judged
from rewards.sandbox import Layer, Program
from rewards.verifier import Attempt, Problem, Score, Split

HUB = "openai/openai_humaneval"
FILE = "HumanEval.jsonl"  # or the same with .gz, as it is published
FIELDS = {"task_id": str, "prompt": str, "entry_point": str, "canonical_solution": str, "test": str}
# EvalPlus's words for models that chat (Liu et al. 2023, arXiv:2305.01210).
PROMPT = (
    "Please provide a self-contained Python script that solves the following problem in a markdown code block:\n"
    "```python\n{prompt}\n```"
)

log = logging.getLogger(__name__)


class HumanEval:
    """164 exam problems, none to train on.

    An answer may be the body that continues the prompt, or a whole program (fenced or bare) that defines the function.
    `excluded` lists the problems without usable tests. `seconds` of CPU time and `memory_mb`
    are what a program may use; `workers` and `without` are the sandbox's.
    """

    name = "humaneval"

    def __init__(
        self,
        source: str | None = None,
        revision: str | None = None,
        seconds: float = 5.0,
        memory_mb: int = 512,
        workers: int | None = None,
        without: Collection[Layer] = (),
    ) -> None:
        self.source, self.revision = source, revision
        self.seconds, self.memory_mb, self.workers, self.without = seconds, memory_mb, workers, without
        self.excluded: dict[Split, list[str]] = {}
        self.failing: set[str] = set()

    def problems(self, split: Split) -> list[Problem]:
        """The exam's problems in the file's order, without those whose tests are of no use.

        Nor those whose reference failed, once `check_references` was called. Raises InputError for `train`, and where
        the data is missing or broken.
        """
        if split != "test":
            raise InputError("humaneval: it has no training problems; let it be an exam only, and train on mbpp")
        pairs, excluded = self._read()
        self.excluded[split] = excluded + [
            problem.problem_id for problem, _ in pairs if problem.problem_id in self.failing
        ]
        if self.excluded[split]:
            log.warning(
                "humaneval: %d of %d problems are excluded", len(self.excluded[split]), len(pairs) + len(excluded)
            )
        return [problem for problem, _ in pairs if problem.problem_id not in self.failing]

    def references(self) -> list[tuple[Problem, str]]:
        """The problems with the dataset's own solutions: bodies that continue the prompt."""
        return self._read()[0]

    def check_references(self) -> dict[str, Score]:
        """Runs the references and returns the scores of those that fail their own tests; `problems` then omits them."""
        failing = failing_references(self.score, self.references())
        self.failing |= failing.keys()
        return failing

    def kind(self, problem: Problem) -> str:
        """Each problem is its own kind."""
        return problem.problem_id

    def prompt(self, problem: Problem) -> str:
        """The function's head and docstring, to be completed."""
        return PROMPT.format(prompt=problem.question.strip())

    def score(self, attempts: Sequence[Attempt]) -> list[Score]:
        """1 where the function passes `check`, else 0; null where the sandbox cannot run or the truth is unreadable."""
        return judged([self._program(attempt) for attempt in attempts], self.workers, self.without)

    def _program(self, attempt: Attempt) -> Program | Score:
        tests = ProgramTests.read(attempt.problem.truth)
        if tests is None:
            return UNREADABLE
        source = whole_program(attempt.completion, attempt.problem.question, tests.entry_point)
        if source is None:
            return NO_PROGRAM
        return tests.program(source, self.seconds, self.memory_mb)

    def _read(self) -> tuple[list[tuple[Problem, str]], list[str]]:
        pairs, excluded = [], []
        for row in self._rows():
            problem_id = f"humaneval/{row['task_id'].rpartition('/')[2]}"
            tests = _tests(row)
            if isinstance(tests, str):
                log.warning("%s is excluded: %s", problem_id, tests)
                excluded.append(problem_id)
            else:
                problem = Problem(problem_id, self.name, row["prompt"], tests.truth())
                pairs.append((problem, row["canonical_solution"]))
        return pairs, excluded

    def _rows(self) -> list[dict[str, Any]]:
        path = data_file(self.name, FILE, self.source)
        if path is None:
            return hub_rows(HUB, None, "test", FIELDS, self.revision)
        packed = data_file(self.name, f"{FILE}.gz", self.source)
        return read_rows(path if packed is None or path.is_file() else packed, FIELDS)


def _tests(row: dict[str, Any]) -> ProgramTests | str:
    """The row's tests, or why they are of no use.

    `check` compares the program's values with what the prompt's helpers make of them (`poly` in 32, `encode_cyclic` in
    38, `encode_shift` in 50): the setup gives the judge its own, so that no program can redefine them. In 33 three of
    seven asserts compare the function with itself: they stay as published, for figures that can be compared.
    """
    setup = preamble(row["prompt"], row["entry_point"])
    check = f"{row['test']}\n\ncheck({row['entry_point']})\n"
    if setup is None:
        return f"its prompt does not define {row['entry_point']}"
    try:
        ast.parse(setup)
        ast.parse(check)
    except (SyntaxError, ValueError) as error:
        return f"its prompt or its test is no Python ({error})"
    return ProgramTests(setup, (check,), row["entry_point"])
