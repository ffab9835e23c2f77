"""Every reference of MBPP and HumanEval passes its own tests, in every form, and no stub does."""

import json
import random

import pytest

from rewards.humaneval import HumanEval
from rewards.mbpp import Mbpp
from rewards.verifier import Attempt, Benchmark, Problem
from tests.rewards.datasets import needs_data

pytestmark = needs_data
# References that are tables: February has 28 days, b is 0 for roots of opposite sign, and two numbers give one or 2.
# HumanEval's problems with helpers, with random inputs, or whose test compares the function with itself.
SPECIAL = (10, 32, 33, 38, 50, 51, 53, 115, 134)
SOME = pytest.mark.parametrize("some", [True, pytest.param(False, marks=pytest.mark.full, id="all")])


@SOME
def test_mbpps_pass_and_their_stubs_fail(some: bool) -> None:
    pairs = [*Mbpp().references("train"), *Mbpp().references("test")]
    if some:
        pairs = random.Random(0).sample(pairs, 40)
    completions = [(problem, f"So:\n```python\n{code}\n```") for problem, code in pairs]
    stubs = [(problem, f"def {_entry(problem)}(*args, **kwargs):\n    return None\n") for problem, _ in pairs]
    assert _unexpected(Mbpp(), completions, 1.0) == []
    assert _unexpected(Mbpp(), stubs, 0.0) == []


@SOME
def test_humanevals_pass_and_their_stubs_fail(some: bool) -> None:
    pairs = HumanEval().references()
    if some:
        pairs = [*(pairs[number] for number in SPECIAL), *random.Random(0).sample(pairs, 25)]
    completions = [
        (problem, form)
        for problem, body in pairs
        for form in (body, problem.question + body, f"So:\n```python\n{problem.question}{body}\n```\nDone.")
    ]
    stubs = [(problem, "    return None\n") for problem, _ in pairs]
    stubs += [(problem, f"def {_entry(problem)}(*args):\n    return None\n") for problem, _ in pairs]
    assert _unexpected(HumanEval(), completions, 1.0) == []
    assert _unexpected(HumanEval(), stubs, 0.0) == []


def _entry(problem: Problem) -> str:
    return json.loads(problem.truth)["entry_point"]


def _unexpected(benchmark: Benchmark, pairs: list[tuple[Problem, str]], reward: float) -> list[tuple[str, str]]:
    scores = benchmark.score([Attempt(problem, completion) for problem, completion in pairs])
    return [
        (problem.problem_id, f"{score.verdict}: {score.detail}")
        for (problem, _), score in zip(pairs, scores, strict=True)
        if score.reward != reward
    ]
