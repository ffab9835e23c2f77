"""Expressions that equal the truth but are not answers: the question repeated, or an unfinished calculation.

Otherwise a policy that boxes the question's own expression would be right by algebra without solving anything.
"""

import re

from rewards.symbolic.normalize import MathAnswer, passages, rational, unnamed

# What makes an expression more than a number, a letter or a point: it could still be evaluated.
UNFINISHED = re.compile(r"[-+*/^=.|]|\\(?!pi(?![A-Za-z])|infty|emptyset|[{}])")
FUNCTION = re.compile(
    r"\\(?:(?:arc)?(?:sin|cos|tan|cot|sec|csc)h?|log|ln|lg|exp|[lr]floor|[lr]ceil|gcd|lcm|max|min|det|[pb]?mod)"
    r"(?![A-Za-z])|\|"
)
SUM = re.compile(r"(?<=[0-9A-Za-z)}\]])[-+]")  # a sign between two terms


def not_an_answer(answer: MathAnswer, truth: MathAnswer, question: str) -> str | None:
    """Return why an answer that differs from the truth's own text does not count; None where it may.

    Either it is a passage of the question that was to be transformed (`0.75` as a fraction, `x^2 - 9` as a product), or
    the truth is a number and the answer an unevaluated function or sum of several terms.
    """
    value = unnamed(answer.normal)
    number = rational(value)
    if number and number[0].denominator == 1:
        return None
    if "," not in value and UNFINISHED.search(value) and _is_passage(value, passages(question)):
        return "repeats the question"
    if number is None and rational(unnamed(truth.normal)):
        if FUNCTION.search(value):
            return "an unevaluated function"
        if len(SUM.findall(value)) > 1:
            return "an unfinished calculation"
    return None


def _is_passage(value: str, question: str) -> bool:
    """Return whether the question contains the expression, not within a longer number or name; spaces are ignored."""
    pattern = r"\s*".join(re.escape(character) for character in value if character != " ")
    return re.search(rf"(?<![A-Za-z0-9.\\]){pattern}(?![A-Za-z0-9]|\.[0-9])", question) is not None
