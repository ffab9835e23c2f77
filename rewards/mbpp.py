"""MBPP (Austin et al. 2021, arXiv:2108.07732): small programs, judged by the dataset's own asserts."""

import ast
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

from conf.schema import SandboxConfig
from rewards.data.dataset_rows import Excluded, data_file, drop_excluded, hub_rows, read_once, read_rows
from rewards.programs.extraction import program_text
from rewards.programs.unit_tests import DEFAULT_SANDBOX, ProgramTests, score_programs
from rewards.verifier import Attempt, Benchmark, Problem, Score, Split

HUB = "google-research-datasets/mbpp"
FILES = {"full": ("mbpp.jsonl",), "sanitized": ("sanitized-mbpp.jsonl", "sanitized-mbpp.json")}
FIELDS = {
    "full": {
        "task_id": int,
        "text": str,
        "code": str,
        "test_setup_code": str,
        "test_list": list,
        "challenge_test_list": list,
    },
    "sanitized": {"task_id": int, "prompt": str, "code": str, "test_imports": list, "test_list": list},
}
# The paper's splits by task_id. Its few-shot examples (1–10) and its validation split (511–600) are not used.
TASKS = {"train": range(601, 975), "test": range(11, 511)}
PROMPT = (
    "You are an expert Python programmer. Answer with the whole program in one ```python block. Here is your task:\n"
    "{task} Your code should pass this test:\n\n{test}"
)


class Mbpp(Benchmark):
    """374 training and 500 exam problems, or 120 and 257 in the `sanitized` subset, hand-checked by its authors.

    The prompt shows only the first of a problem's asserts; a program must pass all of them.
    """

    name = "mbpp"
    bounded = True
    runs_programs = True

    def __init__(
        self,
        source: str | None = None,
        subset: str | None = None,
        revision: str | None = None,
        sandbox: SandboxConfig = DEFAULT_SANDBOX,
    ) -> None:
        self.subset = subset or "full"
        self.source, self.revision, self.sandbox = source, revision, sandbox

    @read_once
    def problems(self, split: Split) -> list[Problem]:
        """Return a split's problems with usable tests, in order. Raises InputError if the data is missing or broken."""
        return [problem for problem, _ in self.references(split)]

    def references(self, split: Split) -> list[tuple[Problem, str]]:
        """Return a split's problems, each with the dataset's own solution."""
        file, fields = data_file(self.name, self.source, *FILES[self.subset]), FIELDS[self.subset]
        rows = read_rows(file, fields) if file else hub_rows(HUB, self.subset, split, fields, self.revision)
        return drop_excluded(self, split, (self._with_reference(row) for row in rows if row["task_id"] in TASKS[split]))

    def solutions(self) -> list[tuple[Problem, str]]:
        """Return the training problems with their reference programs, each in a ```python block."""
        return [(problem, f"```python\n{code.strip()}\n```") for problem, code in self.references("train")]

    def prompt(self, problem: Problem) -> str:
        """Return the answer format, the task and the first assert (the prompt in the paper's section 3 shows three)."""
        tests = ProgramTests.read(problem.truth)
        shown = "" if tests is None else f"{tests.setup}\n{tests.tests[0]}".strip()
        return PROMPT.format(task=problem.question, test=shown)

    def score(self, attempts: Sequence[Attempt]) -> list[Score]:
        """Give a reward of 1 if all asserts pass, else 0; None if the sandbox fails or the truth is unreadable."""
        return score_programs(
            attempts, self.sandbox, lambda one, tests: program_text(one.completion, tests.entry_point)
        )

    def _with_reference(self, row: Mapping[str, Any]) -> tuple[Problem, str] | Excluded:
        prefix = self.name if self.subset == "full" else f"{self.name}/{self.subset}"
        problem_id = f"{prefix}/{row['task_id']}"
        tests = _tests(row)
        if isinstance(tests, str):
            return Excluded(problem_id, tests)
        question = row["text" if self.subset == "full" else "prompt"]
        return Problem(problem_id, self.name, question, tests.truth()), row["code"]


def entry_point(code: str, tests: Sequence[str]) -> str | None:
    """Return the name of the function in the reference `code` that the tests call first, or None if they call none.

    Of nested calls, the outermost comes first. A function that `code` defines may have the name of a builtin (`sum`). A
    class or variable counts only if no function is called. Raises SyntaxError or ValueError for invalid Python.
    """
    functions, others = set(), set()
    for node in ast.parse(code).body:
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                functions.add(name)
            case ast.ClassDef(name=name):
                others.add(name)
            case ast.Assign(targets=targets):
                others |= {target.id for target in targets if isinstance(target, ast.Name)}
    calls = [
        node.func.id
        for test in tests
        for node in ast.walk(ast.parse(test))  # outermost calls first
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    ]
    return next((name for known in (functions, others) for name in calls if name in known), None)


def _tests(row: Mapping[str, Any]) -> ProgramTests | str:
    """Return the row's tests, or the reason why they are unusable."""
    asserts = [*row["test_list"], *row.get("challenge_test_list", ())]
    imports = row.get("test_imports", ())
    if not asserts or not all(isinstance(line, str) for line in (*asserts, *imports)):
        return "it has no tests, or some that are not text"
    setup = row.get("test_setup_code", "\n".join(imports))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # invalid escapes in the references' regexes
            ast.parse(setup)
            name = entry_point(row["code"], asserts)
    except (SyntaxError, ValueError) as error:
        return f"its reference or its tests are not Python ({error})"
    if name is None:
        return "its tests call nothing that its reference defines"
    return ProgramTests(setup, tuple(asserts), name)
