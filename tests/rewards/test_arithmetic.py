"""Arithmetic: its fixed exam, its endless training problems, and its strict reading of an answer."""

import hashlib
import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conf.storage.home import InputError
from rewards.arithmetic import Arithmetic, as_problem, worked_solution
from rewards.data.arithmetic_exercises import LEVELS, Exercise, exercises
from rewards.verifier import Attempt, Problem, Score

TWELVE = Exercise("1", "plus", "What is 7 + 5?", ("7 + 5 = 12",), 12)
EXAM_IDS = {problem.problem_id for problem in Arithmetic().problems("test")}


def scored(completion: str, truth: str = "12") -> Score:
    problem = Problem("arithmetic/1/plus/5 + 7", "arithmetic", "What is 7 + 5?", truth, "1")
    [score] = Arithmetic().score([Attempt(problem, completion)])
    return score


@pytest.mark.parametrize(
    ("completion", "verdict"),
    [
        ("7 + 5 = 12\n#### 12", "correct"),
        ("####12", "correct"),
        ("#### 12\n", "correct"),
        ("#### 12.0", "correct"),
        ("#### 012", "correct"),
        ("#### 13\n#### 12", "correct"),
        ("#### 13", "wrong"),
        ("#### -12", "wrong"),
        ("#### 12\n#### 13", "wrong"),
        ("#### 12.0000000000000000000000000001", "wrong"),
        ("12", "no_answer"),
        ("### 12", "no_answer"),
        ("#### 12 apples", "no_answer"),
        ("#### 12.", "no_answer"),
        ("#### $12", "no_answer"),
        ("#### 12 13", "no_answer"),
        ("#### 12\nThat is it.", "no_answer"),
        ("#### 24/2", "no_answer"),
        ("#### 1.2e1", "no_answer"),
        ("#### 1_2", "no_answer"),
        ("#### \u0661\u0662", "no_answer"),  # Arabic-Indic digits, which int() would read as 12
        ("#### \uff11\uff12", "no_answer"),
        ("#### +12", "no_answer"),
        ("#### nan", "no_answer"),
        ("#### <number>", "no_answer"),
        ("#### 12 ####", "no_answer"),
        ("####", "no_answer"),
        ("", "no_answer"),
        ("#### " + "9" * 20_000, "no_answer"),
        ("#" * 20_000 + "12", "correct"),
    ],
)
def test_what_a_completion_is_worth(completion: str, verdict: str) -> None:
    score = scored(completion)
    assert score.verdict == verdict
    assert score.reward == (1.0 if verdict == "correct" else 0.0)
    assert score.parts == {"correct": score.reward}


def test_to_repeat_the_prompt_is_no_answer() -> None:
    assert scored(Arithmetic().prompt(as_problem(TWELVE))).verdict == "no_answer"


def test_scores_come_in_the_attempts_order() -> None:
    problem = as_problem(TWELVE)
    scores = Arithmetic().score([Attempt(problem, text) for text in ("#### 1", "#### 12", "none")])
    assert [score.verdict for score in scores] == ["wrong", "correct", "no_answer"]


@settings(max_examples=200, deadline=None)
@given(st.text() | st.text(alphabet="# 012.-e\n").map(lambda text: f"####{text}"))
def test_scoring_never_raises(completion: str) -> None:
    assert scored(completion).verdict in ("correct", "wrong", "no_answer")


@given(st.integers(min_value=-(10**9), max_value=10**9), st.integers(min_value=-(10**9), max_value=10**9))
def test_only_the_true_number_scores(truth: int, answered: int) -> None:
    assert scored(f"#### {answered}", str(truth)).reward == float(answered == truth)
    assert scored(f"#### {truth}", str(truth)).reward == 1.0


def test_the_problem_and_its_worked_solution() -> None:
    problem = as_problem(TWELVE)
    assert problem == Problem("arithmetic/1/plus/5 + 7", "arithmetic", "What is 7 + 5?", "12", "1")
    assert worked_solution(TWELVE) == "7 + 5 = 12\n#### 12"
    prompt = "What is 7 + 5?\nGive the steps, then the answer on a last line as #### <number>."
    assert Arithmetic().prompt(problem) == prompt


@pytest.mark.parametrize("level", LEVELS)
def test_every_worked_solution_is_correct(level: str) -> None:
    drawn = list(itertools.islice(exercises("solutions", (level,), "train"), 500))
    attempts = [Attempt(as_problem(exercise), worked_solution(exercise)) for exercise in drawn]
    assert {score.verdict for score in Arithmetic().score(attempts)} == {"correct"}


def test_a_kind_is_level_and_template() -> None:
    assert Arithmetic().kind(as_problem(TWELVE)) == "arithmetic/1/plus"
    split = Exercise("5", "gain-split", "", ("2 + 4 = 6", "6 / 3 = 2"), 2)
    assert Arithmetic().kind(as_problem(split)) == "arithmetic/5/gain-split"


@pytest.mark.parametrize(
    ("levels", "count"),
    [(("1", "2"), 400), (("1",), 200), (("2",), 200), (("3",), 100), (("4",), 100), (("5",), 100), (None, 700)],
)
def test_the_exams_size(levels: tuple[str, ...] | None, count: int) -> None:
    exam = Arithmetic(levels=levels).problems("test")
    assert len(exam) == len({problem.problem_id for problem in exam}) == count
    assert {problem.level for problem in exam} == set(levels or LEVELS)


@pytest.mark.parametrize(
    ("levels", "digest"),
    [
        (("1", "2"), "438668a3d6299b753fe23dd4a7c5ee350ada637bf73a081b1c94a3ee890b9dcb"),
        (("3", "4", "5"), "26a18ed8f43eb13b2b60fb41b0e91f4105171572132beaef2e8e9775c2a19a34"),
    ],
)
def test_the_exam_never_changes(levels: tuple[str, ...], digest: str) -> None:
    exam = Arithmetic(levels=levels).problems("test")
    text = "\n".join(f"{problem.problem_id}\t{problem.question}\t{problem.truth}" for problem in exam)
    assert hashlib.sha256(text.encode()).hexdigest() == digest


@settings(max_examples=60, deadline=None)
@given(st.text(max_size=20) | st.just("exam"), st.sets(st.sampled_from(LEVELS), min_size=1))
def test_no_training_draw_contains_an_exam_problem_under_any_name(seed: str, levels: set[str]) -> None:
    drawn = Arithmetic(levels=sorted(levels)).draw(seed, 150)
    assert len(drawn) == 150
    assert not {problem.problem_id for problem in drawn} & EXAM_IDS


def test_the_training_problems() -> None:
    training = Arithmetic(levels=["2"]).problems("train")
    assert len(training) == 2000
    assert training == Arithmetic(levels=["2"]).problems("train")
    assert {problem.level for problem in training} == {"2"}
    assert not {problem.problem_id for problem in training} & EXAM_IDS


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"source": "folder"}, "arithmetic: its problems are generated"),
        ({"levels": ["1", "9"]}, "arithmetic: no level 9; there are 1, 2, 3, 4, 5"),
    ],
)
def test_what_makes_no_sense_is_refused(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Arithmetic(**arguments)  # type: ignore[arg-type]


@pytest.mark.parametrize("truth", ["twelve", "", "#### 12", "1/0", "1" * 40])
def test_a_truth_that_is_no_number_is_the_graders_failure(truth: str) -> None:
    attempt = Attempt(Problem("trace", "arithmetic", "How many?", truth), "#### 12")
    (score,) = Arithmetic().score([attempt])
    assert (score.reward, score.verdict) == (None, "grader_failed")
