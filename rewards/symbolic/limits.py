r"""Refuses expressions that the symbolic parser would misread, or that would exhaust time or memory.

An answer that needs ten seconds of algebra, or a gigabyte of memory, is not a final answer. A refused expression still
counts as correct if its text equals the truth's.
"""

import re
from dataclasses import dataclass

LONGEST = 400  # characters
DEEPEST = 10  # nested brackets
MAX_DIGITS = 100  # per number
LARGEST_POWER = 5000  # exponent of a number or letter; nested exponents are multiplied
LARGEST_EXPANSION = 100  # exponent of a bracket with letters: (x + 1)^2005 has 2006 terms

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
TOKEN = re.compile(r"\\[A-Za-z]+|\\.|\^|[({\[]|[)}\]]|[0-9]+(?:\.[0-9]+)?|[A-Za-z]")
OPENING, CLOSING = ("(", "[", "{", r"\{"), (")", "]", "}", r"\}")


def refusal(expression: str) -> str | None:
    """Return why an expression must not be parsed, or None if it may be. Takes linear time."""
    if len(expression) > LONGEST:
        return f"more than {LONGEST} characters"
    notation = next((reason for reason, pattern in PATTERNS.items() if pattern.search(expression)), None)
    return notation or _explosion(expression)


@dataclass
class _Bracket:
    """What has been read of a bracket so far: its largest power, its largest number and its last item."""

    exponent: bool = False  # the bracket itself is an exponent
    inside_exponent: bool = False  # this bracket or one around it is an exponent
    letters: bool = False
    power: int = 1
    largest: int = 1
    last: str = ""  # "bracket", "bracket with letters", "atom" or "power"

    def to_the(self, exponent: int) -> str | None:
        """Raise the last item to a power. Return a reason if the power is too large, else None."""
        power = exponent * (self.power if self.last.startswith("bracket") else 1)
        if power > (LARGEST_EXPANSION if self.last == "bracket with letters" else LARGEST_POWER):
            return "a huge exponent"
        self.power, self.last = max(self.power, power), "power"
        return None

    def add(self, closed: "_Bracket") -> str | None:
        """Add a closed bracket as a new item or the last item's exponent. Return a reason if a power is too large."""
        if closed.exponent:
            return self.to_the(closed.largest)
        self.power, self.largest = max(self.power, closed.power), max(self.largest, closed.largest)
        self.letters = self.letters or closed.letters
        self.last = "bracket with letters" if closed.letters else "bracket"
        return None


def _explosion(expression: str) -> str | None:
    """Return what makes an expression too costly to parse (a power tower, deep nesting, a huge number), or None."""
    brackets, pending = [_Bracket()], False  # pending: the last token was `^`
    for token in TOKEN.findall(expression):
        inner, problem = brackets[-1], None
        if token == "^":
            if inner.inside_exponent or pending or inner.last == "power":
                return "a power tower"
            pending = True
            continue
        if token in OPENING:
            brackets.append(_Bracket(exponent=pending, inside_exponent=pending or inner.inside_exponent))
            problem = "deep nesting" if len(brackets) > DEEPEST else None
        elif token in CLOSING:
            if len(brackets) > 1:  # the parser refuses an unmatched one
                problem = brackets[-2].add(brackets.pop())
        else:
            problem = _atom(token, inner, pending)
        if problem:
            return problem
        pending = False
    return None


def _atom(token: str, inner: _Bracket, pending: bool) -> str | None:
    """Add a number, letter or command to the bracket. Return why a number or power is too large, or None."""
    if len(token) > MAX_DIGITS:
        return f"a number of more than {MAX_DIGITS} digits"
    value = int(token.partition(".")[0]) if token[0].isdigit() else 1
    if pending:
        return inner.to_the(value)
    inner.largest, inner.last = max(inner.largest, value), "atom"
    inner.letters = inner.letters or token.isalpha()
    return None
