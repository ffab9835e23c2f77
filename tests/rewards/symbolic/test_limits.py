"""Expressions that explode or that the parser misreads are refused; ordinary ones are not."""

import pytest

from rewards.symbolic.limits import refusal


@pytest.mark.parametrize(
    ("expression", "reason"),
    [
        ("5!", "a factorial"),
        (r"\binom{100}{50}", "a sum, product, integral, limit or binomial"),
        (r"\sum_{k=1}^{9} k", "a sum, product, integral, limit or binomial"),
        (r"\iint x", "a sum, product, integral, limit or binomial"),
        ("9^{9^9}", "a power tower"),
        ("9^(9^(9))", "a power tower"),
        ("x^{y^{z}}", "a power tower"),
        ("9^{99999}", "a huge exponent"),
        ("x^{99999}", "a huge exponent"),
        ("((9^{99})^{99})^{99}", "a huge exponent"),
        (r"\frac{9^{999}}{1}^{999}", "a huge exponent"),
        ("(x+1)^{2005}", "a huge exponent"),
        (r"(\frac{x}{2}+y)^{101}", "a huge exponent"),
        ("{" * 10 + "1" + "}" * 10, "deep nesting"),
        (r"\sqrt{" * 12 + "2" + "}" * 12, "deep nesting"),
        ("9" * 101, "a number of more than 100 digits"),
        ("1" + "+1" * 200, "more than 400 characters"),
        ("(9)_{5}", "an index after a bracket"),
        ("2(3)", "numbers side by side"),
        ("2 3", "numbers side by side"),
        (r"\overline{12}", "a bar, a composition or an angle inside"),
        (r"\cos 20^\circ", "a bar, a composition or an angle inside"),
        (r"\begin{cases} 1 \\ 2 \end{cases}", "another environment than a matrix"),
        ("5$6", "a dollar, a box or a doubled power sign"),
        (r"\(5\)", "a dollar, a box or a doubled power sign"),
    ],
)
def test_refused(expression: str, reason: str) -> None:
    assert refusal(expression) == reason


@pytest.mark.parametrize(
    "expression",
    [
        r"(\frac{1}{2})^{10}",
        "(x+1)^{10}(x-1)^{10}",
        r"2^{-n}",
        r"\log_2 5",
        "x_1 + x_2",
        r"\sin^2 x",
        "2x(3x+1)",
        "9" * 100,
        "x^2)",
        "((",
        r"x^{\frac{1}{2}}",
        "3(x)",
    ],
)
def test_not_refused(expression: str) -> None:
    assert refusal(expression) is None
