"""Finds the numbers in a short answer, such as 1080 in `$1,080.00 dollars`.

Every pattern takes linear time: a run of digits, points and commas is matched as a whole, then parsed.
"""

import re
from collections import deque
from collections.abc import Iterator
from fractions import Fraction
from functools import lru_cache

MINUS = "-\N{MINUS SIGN}\N{EN DASH}"
RUN = re.compile(rf"((?<![0-9])[{MINUS}](?:\*\*)?\\?[$€£]?)?(\.?[0-9][0-9.,]*)")
PLAIN = re.compile(r"[0-9]*\.?[0-9]+")
THOUSANDS = re.compile(r"[1-9][0-9]{0,2}(?:,[0-9]{3})+(?:\.[0-9]+)?")
OPERATOR = re.compile(rf"[{MINUS}+*/^×÷·:eExX{{}}]+")  # alone between two numbers, it makes them a calculation
UNIT_POWER = re.compile(r"[A-Za-z](?:\^\{?)?$")  # what precedes the 2 of `m2`, `ft^2`, `cm^{2}`
LONGEST = 60  # digits, points and commas per number


def numbers(answer: str) -> Iterator[Fraction | None]:
    """Yield each number in a short answer, and None for digits that are not a number (`1,80`, `1.2.3`, `18½`, `18/18`).

    Ignores currency, thousands separators, a final point, bold, percent, surrounding words and the power of a unit.
    """
    answer = re.sub(rf"^\s*([{MINUS}])\s+", r"\1", answer)  # `- 18` at the beginning is minus eighteen
    answer = re.sub(r"(?<=[0-9])(?:\{,\}|\\,)(?=[0-9])", ",", answer)  # LaTeX's thousands separators
    end = 0
    for run in RUN.finditer(answer):
        start, end, between = end, run.end(), answer[end : run.start()]
        digits = run[2].rstrip(".,")
        calculated = start > 0 and OPERATOR.fullmatch(between.strip(" "))
        if start and not calculated and run[1] is None and digits in ("2", "3") and UNIT_POWER.search(between[-3:]):
            continue
        following = answer[end : end + 2].lstrip(" ")[:1]
        fraction = following.isnumeric() and not following.isascii()  # `18½`, `18²`
        yield None if calculated or fraction else _value(run[1] is not None, digits)


def last_number(text: str) -> str:
    """Return the last run of digits, with its sign and the next two characters, or an empty string if there is none."""
    runs = deque(RUN.finditer(text), maxlen=1)
    return text[runs[0].start() : runs[0].end() + 2] if runs else ""


@lru_cache(maxsize=256)  # a text of ten thousand numbers mostly repeats a few
def _value(negative: bool, digits: str) -> Fraction | None:
    if len(digits) > LONGEST:
        return None
    if THOUSANDS.fullmatch(digits):
        digits = digits.replace(",", "")
    elif not PLAIN.fullmatch(digits):
        return None
    return -Fraction(digits) if negative else Fraction(digits)
