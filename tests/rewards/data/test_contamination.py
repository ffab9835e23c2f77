"""The exam's questions are found in texts that ask them, and not in texts that ask something else."""

import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.contamination import changed_words
from rewards.arithmetic import Arithmetic
from rewards.competition_math import CompetitionMath
from rewards.data.contamination import Contamination, Match, words
from rewards.data.solution_formats import read_question
from rewards.gsm8k import Gsm8k
from tests.rewards.datasets import needs_data

DICE = "Two fair six-sided dice are rolled. What is the probability that the sum of the two numbers is at least 9?"
FRACTION = r"Find the value of $\frac{3}{4}$ of $60\%$ of 200."
SHORT = "What is 10 * 10?"
CHOOSE = r"Compute $\dbinom{8}{2}$."
FIGURE = "Find the area of triangle ABC in the diagram. [asy] draw((0,0)--(3,4)); [/asy]"
EXAM = Contamination([DICE, FRACTION, SHORT, CHOOSE, FIGURE])


@pytest.mark.parametrize(
    ("text", "question"),
    [
        (DICE, DICE),
        (f"Please help me with this:\n\n{DICE.upper()}\nThink step by step. 1. Read. 2. Answer.", DICE),
        (r"find the value of $ \dfrac {3}{4} $ of 60% of $200$", FRACTION),
        (r"Find the value of $\frac34$ of $60\%$ of $200.$", FRACTION),
        (r"Compute $\displaystyle \binom{8}{2}$.", CHOOSE),
        ("What is 10*10 ?", SHORT),
        ("Find the area of triangle ABC in the diagram.", FIGURE),
        ("Find the area of triangle $ABC$ in the diagram. [asy] draw((1,0)--(9,9)); [/asy]", FIGURE),
    ],
)
def test_the_same_words_in_other_notation(text: str, question: str) -> None:
    assert EXAM.match(text) == Match(question, "exact", 1.0)


@pytest.mark.parametrize("around", ["{}", "Problem 7: {}", "{} (3 points)", "12. {} It is 10 of 36.", "Exercise 9: {}"])
def test_nearly_the_same_words_between_other_numbers(around: str) -> None:
    """Only the numbers within the question count; with others there it is a different problem.

    Its 23 words, signs and numbers (six-sided is three of them) make 20 n-grams of 4, of which `fair` is in two.
    """
    changed = DICE.replace("fair", "ordinary")
    assert EXAM.match(around.format(changed)) == Match(DICE, "near", 18 / 20)
    for number in ("10", "7"):
        assert EXAM.match(around.format(changed.replace("9", number))) is None


@pytest.mark.parametrize(
    "text",
    [
        DICE.replace("9", "10"),  # another problem made from the same template
        "What is 10 * 10 + 3?",  # goes on
        "What is 2 + 10 * 10?",
        "What is 110 * 10?",
        "What is 10 + 10?",
        "What is the probability that two fair dice show the same number?",
        "",
        "$$ \\\\ ...",
    ],
)
def test_other_problems(text: str) -> None:
    assert EXAM.match(text) is None


def test_an_exam_without_questions_or_with_empty_ones() -> None:
    assert Contamination([]).match(DICE) is None
    assert Contamination(["", "?"]).match(DICE) is None


def test_the_longest_of_several_matches() -> None:
    exam = Contamination(["What is 2?", "What is 2? And what is 3?"])
    found = exam.match("What is 2? And what is 3?")
    assert found is not None
    assert found.question == "What is 2? And what is 3?"


@given(st.text(max_size=60), st.text(max_size=30), st.text(max_size=30))
def test_every_question_is_found_within_any_text(question: str, before: str, after: str) -> None:
    exam = Contamination([question])
    assert (exam.match(question) is not None) == bool(words(question))
    inside = exam.match(f"{before}. Now: {question} Well: {after}")
    if words(question) and "[" not in before + question + after:  # the rest may count as a figure
        assert inside is not None


def test_no_training_exercise_matches_one_of_the_exam() -> None:
    exam = Contamination(problem.question for problem in Arithmetic().problems("test"))
    assert not [one for one in Arithmetic().draw("training", 3000) if exam.match(Arithmetic().prompt(one))]
    assert all(exam.match(Arithmetic().prompt(problem)) for problem in Arithmetic().problems("test"))


@needs_data
def test_real_problems_with_words_changed_are_found() -> None:
    problems = CompetitionMath(subset="500").problems("test")
    exam = Contamination(problem.question for problem in problems)
    for changes, least in ((1, 0.95), (2, 0.8)):
        changed = changed_words([problem.question for problem in problems], changes)
        assert len(changed) > 450
        assert sum(exam.match(text) is not None for text in changed) > least * len(changed)


@needs_data
def test_the_real_traces_ask_no_exam_problem() -> None:
    exam = Contamination(one.question for own in (CompetitionMath(), Gsm8k()) for one in own.problems("test"))
    file = Path(os.environ["NIGHTSCHOOL_DATA"]) / "traces" / "math_reasoning_traces.jsonl"
    asked = {read_question(json.loads(line)["prompt"]) for line in file.read_text().splitlines()}
    assert len(asked) == 128
    assert not [text for text in asked if exam.match(text)]
