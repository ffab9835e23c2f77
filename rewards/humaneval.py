"""HumanEval (Chen et al. 2021, arXiv:2107.03374): functions to complete, judged by the dataset's own `check`."""

import ast
import re
from collections.abc import Mapping, Sequence
from typing import Any

from conf.schema import SandboxConfig
from conf.storage.home import InputError
from rewards.data.dataset_rows import Excluded, data_file, drop_excluded, hub_rows, read_once, read_rows
from rewards.programs.extraction import definition, last_block, program_text
from rewards.programs.unit_tests import DEFAULT_SANDBOX, ProgramTests, score_programs
from rewards.verifier import Attempt, Benchmark, Problem, Score, Split

HUB = "openai/openai_humaneval"
FILES = ("HumanEval.jsonl.gz", "HumanEval.jsonl")  # as published, or unpacked
FIELDS = {"task_id": str, "prompt": str, "entry_point": str, "canonical_solution": str, "test": str}
# EvalPlus's prompt for chat models (Liu et al. 2023, arXiv:2305.01210).
PROMPT = (
    "Please provide a self-contained Python script that solves the following problem in a markdown code block:\n"
    "```python\n{prompt}\n```"
)
# The body of a function ends at the stop sequences of HumanEval (Chen et al. 2021, section 2.1) and EvalPlus (Liu et
# al. 2023, arXiv:2305.01210). A model that is not stopped there writes another function or starts to chat.
STOP = re.compile(r"\n(?:class|def|if|print|import|from|assert)\b|\n(?:#|@|```|~~~)")
FENCES = ("```", "~~~")
FUTURE = re.compile(r"^from[ \t]+__future__\b", re.MULTILINE)


class HumanEval(Benchmark):
    """164 exam problems, and no training problems.

    An answer is the body that continues the prompt, or a whole program (fenced or bare) that defines the function.
    """

    name = "humaneval"
    splits = ("test",)
    bounded = True
    runs_programs = True

    def __init__(
        self, source: str | None = None, revision: str | None = None, sandbox: SandboxConfig = DEFAULT_SANDBOX
    ) -> None:
        self.source, self.revision, self.sandbox = source, revision, sandbox

    @read_once
    def problems(self, split: Split) -> list[Problem]:
        """Return the exam's problems in the file's order, without those whose tests are unusable.

        Raises InputError for `train`, or if the data is missing or broken.
        """
        if split != "test":
            raise InputError("humaneval: it has exam problems only; train on mbpp instead")
        return [problem for problem, _ in self.references()]

    def references(self) -> list[tuple[Problem, str]]:
        """Return each problem with the dataset's own solution, which is a function body that continues the prompt."""
        file = data_file(self.name, self.source, *FILES)
        rows = read_rows(file, FIELDS) if file else hub_rows(HUB, None, "test", FIELDS, self.revision)
        return drop_excluded(self, "test", map(_with_reference, rows))

    def prompt(self, problem: Problem) -> str:
        """Return a prompt with the signature and docstring of the function to complete."""
        return PROMPT.format(prompt=problem.question.strip())

    def score(self, attempts: Sequence[Attempt]) -> list[Score]:
        """Give a reward of 1 if `check` passes, else 0; None if the sandbox fails or the truth is unreadable."""
        return score_programs(
            attempts,
            self.sandbox,
            lambda one, tests: whole_program(one.completion, one.problem.question, tests.entry_point),
        )


def whole_program(completion: str, prompt: str, entry_point: str) -> str | None:
    """Turn a completion of `prompt` into a whole program; None if the completion is blank. Takes linear time.

    A fenced block that defines `entry_point` is a whole program. Without such a block, a text or block that starts with
    an indent is the body of the prompt's function, up to the first of the usual stop sequences; it is appended to the
    prompt. Anything else is a whole program. The prompt's imports and helpers are prepended to a whole program.
    """
    completion = completion.replace("\r\n", "\n")
    fenced = last_block(completion, entry_point)
    if fenced is None or not definition(entry_point).search(fenced):
        if _indented(completion):
            return _continued(prompt, completion)
        if fenced is not None and _indented(fenced):
            return _continued(prompt, fenced)
    program = program_text(completion, entry_point)
    if program is None or FUTURE.search(program):  # nothing may precede a future import
        return program
    return f"{preamble(prompt, entry_point) or ''}\n{program}"


def preamble(prompt: str, entry_point: str) -> str | None:
    """Return the imports and helpers before the prompt's definition of `entry_point`; None if the prompt lacks it."""
    head = definition(entry_point).search(prompt)
    return None if head is None else prompt[: head.start()]


def _continued(prompt: str, body: str) -> str:
    lines = body.strip("\n")
    stop = STOP.search(lines)
    return prompt.rstrip("\n") + "\n" + lines[: stop.start() if stop else len(lines)] + "\n"


def _indented(text: str) -> bool:
    """Return whether the first nonblank line is indented and is not a fence."""
    content = text.lstrip(" \t\n")
    before = text[: len(text) - len(content)].rpartition("\n")[2]
    return bool(content and before) and not content.startswith(FENCES)


def _with_reference(row: Mapping[str, Any]) -> tuple[Problem, str] | Excluded:
    problem_id = f"humaneval/{row['task_id'].rpartition('/')[2]}"
    tests = _tests(row)
    if isinstance(tests, str):
        return Excluded(problem_id, tests)
    return Problem(problem_id, "humaneval", row["prompt"], tests.truth()), row["canonical_solution"]


def _tests(row: Mapping[str, Any]) -> ProgramTests | str:
    """Return the row's tests, or the reason why they are unusable.

    Some problems' `check` calls helpers from the prompt (`poly` in problem 32, `encode_cyclic` in 38, `encode_shift` in
    50). The setup gives the judge its own copies of these helpers, so that no program can replace them. Three of the
    seven asserts of problem 33 compare the function with itself; they stay as published, to keep scores comparable.
    """
    setup = preamble(row["prompt"], row["entry_point"])
    check = f"{row['test']}\n\ncheck({row['entry_point']})\n"
    if setup is None:
        return f"its prompt does not define {row['entry_point']}"
    try:
        ast.parse(setup)
        ast.parse(check)
    except (SyntaxError, ValueError) as error:
        return f"its prompt or its test is not Python ({error})"
    return ProgramTests(setup, (check,), row["entry_point"])
