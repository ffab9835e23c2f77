"""Small mutations of reference programs: the sandbox gives the verdict of a plain interpreter for each of them."""

import ast
import json
import random
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from conf.schema import SandboxConfig
from rewards.humaneval import HumanEval
from rewards.mbpp import Mbpp
from rewards.programs.unit_tests import ProgramTests, judged
from rewards.sandbox import Program
from tests.rewards.datasets import needs_data

SECONDS = 2.0  # of CPU; the plain interpreter gets twice that, so that only an endless mutant times out in both
LIMITS = SandboxConfig(seconds=SECONDS)
# Runs a trusted program and its tests in one module, under limits. Its standard input: source, setup, tests, seconds.
PLAIN = """
import json, os, random, resource, signal, sys
source, setup, tests, seconds = json.load(sys.stdin)
resource.setrlimit(resource.RLIMIT_AS, (700 << 20, 700 << 20))
resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
signal.alarm(60)
random.seed(0)
try:
    module = {"__name__": "solution"}
    for text in (source, setup, *tests):
        exec(compile(text, "<program>", "exec", dont_inherit=True), module)
except BaseException:  # sys.exit and the like do not count as a pass
    os._exit(1)
os._exit(0)
"""
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
    with ThreadPoolExecutor(2) as pool:
        expected = [*pool.map(passes, programs)]
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
    for problem, code in [*Mbpp().references("train"), *Mbpp().references("test"), *HumanEval().references()]:
        tests = ProgramTests.read(problem.truth)
        assert tests is not None
        whole = problem.benchmark == "mbpp"
        source = code if whole else problem.question + code
        programs.append((tests.program(source, LIMITS), None if whole else tests.entry_point))
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


def passes(program: Program) -> bool:
    """Return whether a program passes its tests in a plain interpreter."""
    done = subprocess.run(
        [sys.executable, "-c", PLAIN],
        input=json.dumps([program.source, program.setup, program.tests, round(2 * SECONDS)]).encode(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={"PYTHONHASHSEED": "0", "TZ": "UTC", "LC_ALL": "C.UTF-8"},
        check=False,
    )
    return done.returncode == 0
