"""Small mutations of reference programs: the sandbox gives the verdict of a plain interpreter for each of them."""

import ast
import json
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from conf.schema import SandboxConfig
from rewards.humaneval import HumanEval
from rewards.mbpp import Mbpp
from rewards.programs.unit_tests import ProgramTests, judged
from rewards.sandbox import Program
from tests.rewards.datasets import needs_data

RUNNER = Path(__file__).parent / "plain_runner.py"
SECONDS = 2.0  # of CPU; the plain interpreter gets twice that, so that only an endless mutant times out in both
LIMITS = SandboxConfig(seconds=SECONDS)
PAIRS: list[tuple[type[ast.AST], type[ast.AST]]] = [
    (ast.Add, ast.Sub),
    (ast.Mult, ast.FloorDiv),
    (ast.BitAnd, ast.BitOr),
    (ast.LShift, ast.RShift),
    (ast.And, ast.Or),
    (ast.Lt, ast.LtE),
    (ast.Gt, ast.GtE),
    (ast.Eq, ast.NotEq),
    (ast.In, ast.NotIn),
    (ast.Is, ast.IsNot),
]
SWAPPED = {
    **dict(PAIRS),
    **{second: first for first, second in PAIRS},
    **{ast.Div: ast.Mult, ast.Mod: ast.FloorDiv, ast.Pow: ast.Mult, ast.BitXor: ast.BitOr},
}


@needs_data
@pytest.mark.parametrize(("references", "mutants_each"), [(10, 2), pytest.param(200, 4, marks=pytest.mark.full)])
def test_mutants_get_the_verdict_of_a_plain_interpreter(references: int, mutants_each: int) -> None:
    chosen = random.Random("mutations")
    programs: list[Program] = []
    for reference, within in chosen.sample(reference_programs(), references):
        sources = list(mutants(reference.source, within))
        for source in chosen.sample(sources, min(mutants_each, len(sources))):
            programs.append(Program(source, reference.tests, reference.setup, reference.entry_point, SECONDS))
    expected = plain(programs, round(2 * SECONDS))
    scores = judged(programs)
    different = [
        (program.source, program.tests, score)
        for program, passed, score in zip(programs, expected, scores, strict=True)
        if score.reward != float(passed)
    ]
    assert different == []
    assert True in expected
    assert False in expected


def reference_programs() -> list[tuple[Program, str | None]]:
    """Return every reference that passes, and the function to change (None: any).

    HumanEval's helpers are not changed: the judge has its own, a plain interpreter shares the program's.
    """
    programs: list[tuple[Program, str | None]] = []
    for problem, code in [*Mbpp().references("train"), *Mbpp().references("test")]:
        tests = ProgramTests.read(problem.truth)
        assert tests is not None
        programs.append((tests.program(code, LIMITS), None))
    for problem, code in HumanEval().references():
        tests = ProgramTests.read(problem.truth)
        assert tests is not None
        programs.append((tests.program(problem.question + code, LIMITS), tests.entry_point))
    return programs


def mutants(source: str, within: str | None = None) -> Iterator[str]:
    """Yield the source once for every small change that can be made to it (in the function `within`)."""
    for index in range(len(list(ast.walk(ast.parse(source))))):
        tree = ast.parse(source)
        inside = {
            id(node)
            for function in tree.body
            if within is None or (isinstance(function, ast.FunctionDef) and function.name == within)
            for node in ast.walk(function)
        }
        node = list(ast.walk(tree))[index]
        if id(node) in inside and changed(node):
            yield ast.unparse(tree)


def changed(node: ast.AST) -> bool:
    """Change the node a little. Return whether its kind allows that."""
    match node:
        case ast.BinOp(op=op) | ast.AugAssign(op=op) | ast.BoolOp(op=op) if type(op) in SWAPPED:
            node.op = SWAPPED[type(op)]()
        case ast.Compare(ops=[op, *others]) if type(op) in SWAPPED:
            node.ops = [SWAPPED[type(op)](), *others]
        case ast.Constant(value=bool(value)):
            node.value = not value
        case ast.Constant(value=int(value) | float(value)):
            node.value = value + 1
        case _:
            return False
    return True


def plain(programs: Sequence[Program], seconds: int) -> list[bool]:
    """Return whether each program passes its tests in a plain interpreter, in the same order; two run at a time."""
    environment = {"PYTHONHASHSEED": "0", "TZ": "UTC", "LC_ALL": "C.UTF-8"}
    running = []
    for start in range(2):
        with tempfile.TemporaryFile() as jobs:
            jobs.write(json.dumps([[each.source, each.setup, each.tests] for each in programs[start::2]]).encode())
            jobs.seek(0)
            command = [sys.executable, str(RUNNER), str(seconds)]
            running.append(subprocess.Popen(command, stdin=jobs, stdout=subprocess.PIPE, env=environment))
    passed = [False] * len(programs)
    for start, process in enumerate(running):
        output, _ = process.communicate()
        assert process.returncode == 0
        for index in json.loads(output):
            passed[start + 2 * index] = True
    return passed
