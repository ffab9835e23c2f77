"""reasoning-gym's tasks as benchmarks: only a full score is correct, and no grader runs what a model wrote."""

import json
from importlib.util import find_spec

import pytest

from conf.schema import BenchmarkConfig
from conf.storage.home import InputError
from rewards.data.benchmarks import configured
from rewards.environments.reasoning_gym import ReasoningGym
from rewards.verifier import Attempt, Problem

pytestmark = pytest.mark.skipif(find_spec("reasoning_gym") is None, reason="reasoning-gym is not installed")

TASK = "leg_counting"


@pytest.fixture(scope="module")
def gym() -> ReasoningGym:
    return ReasoningGym(TASK)


def test_its_own_answers_are_correct_and_others_are_not(gym: ReasoningGym) -> None:
    def judged(form: str) -> set[tuple[str, float | None]]:
        problems = gym.problems("test")[:20]
        attempts = [Attempt(problem, form.format(json.loads(problem.truth)["answer"])) for problem in problems]
        return {(score.verdict, score.reward) for score in gym.score(attempts)}

    assert judged("So: <answer>{}</answer>") == {("correct", 1.0)}
    assert judged("<answer>{0}</answer> no, <answer>{0}1</answer>") == {("wrong", 0.0)}
    assert judged("{}") == {("no_answer", 0.0)}


def test_a_partial_score_is_not_correct() -> None:
    words = ReasoningGym("word_sorting")
    problem = words.problems("train")[0]
    answer = json.loads(problem.truth)["answer"].split(", ")
    (score,) = words.score([Attempt(problem, f"<answer>{', '.join(answer[::-1])}</answer>")])
    assert (score.verdict, score.reward) == ("wrong", 0.0)
    assert 0 < score.parts["score"] < 1


def test_an_answer_that_its_grader_cannot_read_costs_no_other() -> None:
    factors = ReasoningGym("prime_factorization")
    problem = factors.problems("train")[0]
    answers = ["abc", json.loads(problem.truth)["answer"]]
    scores = factors.score([Attempt(problem, f"<answer>{answer}</answer>") for answer in answers])
    assert [score.verdict for score in scores] == ["wrong", "correct"]


def test_a_truth_that_it_cannot_read_is_the_graders_failure(gym: ReasoningGym) -> None:
    (score,) = gym.score([Attempt(Problem("one", gym.name, "Legs?", "abc"), "<answer>4</answer>")])
    assert (score.verdict, score.reward) == ("grader_failed", None)


def test_the_exam_asks_nothing_that_training_has(gym: ReasoningGym) -> None:
    train, exam = ({problem.question for problem in gym.problems(split)} for split in ("train", "test"))
    assert len(exam) > 400
    assert not train & exam


@pytest.mark.parametrize(
    ("task", "message"),
    [
        ("n_queens", "evaluates answers as programs"),
        ("no_such", "no such task"),
        (None, "no such task"),
        ("game_of_life_halting", "can't tell right from wrong"),  # it takes any answer
        ("complex_arithmetic", "can't tell right from wrong"),  # it takes nan
        ("arc_agi", "can't tell right from wrong"),  # it takes no answer that was written as JSON
    ],
)
def test_a_task_that_cannot_be_used_is_one_line(task: str | None, message: str) -> None:
    with pytest.raises(InputError, match=message):
        configured(BenchmarkConfig(name="rewards.environments.reasoning_gym:ReasoningGym", source=task))
