"""Rejects expressions that equal the truth but are not answers: the question repeated, or an unfinished calculation.

Without this check, a policy could box the question's own expression and count as correct without solving anything.
"""

import re

from rewards.symbolic.normalize import MathAnswer, passages, rational, unnamed

# Matches the operators and commands of an expression that could still be evaluated, unlike a number or a letter.
UNFINISHED = re.compile(r"[-+*/^=.|]|\\(?!pi(?![A-Za-z])|infty|emptyset|[{}])")
FUNCTION = re.compile(
    r"\\(?:(?:arc)?(?:sin|cos|tan|cot|sec|csc)h?|log|ln|lg|exp|[lr]floor|[lr]ceil|gcd|lcm|max|min|det|[pb]?mod)"
    r"(?![A-Za-z])|\|"
)
SUM = re.compile(r"(?<=[0-9A-Za-z)}\]])[-+]")  # a sign between two terms


def not_an_answer(answer: MathAnswer, truth: MathAnswer, question: str) -> str | None:
    """Return why an answer does not count, or None if it may count. The answer's text must differ from the truth's.

    An answer does not count if it repeats an expression that the question asks to transform (`0.75` into a fraction,
    `x^2 - 9` into a product). If the truth is a number, unevaluated functions and sums of 3 or more terms don't count.
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
    """Return whether the question contains the expression, but not inside a longer number or name. Ignores spaces."""
    pattern = r"\s*".join(re.escape(character) for character in value if character != " ")
    return re.search(rf"(?<![A-Za-z0-9.\\]){pattern}(?![A-Za-z0-9]|\.[0-9])", question) is not None
