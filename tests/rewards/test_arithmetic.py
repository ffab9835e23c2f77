"""Arithmetic: its fixed exam, its endless training problems, and its strict reading of an answer."""

import hashlib
import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewards.arithmetic import Arithmetic, as_problem, worked_solution
from rewards.data.arithmetic_exercises import Exercise, exercises
from rewards.verifier import Attempt, Problem

TWELVE = Exercise("1", "plus", "What is 7 + 5?", ("7 + 5 = 12",), 12)
NUMBERS = st.integers(min_value=-(10**9), max_value=10**9)


@given(NUMBERS, NUMBERS)
def test_only_the_true_number_scores(truth: int, answered: int) -> None:
    problem = Problem("arithmetic/1/plus/5 + 7", "arithmetic", "What is 7 + 5?", str(truth))
    scores = Arithmetic().score([Attempt(problem, f"#### {number}") for number in (answered, truth)])
    assert [score.reward for score in scores] == [float(answered == truth), 1.0]


def test_an_exercise_as_a_problem_with_its_prompt_kind_and_worked_solution() -> None:
    problem = as_problem(TWELVE)
    assert problem == Problem("arithmetic/1/plus/5 + 7", "arithmetic", "What is 7 + 5?", "12", "1")
    assert worked_solution(TWELVE) == "7 + 5 = 12\n#### 12"
    prompt = "Solve the problem below. Give the steps, then the answer as #### <number> on a last line.\nWhat is 7 + 5?"
    assert Arithmetic().prompt(problem) == prompt
    assert Arithmetic().kind(problem) == "arithmetic/1/plus"
    split = Exercise("5", "gain-split", "", ("2 + 4 = 6", "6 / 3 = 2"), 2)
    assert Arithmetic().kind(as_problem(split)) == "arithmetic/5/gain-split"


@pytest.mark.parametrize("level", ["1", "2"])
def test_the_exam_of_the_small_levels_has_all_problems_that_exist(level: str) -> None:
    drawn = itertools.islice(exercises("other", (level,), "test"), 10_000)
    exam = {problem.problem_id for problem in Arithmetic(levels=[level]).problems("test")}
    assert {as_problem(exercise).problem_id for exercise in drawn} == exam


@pytest.mark.parametrize(
    ("levels", "digest"),
    [
        (("1", "2"), "d79b12fc2325e9d8823b9833db619999068f6eb82e5023cc629157ceafb0b69f"),
        (("3", "4", "5"), "4d6afc7cf90af59c25ce165f291a96939a4957ee9f4a3f3e45a3c4bebee6b7c7"),
    ],
)
def test_the_exam_never_changes(levels: tuple[str, ...], digest: str) -> None:
    exam = Arithmetic(levels=levels).problems("test")
    text = "\n".join(f"{problem.problem_id}\t{problem.question}\t{problem.truth}" for problem in exam)
    assert hashlib.sha256(text.encode()).hexdigest() == digest
