"""Expressions that equal the truth and yet are no answer: the question repeated, or a calculation not done.

A policy that boxes the question's own expression would be right by algebra without having solved anything.
"""

import re

from rewards.symbolic.normalize import MathAnswer, passages, rational, unnamed

# What makes an expression more than a number, a letter or a point: something in it could still be done.
TO_DO = re.compile(r"[-+*/^=.|]|\\(?!pi(?![A-Za-z])|infty|emptyset|[{}])")
FUNCTION = re.compile(
    r"\\(?:(?:arc)?(?:sin|cos|tan|cot|sec|csc)h?|log|ln|lg|exp|[lr]floor|[lr]ceil|gcd|lcm|max|min|det|[pb]?mod)"
    r"(?![A-Za-z])|\|"
)
SUM = re.compile(r"(?<=[0-9A-Za-z)}\]])[-+]")  # a sign between two terms


def not_an_answer(answer: MathAnswer, truth: MathAnswer, question: str) -> str | None:
    """Why an answer that differs from the truth's own text does not count, None where it may.

    Two reasons: it is a passage of the question in which something was to be done (`0.75` as a fraction,
    `x^2 - 9` as a product); or the truth is a number, and the answer a function's value or a calculation of
    several steps that is not worked out.
    """
    value = unnamed(answer.normal)
    number = rational(value)
    if number and number[0].denominator == 1:
        return None
    if "," not in value and TO_DO.search(value) and _is_passage(value, passages(question)):
        return "repeats the question"
    if number is None and rational(unnamed(truth.normal)):
        if FUNCTION.search(value):
            return "a function's value that is not worked out"
        if len(SUM.findall(value)) > 1:
            return "a calculation that is not worked out"
    return None


def _is_passage(value: str, question: str) -> bool:
    """Whether the expression stands in the question, not as a part of a longer number or name; spaces do not matter."""
    pattern = r"\s*".join(re.escape(character) for character in value if character != " ")
    return re.search(rf"(?<![A-Za-z0-9.\\]){pattern}(?![A-Za-z0-9]|\.[0-9])", question) is not None
