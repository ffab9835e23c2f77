"""One form for the many ways to write an answer, and what texts and numbers alone decide.

Real answers in many forms, and their verdicts, are in `answers/math_forms.toml`.
"""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewards.symbolic.normalize import decided, passages, rational, read


@pytest.mark.parametrize(
    ("answer", "normal"),
    [
        (r"\frac 1{ 2}", r"\frac{1}{2}"),
        (r"\frac\pi 2", r"\frac{\pi}{2}"),
        (r"\phantom -1", "1"),
        ("0 147", "0 147"),
        (r"\mbox{Four}", "4"),
        (r"\text{four or five}", "four,five"),
        ("5⁄11", "5/11"),
        (r"\bigl(1\bigr)", "(1)"),
        (r"\left.5\right.", "5"),
        ("x^{2}_{1}", "x^2_1"),
        ("2*3", r"2\cdot3"),
        (r"x \leq 5", r"x\le5"),
        (r"\leftarrow", r"\leftarrow"),
        ("1,234,567.5", "1234567.5"),
        ("x = 1,234", "x=1234"),
        (r"5\,\mathrm{m/s}", "5"),
        (r"5 \text{ feet per second}.", "5"),
        (r"\frac{1}{2} \text{ of a pie}", r"\frac{1}{2}"),
        (r"x=\text{ cm}", "x=cm"),
        (r"5 \text{ thousand}", "5thousand"),
        (r"2\text{i}", "2i"),
        (r"0.1\overline{6}", r"\frac{1}{6}"),
        ("+5", "5"),
        (r"\text{Area} = 5", "5"),
        (r"5\\", "5"),
        ("", ""),
        (r"\$", ""),
    ],
)
def test_the_normal_form(answer: str, normal: str) -> None:
    assert read(answer).normal == normal


@pytest.mark.parametrize(
    "answer", ["5", "2x", "x+y", r"\pi", "x_1 + x_2", r"5 \text{ cm}", "(1,2)", r"\{1,2\}", r"\sqrt{2}"]
)
def test_what_has_a_value_does_not(answer: str) -> None:
    assert not read(answer).text


@pytest.mark.parametrize(
    ("normal", "value"),
    [
        ("007", Fraction(7)),
        ("2.50", Fraction(5, 2)),
        (r"-\frac{1}{2}", Fraction(-1, 2)),
        (r"\frac{0.5}{2}", Fraction(1, 4)),
        (r"3\frac{1}{2}", Fraction(7, 2)),
        (r"-3\frac{1}{2}", Fraction(-7, 2)),
        (r"3\frac{5}{2}", Fraction(15, 2)),
        ("1/0", None),
        (r"\frac{1}{0}", None),
        ("1/2/3", None),
        ("1e5", None),
        ("", None),
        ("9" * 41, None),
    ],
)
def test_rational_numbers(normal: str, value: Fraction | None) -> None:
    number = rational(normal)
    assert (number and number[0]) == value


@pytest.mark.parametrize(
    ("prediction", "truth", "equal"),
    [
        ("0.333333", r"\frac13", True),
        ("0.3333333333", r"\frac13", True),
        ("0.333334", r"\frac13", False),
        ("0.0", r"\frac{1}{10000000}", False),
        ("0.0000001", "0", False),
        ("0.0000001", "0.0000002", False),
        ("1000000.1", "1000000", False),
        (r"50\%", r"\frac12", True),
        (r"50\%", "50", True),
        (r"\frac12", r"50\%", True),
        (r"50\%", r"5000", False),
        ("x=5", "y=5", None),
        ("x=5", "5", True),
        ("5", r"x\in 5", True),
        ("x=5=6", "6", None),
        ("(x,y)=(1,2)", "(1,2)", True),
        ("f(x)=2x", "2x", True),
        ("5!", "120", False),
        ("EVEN", r"\text{even}", True),
        ("", "5", False),
        (r"\$", r"\%", False),
    ],
)
def test_what_texts_and_numbers_decide(prediction: str, truth: str, equal: bool | None) -> None:
    assert decided(read(prediction), read(truth))[0] is equal


def test_a_question_in_the_answers_form_keeps_its_spaces() -> None:
    assert passages(r"Simplify $\dfrac{6}8$ and $x^{2} \times 3$.") == r"Simplify \frac{6}{8}, x^2 \cdot 3."


@given(st.fractions(max_denominator=10**6), st.fractions(max_denominator=10**6))
def test_numbers_are_equal_where_their_values_are(left: Fraction, right: Fraction) -> None:
    forms = [f"{left.numerator}/{left.denominator}", rf"\frac{{{left.numerator}}}{{{left.denominator}}}"]
    for form in forms:
        assert decided(read(form), read(str(left)))[0] is True
        assert decided(read(form), read(f"{right.numerator}/{right.denominator}"))[0] is (left == right)
