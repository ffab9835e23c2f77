r"""Refuses expressions that the symbolic parser would misread, or that would exhaust time or memory.

An answer that needs ten seconds of algebra, or a gigabyte of memory, is not a final answer. A refused expression still
counts as correct if its text equals the truth's.
"""

import re
from itertools import accumulate
from math import prod

LONGEST = 400  # characters
DEEPEST = 10  # nested brackets
MAX_DIGITS = 100  # per number
LARGEST_POWER = 5000  # exponent of a number or letter, times those of brackets
LARGEST_EXPANSION = 100  # exponent of brackets, if there are letters: (x + 1)^2005 has 2006 terms

NOTATIONS = {
    "a factorial": r"!",
    "a sum, product, integral, limit or binomial": (
        r"\\(?:sum|(?:co)?prod|[dt]?binom|choose|i{1,3}nt|oint|lim(?:sup|inf)?)(?![A-Za-z])"
    ),
    "a bar, a composition or an angle inside": (
        r"\\(?:(?:over|under)(?:line|brace|set)|bar|circ|degree|stackrel)(?![A-Za-z])"
    ),
    # math-verify reads (n)_k as a quotient of factorials, 2(3) as the mixed number 2 + 3, and 2 3 as 5
    "an index after a bracket": r"[)\]}]\s*_",
    "numbers side by side": (
        r"(?<![_0-9])[0-9]+\s+[0-9]|[0-9]\s*\(\s*[0-9./]+\s*\)|\(\s*[0-9./]+\s*\)\s*(?:[0-9]|\(\s*[0-9./]+\s*\))"
    ),
    "another environment than a matrix": r"\\begin\{(?![pbBvV]?matrix\})",
    "a dollar, a box or a doubled power sign": r"\$|\\[\[\]()]|\\f?box|\*\*",
}
PATTERNS = {reason: re.compile(pattern) for reason, pattern in NOTATIONS.items()}
COMMAND, NUMBER, LETTER = re.compile(r"\\[A-Za-z]+"), re.compile(r"(?<![0-9.])[0-9]+"), re.compile("[A-Za-z]")
LONG_NUMBER = re.compile(rf"[0-9.]{{{MAX_DIGITS + 1}}}")
TOWER = re.compile(r"\^\s*(?:\{[^}]*\^|\([^)]*\^|\w\s*\^)")
# The bracket that is raised to a power, if it is one, and the exponent
POWER = re.compile(r"([)\]}]?)\s*\^\s*(\{(?:[^{}]|\{[^{}]*\})*\}|\([^()]*\)|[0-9]+)")


def refusal(expression: str) -> str | None:
    """Return why an expression must not be parsed, or None if it may be. Takes linear time."""
    if len(expression) > LONGEST:
        return f"more than {LONGEST} characters"
    notation = next((reason for reason, pattern in PATTERNS.items() if pattern.search(expression)), None)
    return notation or _explosion(expression)


def _explosion(expression: str) -> str | None:
    """Return what makes an expression too costly to parse (a power tower, deep nesting, a huge number), or None.

    Powers of brackets are multiplied, as if each bracket were inside the next.
    """
    plain = COMMAND.sub(" ", expression)
    if LONG_NUMBER.search(plain):
        return f"a number of more than {MAX_DIGITS} digits"
    if max(accumulate((letter in "({[") - (letter in ")}]") for letter in plain), default=0) >= DEEPEST:
        return "deep nesting"
    if TOWER.search(plain):
        return "a power tower"
    powers = [(bracket, max([1, *map(int, NUMBER.findall(exponent))])) for bracket, exponent in POWER.findall(plain)]
    outer = prod(power for bracket, power in powers if bracket)
    inner = max((power for bracket, power in powers if not bracket), default=1)
    if outer * inner > LARGEST_POWER or (outer > LARGEST_EXPANSION and LETTER.search(plain)):
        return "a huge exponent"
    return None
