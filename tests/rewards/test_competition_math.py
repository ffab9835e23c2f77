"""MATH: what a completion is worth, and that nobody is right by a trick."""

from functools import partial
from pathlib import Path

import pytest

from rewards.competition_math import CompetitionMath, true_answer
from rewards.symbolic.equivalence import MathEquality
from rewards.verifier import Attempt, Problem, Score


def scored(completion: str, truth: str = "5", question: str = "What is 2 + 3?") -> Score:
    [score] = CompetitionMath().score([Attempt(Problem("math/test/algebra/0", "math", question, truth), completion)])
    return score


@pytest.mark.parametrize(
    ("completion", "verdict"),
    [
        (r"\boxed{5}", "correct"),
        (r"It is $\boxed{5}$, not 6.", "correct"),
        (r"\boxed{6}, no, \boxed{5}", "correct"),
        (r"\boxed{5}, no, \boxed{6}", "wrong"),
        (r"\boxed{5} or \boxed{6}", "wrong"),
        (r"\boxed{5}\boxed{6}", "wrong"),
        (r"\boxed{5} and \boxed{6", "correct"),
        (r"\boxed{5, 6}", "wrong"),
        (r"\boxed{5 \text{ or } 6}", "wrong"),
        (r"\boxed{5 \text{ or 6}}", "wrong"),
        (r"\boxed{1,2,3,4,5,6,7,8,9}", "wrong"),
        (r"\boxed{x=5}", "correct"),
        (r"\boxed{6=5}", "wrong"),
        (r"\boxed{\frac{10}{2}=5}", "correct"),
        (r"\boxed{4=6=5}", "wrong"),
        (r"\boxed{x=6=5}", "wrong"),
        (r"\boxed{5 \approx 6}", "correct"),  # one value is read, the exact one
        (r"\boxed{6 \approx 5}", "wrong"),
        (r"\boxed{5; \text{Sunday}}", "wrong"),
        (r"\boxed{5 \\ \text{odd}}", "wrong"),
        (r"\boxed{5 \quad 6}", "wrong"),
        (r"\boxed{0 \quad 5}", "wrong"),
        (r"\boxed{0 5}", "wrong"),
        (r"\boxed{5\phantom{0}}", "correct"),
        (r"\boxed{0\phantom{5}}", "wrong"),
        (r"\boxed{x>4}", "wrong"),
        (r"\boxed{x \ge 5}", "wrong"),
        (r"\boxed{\text{I don't know}}", "wrong"),
        (r"\boxed{\text{The answer is } 5}", "wrong"),
        (r"\boxed{?}", "wrong"),
        (r"\boxed{\infty}", "wrong"),
        (r"\boxed{x}", "wrong"),
        (r"\boxed{5x}", "wrong"),
        (r"\boxed{5t}", "wrong"),
        (r"\boxed{[0, 10]}", "wrong"),
        (r"\boxed{\pm 5}", "wrong"),
        (r"\boxed{2+3}", "wrong"),  # the question's own expression
        (r"\boxed{1+1+1+1+1}", "wrong"),
        (r"\boxed{\lfloor 5.5 \rfloor}", "wrong"),
        (r"\boxed{\max(1,5)}", "wrong"),
        (r"\boxed{9^{9^{9}}}", "wrong"),
        (r"\boxed{5!/24}", "wrong"),
        (r"\boxed{(5)_{1}}", "wrong"),
        (r"\boxed{2 3}", "wrong"),  # which math-verify adds
        (r"\boxed{2(3)}", "wrong"),
        (r"\boxed{5" + "0" * 30_000 + "}", "wrong"),
        (r"\boxed{" + "1+" * 40_000 + "1}", "wrong"),
        (r"\boxed{5}" + "x" * 100_000, "correct"),
        ("\\boxed{5\x00}", "wrong"),
        ("\\boxed{\ud800}", "wrong"),
        ("\ud800 \x00 \\boxed{5}", "correct"),
        ("", "no_answer"),
        ("5", "no_answer"),
        ("#### 5", "no_answer"),
        ("The answer is $5$.", "no_answer"),
        (r"\boxed{}", "no_answer"),
        (r"\boxed{5", "no_answer"),
        (r"put your final answer within \boxed{}. 5", "no_answer"),
        (r"\boxed{5} I put it within \boxed{}", "correct"),
        ("\x00" * 100_000, "no_answer"),
    ],
)
def test_what_a_completion_is_worth(completion: str, verdict: str) -> None:
    score = scored(completion)
    assert score.verdict == verdict, score.detail
    assert score.reward == float(verdict == "correct")
    assert score.parts == {"correct": score.reward}
    assert score.detail.isprintable()


@pytest.mark.parametrize(
    ("question", "truth", "answer", "verdict"),
    [
        (r"Express $0.75$ as a common fraction.", r"\frac{3}{4}", "0.75", "wrong"),
        (r"Express $0.75$ as a common fraction.", r"\frac{3}{4}", r"\frac{6}{8}", "correct"),
        (r"Simplify $\dfrac{6}{8}$.", r"\frac{3}{4}", r"\frac68", "wrong"),
        (r"Factor the following expression: $7x^2-63$.", "7(x+3) (x-3)", "7x^2 - 63", "wrong"),
        (r"Factor the following expression: $7x^2-63$.", "7(x+3) (x-3)", "7(x^2 - 9)", "correct"),
        (r"Simplify $\sqrt{72}$.", r"6\sqrt{2}", r"\sqrt{72}", "wrong"),
        (r"Evaluate $\log_2 32$.", "5", r"\log_2 32", "wrong"),
        (r"Write $2x - y = -3$ in slope-intercept form.", "y = 2x + 3", "2x-y=-3", "wrong"),
        (r"Find $x$ where $3x + 2 = 17$.", "x = 5", "3x+2=17", "wrong"),
        (r"What is $-5 + 10$, and what is $5 - 10$?", "-5", "-5", "correct"),
        (r"If $x = -5.0$, what is $x$?", "-5", "-5.0", "correct"),
        (r"Given $(x+1)^2$ and $2x + 2$, what is their quotient?", r"\frac{x+1}{2}", r"\frac{1}{2}(x+1)", "correct"),
        (r"Which is larger, $\sqrt{10}$ or $3.1$?", r"\sqrt{10}", r"\sqrt{10}", "correct"),
        (r"Does 12.5 or 2.5 solve it?", r"\frac{5}{2}", "2.5", "wrong"),
        (r"Does 12.5 solve it?", r"\frac{5}{2}", "2.5", "correct"),
    ],
)
def test_to_repeat_the_question_is_no_answer(question: str, truth: str, answer: str, verdict: str) -> None:
    assert scored(rf"\boxed{{{answer}}}", truth, question).verdict == verdict


def test_to_repeat_a_box_of_the_question_is_no_answer() -> None:
    question = r"Which digit goes into $\boxed{5}3 = 53$?"
    assert scored(question, question=question).verdict == "no_answer"
    assert scored(rf"{question} \boxed{{5}}", question=question).verdict == "correct"


@pytest.mark.parametrize(
    "truth", ["", " ", r"\boxed{}", r"so it is \boxed{5", r"\boxed{\$}", "no box, but words " * 40]
)
def test_an_unreadable_truth_is_the_graders_failure_never_a_zero(truth: str) -> None:
    assert true_answer(truth) is None
    score = scored(r"\boxed{5}", truth)
    assert (score.reward, score.verdict) == (None, "grader_failed")


@pytest.mark.parametrize(
    "truth", [r"First \boxed{4}, then \boxed{5}.", r"\fbox{5}", "5", " 5 ", r"\frac{10}{2}", "$5$"]
)
def test_the_truth_is_a_solution_or_a_bare_answer(truth: str) -> None:
    assert scored(r"\boxed{5}", truth).verdict == "correct"
    assert scored(r"\boxed{4}", truth).verdict == "wrong"


def test_scores_come_in_the_attempts_order_with_symbols_among_them() -> None:
    problem = Problem("", "math", "", r"2\sqrt{3}")
    texts = [r"\boxed{\sqrt{12}}", "none", r"\boxed{2\sqrt3}", r"\boxed{\sqrt{13}}", r"\boxed{7}", r"\boxed{\sqrt{12}}"]
    scores = CompetitionMath().score([Attempt(problem, text) for text in texts])
    assert [score.verdict for score in scores] == ["correct", "no_answer", "correct", "wrong", "wrong", "correct"]
    assert all(score.seconds > 0 for score in scores)
    assert CompetitionMath().score([]) == []


def test_what_is_too_hard_is_a_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rewards.competition_math.MathEquality", partial(MathEquality, seconds=1.0))
    score = scored(r"\boxed{x^{99} + y^{98} = z^{97} + \sin x}", r"2x^{99} + 2y^{98} = 2z^{97} + 2\sin x + 1")
    assert (score.verdict, score.reward) == ("timeout", 0.0)


def test_without_math_verify_texts_are_judged_and_the_rest_is_null(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "math_verify.py").write_text("raise ImportError('none here')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    problem = Problem("", "math", "", r"2\sqrt{3}")
    texts = [r"\boxed{2 \sqrt 3}", r"\boxed{\sqrt{12}}", r"\boxed{\text{none}}", "none"]
    scores = CompetitionMath().score([Attempt(problem, text) for text in texts])
    assert [score.reward for score in scores] == [1.0, None, 0.0, 0.0]
    assert scores[1].verdict == "grader_failed"
    assert "ImportError: none here" in scores[1].detail
