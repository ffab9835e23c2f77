"""Rejects expressions that equal the truth but are not answers: the question repeated, or an unfinished calculation.

Without this check, a policy could box the question's own expression and count as correct without solving anything.
"""

import itertools
import re

from rewards.data.contamination import FIGURE
from rewards.symbolic.normalize import EQUALS, MathAnswer, passages, rational, unnamed

# Matches the operators and commands of an expression that could still be evaluated, unlike a number or a letter.
UNFINISHED = re.compile(r"[-+*/^=.|]|\\(?!pi(?![A-Za-z])|infty|emptyset|[{}])")
FUNCTION = re.compile(
    r"\\(?:(?:arc)?(?:sin|cos|tan|cot|sec|csc)h?|log|ln|lg|exp|[lr]floor|[lr]ceil|gcd|lcm|max|min|det|[pb]?mod)"
    r"(?![A-Za-z])|\|"
)
FORMULA = re.compile(r"\$([^$]+)\$")
PART = re.compile(r"\\[A-Za-z]+|[0-9.]+|[^\s(){}+]")
ORDERED = re.compile(r"[=<>|&]|\\[lg]e(?![A-Za-z])")  # in another order, such an expression says something else
DECORATIONS = (
    r"\((.+)\)",
    r"\{(.+)\}",
    r"1(?:\\cdot)?((?:\\sqrt|\().+)",
    r"(.+)[-+]0",
    r"\\frac\{(.+)\}\{1\}",
    r"(.+)/1",
)
SUM = re.compile(r"(?<=[0-9A-Za-z)}\]])[-+]")  # a sign between two terms


def not_an_answer(answer: MathAnswer, truth: MathAnswer, question: str) -> str | None:
    """Return why an answer does not count, or None if it may count. The answer's text must differ from the truth's.

    An answer does not count if it repeats an expression that the question asks to transform (`0.75` into a fraction,
    `x^2 - 9` into a product). If the truth is a number, unevaluated functions and sums of 3 or more terms don't count
    (in an equation, what counts is its last side).
    """
    value = unnamed(answer.normal)
    last = EQUALS.split(value)[-1]  # of `a+b+c=12`
    sides = {value, last} if "=" not in truth.normal else {value}
    if any(_repeats(side, question) for side in sides):
        return "repeats the question"
    if rational(last) is None and rational(unnamed(truth.normal)):
        if FUNCTION.search(last):
            return "an unevaluated function"
        if len(SUM.findall(last)) > 1:
            return "an unfinished calculation"
    return None


def _repeats(value: str, question: str) -> bool:
    """Return whether an expression that could still be evaluated stands in the question, perhaps in another order."""
    number, bare = rational(value), _undecorated(value)
    if (number and number[0].denominator == 1) or "," in value or not UNFINISHED.search(value):
        return False
    if _is_passage(bare, passages(question)):
        return True
    if rational(bare) or ORDERED.search(bare):
        return False
    formulas = FORMULA.findall(FIGURE.sub(" ", question))
    return sorted(_parts(bare)) in [sorted(_parts(passages(formula))) for formula in formulas]


def _undecorated(value: str) -> str:
    """Return an expression without what changes only its form: brackets around it, `1 ·` before it, `+ 0` after it."""
    before = None
    while before != value:
        before = value
        for pattern in DECORATIONS:
            if (found := re.fullmatch(pattern, value)) and _balanced(found[1]):
                value = found[1]
    return value


def _balanced(text: str) -> bool:
    """Return whether no bracket is closed before it is opened, as in `a)(b`."""
    depths = itertools.accumulate((character in "({") - (character in ")}") for character in text)
    return all(depth >= 0 for depth in depths)


def _parts(expression: str) -> list[str]:
    """Return an expression's numbers, names and operators, without brackets, spaces, plus signs and products."""
    return PART.findall(expression.replace("\\cdot", " "))


def _is_passage(value: str, question: str) -> bool:
    """Return whether the question contains the expression, but not inside a longer number or name. Ignores spaces."""
    pattern = r"\s*".join(re.escape(character) for character in value if character != " ")
    return re.search(rf"(?<![A-Za-z0-9.\\]){pattern}(?![A-Za-z0-9]|\.[0-9])", question) is not None
