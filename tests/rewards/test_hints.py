"""Hints: how much of a solution they show, where they end, and that they never give the answer away."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewards.hints import hint

STEPS = "Ann has 3 apples.\nShe buys 4 more: 3 + 4 = 7.\n#### 7"
BOXED = r"We have $x + 2 = 5$, so $x = 3$. The answer is $\boxed{3}$."
CODE = "def area(a, b):\n    if a < 0:\n        a = -a\n    whole = a * b\n    half = whole / 2\n    return half"


@pytest.mark.parametrize(
    ("solution", "share", "expected"),
    [
        (STEPS, 0.0, ""),
        (STEPS, 0.25, "Ann has 3"),
        (STEPS, 0.5, "Ann has 3 apples.\nShe buys"),
        (STEPS, 1.0, "Ann has 3 apples.\nShe buys 4 more: 3 + 4 = 7."),
        (BOXED, 0.5, "We have $x + 2 = 5$, so $x ="),
        (BOXED, 1.0, "We have $x + 2 = 5$, so $x = 3$. The answer is"),
        ("Take three away.\nSo it is four.", 1.0, "Take three away."),
        ("It is four", 1.0, "It is"),
        ("four", 1.0, ""),
        ("", 0.5, ""),
    ],
)
def test_text_is_cut_at_a_word_before_the_answer(solution: str, share: float, expected: str) -> None:
    assert hint(solution, share) == expected


@pytest.mark.parametrize("fence", ["", "```python\n"])
@pytest.mark.parametrize(
    ("share", "expected"),
    [
        (0.0, ""),
        (0.45, "def area(a, b):\n    if a < 0:\n        a = -a"),
        (0.6, "def area(a, b):\n    if a < 0:\n        a = -a\n    whole = a * b"),
        (1.0, "def area(a, b):\n    if a < 0:\n        a = -a\n    whole = a * b\n    half = whole / 2"),
    ],
)
def test_a_program_is_cut_at_a_statement_before_the_last(share: float, expected: str, fence: str) -> None:
    solution = f"{fence}{CODE}\n```" if fence else CODE
    assert hint(solution, share, program=True) == (fence + expected if expected else "")


def test_a_broken_program_or_one_statement_has_no_hint() -> None:
    assert hint("def f(:", 0.5, program=True) == ""
    assert hint("def f(x): return x", 1.0, program=True) == ""


@given(st.text(), st.floats(0, 1), st.sampled_from(["#### 7", r"so \boxed{7}", ""]), st.booleans())
def test_a_hint_is_a_beginning_without_the_answer(text: str, share: float, answer: str, program: bool) -> None:
    found = hint(text + answer, share, program)
    assert (text + answer).startswith(found)
    assert not any(mark in found for mark in ("####", r"\boxed"))
    assert found == found.rstrip()
