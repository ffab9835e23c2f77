r"""Normalises answers to MATH problems, and compares them as texts and as numbers.

The normal form follows `math_equivalence.py` by Hendrycks et al. (2021, arXiv:2103.03874). It covers fractions and
roots without braces, `\left`, `\dfrac`, spaces, units, degrees, dollars, percent and leading zeros. Unlike in that
script, text counts as a unit only at the end, and only if it can be a unit: `5 \text{ or } 6` is not 5.
"""

import itertools
import re
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from rewards.data.contamination import FIGURE
from rewards.symbolic.limits import refusal
from rewards.symbolic.units import TEXT, without_units

LONGEST = 1000  # characters; longer answers are not normalised, and the longest truth has fewer than 200
PLACES = 6  # decimal places to which a decimal number must agree with an exact one, as in math-verify
RELATIVE = Fraction(1, 1000)  # relative tolerance of the same comparison, so that 0.0000001 is not 0

UNICODE = str.maketrans(
    {
        "−": "-",
        "–": "-",
        "×": r"\times ",
        "·": r"\cdot ",
        "÷": "/",
        "⁄": "/",
        "π": r"\pi ",
        "∞": r"\infty ",
        "°": r"^\circ ",
    }
    | {"∪": r"\cup ", "≤": r"\le ", "≥": r"\ge ", "≠": r"\ne ", "√": r"\sqrt ", "²": "^2", "³": "^3", "½": r"\frac12"}
)
DEGREES = re.compile(r"\^\s*(?:\\circ|\{\s*\\circ\s*\})(?![A-Za-z])|\\degree(?![A-Za-z])")
TRIGONOMETRY = re.compile(r"\\(?:arc)?(?:sin|cos|tan|cot|sec|csc)")
# Applied in this order. `(?<!\\)` preserves the line breaks of matrices. A replacement of None keeps only the digits.
REWRITES = [
    (re.compile(pattern), replacement)
    for pattern, replacement in (
        (r"(?<![0-9.,])[0-9]{1,3}(?:(?:\{,\}|,\s?\\!\s?|\\[,!])[0-9]{3})+(?![0-9])", None),
        (r"\\\\\[[^\[\]]*\]", r"\\\\"),
        (r"\{,\}", ","),
        (r"(?<!\\)\\[!,;:> ]|~", " "),
        (r"\\q?quad(?![A-Za-z])", ", "),
        (r"\\[hv]?phantom(?![A-Za-z])\s*(?:\{[^{}]*\}|\S)", ""),
        (r"\\(?:left|right|[bB]igg?[lrm]?)(?![A-Za-z])\s*\.?", ""),
        (r"\\[dtc]frac(?![A-Za-z])", r"\\frac"),
        (r"\\(?:display|text)style(?![A-Za-z])|\\(?:rm|bf|it)(?![A-Za-z])", ""),
        (r"\\leq?(?:slant)?(?![A-Za-z])", r"\\le "),
        (r"\\geq?(?:slant)?(?![A-Za-z])", r"\\ge "),
        (r"\\neq(?![A-Za-z])", r"\\ne "),
        (r"\\lbrace(?![A-Za-z])", r"\\{"),
        (r"\\rbrace(?![A-Za-z])", r"\\}"),
        (r"\\[lr]vert(?![A-Za-z])", "|"),
        (r"(?<![A-Za-z\\])pi(?![A-Za-z])", r"\\pi "),
        (r"\\varnothing(?![A-Za-z])", r"\\emptyset "),
        (r"\\?[$%]|^\\[(\[]|\\[)\]]$|^\\approx(?![A-Za-z])", ""),
        (rf"^{TEXT}\{{[A-Za-z ]*\}}\s*=", ""),
        (r"(?<![A-Za-z])([AaPp])\.?\s?([Mm])(?![A-Za-z])\.?", r"\1\2"),
        (rf",?\s*(?:{TEXT}\{{\s*,?\s*(?:and|or)\s*\}}|(?<![A-Za-z\\])(?:and|or)(?![A-Za-z]))\s*", ", "),
    )
]
REPEATING = re.compile(r"(?<![0-9.])([0-9]{0,20})\.([0-9]{0,20})\\overline\s*\{([0-9]{1,20})\}")
# The argument of a root or fraction without braces is one character; arguments in braces stay as they are.
BRACES = [
    (re.compile(r"\\sqrt\s*([0-9A-Za-z])"), r"\\sqrt{\1}"),
    (re.compile(r"\\frac\s*(\\(?:pi|theta))\s*([0-9A-Za-z])"), r"\\frac{\1}{\2}"),
    (re.compile(r"\\frac\s*([0-9A-Za-z])\s*([0-9A-Za-z])"), r"\\frac{\1}{\2}"),
    (re.compile(r"\\frac\s*([0-9A-Za-z])\s*\{"), r"\\frac{\1}{"),
    (re.compile(r"\\frac\s*\{([^{}]*)\}\s*([0-9A-Za-z])"), r"\\frac{\1}{\2}"),
    (re.compile(r"(?<![0-9])\.(?=[0-9])"), "0."),
]

SMALL_NUMBERS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
BASE = re.compile(r"-?[0-9A-F.]+_(?:[0-9]|\{[0-9]{1,2}\})")
LETTERS = re.compile(r"[A-Za-z]+(?:[,;][A-Za-z]+)*")
NAME = (
    r"(?:[A-Za-z]{1,3}|\\(?:alpha|beta|gamma|delta|theta|lambda|mu|phi|omega)|\\angle[A-Z]{1,3})"
    r"(?:_(?:[A-Za-z0-9]|\{[A-Za-z0-9]+\}))?(?:\^\{-1\})?(?:\([A-Za-z0-9]\))?|\([a-z](?:,[a-z])+\)"
)
NAMED = re.compile(rf"({NAME})(?:=|\\in(?=[^a-z]))([^=]+)")
EQUALS = re.compile(r"(?<![<>!:])=")
NUMBER = r"[0-9]{1,40}(?:\.[0-9]{0,40})?"
THOUSANDS = re.compile(r"(?:^|(?<==)|(?<== ))(-?[0-9]{1,3}(?:,[0-9]{3})+(?:\.[0-9]+)?)$")  # `100, 200` is a list
RATIONAL = re.compile(
    rf"(?P<sign>[-+]?)(?:(?P<whole>[0-9]{{1,40}})?\\frac\{{(?P<top>-?{NUMBER})\}}\{{(?P<bottom>-?{NUMBER})\}}"
    rf"|(?P<left>{NUMBER})/(?P<right>{NUMBER})|(?P<number>{NUMBER}))"
)


@dataclass(frozen=True)
class MathAnswer:
    """An answer as parsed (`plain`) and as compared (`normal`). `text`: it is only text. `percent`: it has a % sign."""

    plain: str
    normal: str
    text: bool
    percent: bool = False


@lru_cache(maxsize=1024)
def read(answer: str) -> MathAnswer:
    """Normalise the contents of a LaTeX box: standardise notation that does not change its value. Never raises."""
    if len(answer) > LONGEST:
        return MathAnswer(answer, " ".join(answer.split()), text=False)
    plain = _rewritten(_without_outer_braces(answer))
    plain = DEGREES.sub(r"^\\circ " if TRIGONOMETRY.search(plain) else " ", plain)
    plain = without_units(plain)
    words = re.search(rf"{TEXT}\{{[^{{}}]*[A-Za-z]{{2}}", plain) is not None
    plain = re.sub(rf"{TEXT}\{{([^{{}}]*)\}}", r" \1 ", plain)
    plain = " ".join(_with_braces(plain).split()).rstrip(" .,;\\").lstrip(" ,;")
    normal = _squeezed(plain)
    if normal.lower() in SMALL_NUMBERS:
        plain = normal = str(SMALL_NUMBERS.index(normal.lower()))
        words = False
    return MathAnswer(plain, normal, words or _only_text(normal), "%" in answer)


@lru_cache(maxsize=256)
def passages(question: str) -> str:
    """Return a question's text rewritten like an answer but with its spaces, so that it can be searched for answers.

    The code of its drawings is left out: it is full of numbers.
    """
    return _unified(_with_braces(_rewritten(FIGURE.sub(" ", question))))


def unnamed(normal: str) -> str:
    """Return the value after the name in `x=5` or `f(x)=2x`, or the whole text if there is no name."""
    named = NAMED.fullmatch(normal)
    return named[2] if named else normal


def decided(prediction: MathAnswer, truth: MathAnswer) -> tuple[bool | None, str]:
    """Compare two answers as text and as numbers. Return whether they are equal (None: undecided), and the reason."""
    if prediction.normal == truth.normal:
        return bool(truth.normal), "the same text"
    if prediction.text or truth.text:
        same = len(truth.normal) > 1 and prediction.normal.casefold() == truth.normal.casefold()
        return same, "compared as text"
    if not prediction.normal or len(prediction.normal) > LONGEST:
        return False, "too long" if prediction.normal else "without a value"
    left, right = _without_names(prediction.normal, truth.normal)
    if left == right:
        return True, "the same text"
    answered, true = rational(left), rational(right)
    if answered and true:
        values = [(answered[0], true[0])]
        if prediction.percent != truth.percent:  # 50% may mean 50 or a half
            values.append((answered[0] / 100, true[0]) if prediction.percent else (answered[0], true[0] / 100))
        return any(_equal(*pair, exact=not (answered[1] or true[1])) for pair in values), "compared as numbers"
    refused = refusal(prediction.plain) or refusal(truth.plain)
    return (False, f"not the same text, and not parsed: {refused}") if refused else (None, "")


def for_parser(prediction: MathAnswer, truth: MathAnswer) -> list[tuple[str, str]]:
    """Return pairs for math-verify, all of which must be equal: it reads only what follows the last `=` of an answer.

    A name that both share (`x=…`) is left out, so that it solves no equations. If the answer has more `=` than the
    truth, each side is a pair (`10/2=5`, but not `x=6 or x=5`), but for a first one that says what is equal (`a+b=5`).
    """
    names = NAMED.fullmatch(prediction.normal), NAMED.fullmatch(truth.normal)
    if names[0] and names[1] and names[0][1] == names[1][1]:
        return [(_value(prediction.plain), _value(truth.plain))]
    first, *others = EQUALS.split(prediction.plain)
    if len(others) <= len(EQUALS.findall(truth.plain)):
        return [(prediction.plain, truth.plain)]
    sides = others if _says_what(first, truth, names[1]) else [first, *others]
    return [(side, _value(truth.plain) if names[1] else truth.plain) for side in sides]


def _says_what(side: str, truth: MathAnswer, named: re.Match[str] | None) -> bool:
    """Return whether the first side of an equation says what is equal to the other sides, and is no value itself."""
    if named or "=" in truth.plain:
        return named is not None and re.sub(r"\s", "", side) == named[1]
    if re.fullmatch(NAME, re.sub(r"\s", "", side)) or re.fullmatch(r"[A-Za-z]+(?: [A-Za-z]+)*", side.strip()):
        return True
    letters = re.compile(r"(?<![A-Za-z\\])[A-Za-hj-z]")
    begins = re.match(r"\s*(?:[A-Za-z|(\[]|\\(?!frac|sqrt))", side)  # `6x=5` may be two values
    return not letters.search(truth.plain) and begins is not None and letters.search(side) is not None


def _value(plain: str) -> str:
    return re.split(r"=|\\in(?![A-Za-z])", plain)[-1]


def rational(normal: str) -> tuple[Fraction, bool] | None:
    """Return the value of an integer, decimal, fraction or mixed number, and whether it has a decimal point."""
    match = RATIONAL.fullmatch(normal)
    if match is None:
        return None
    top, bottom = match["top"] or match["left"], match["bottom"] or match["right"]
    try:
        value = Fraction(top) / Fraction(bottom) if top else Fraction(match["number"])
    except (ZeroDivisionError, ValueError):
        return None
    if match["whole"]:  # 3\frac{1}{2} is a mixed number, 3\frac{5}{2} a product
        whole = int(match["whole"])
        value = whole + value if 0 < value < 1 else whole * value
    return (-value if match["sign"] == "-" else value), "." in normal


def _equal(left: Fraction, right: Fraction, exact: bool) -> bool:
    if left == right or exact:
        return left == right
    return round(left, PLACES) == round(right, PLACES) and abs(left - right) <= RELATIVE * min(abs(left), abs(right))


def _without_names(left: str, right: str) -> tuple[str, str]:
    """Return both answers without their names, unless the names differ: `x=5` equals `5`, but not `y=5`."""
    names = NAMED.fullmatch(left), NAMED.fullmatch(right)
    if names[0] and names[1] and names[0][1] != names[1][1]:
        return left, right
    return unnamed(left), unnamed(right)


def _rewritten(answer: str) -> str:
    plain = " ".join(answer.translate(UNICODE).split())
    for pattern, replacement in REWRITES:
        plain = pattern.sub(_digits if replacement is None else replacement, plain)
    return REPEATING.sub(_repeating, plain)


def _without_outer_braces(answer: str) -> str:
    """Return `C` for `{C}`, but `{1}+{2}` as it is."""
    inner = answer.strip()
    while inner[:1] == "{" and inner[-1:] == "}" and inner[-2:-1] != "\\":
        depths = [*itertools.accumulate({"{": 1, "}": -1}.get(character, 0) for character in inner)]
        if 0 in depths[:-1]:
            break
        inner = inner[1:-1].strip()
    return inner


def _with_braces(plain: str) -> str:
    for pattern, replacement in BRACES:
        plain = pattern.sub(replacement, plain)
    return plain


def _squeezed(plain: str) -> str:
    """Return the form in which texts are compared: no spaces except between digits, no needless braces."""
    normal = THOUSANDS.sub(lambda number: number[0].replace(",", ""), plain)
    normal = re.sub(r"^[1-9][0-9]{0,2}(?: [0-9]{3})+$", lambda number: number[0].replace(" ", ""), normal)
    normal = re.sub(r"^(-?[0-9]+) ([0-9]+)/([0-9]+)$", r"\1\\frac{\2}{\3}", normal)
    normal = re.sub(r"(?<![0-9]) | (?![0-9])", "", _unified(normal))
    normal = re.sub(r"^\+(?=[0-9])", "", normal)
    return re.sub(r"^\(([A-Za-z])\)$", r"\1", normal)


def _unified(plain: str) -> str:
    """Return the text with `x^2` instead of `x^{2}`, and with `\\cdot` for every product."""
    return re.sub(r"\\times(?![A-Za-z])|\*", r"\\cdot", re.sub(r"([\^_])\{ ?([0-9A-Za-z]) ?\}", r"\1\2", plain))


def _only_text(normal: str) -> bool:
    """Return whether an answer is comparable only as text: letters, a time, a ratio or a number in another base."""
    return ":" in normal or BASE.fullmatch(normal) is not None or LETTERS.fullmatch(normal) is not None


def _digits(number: re.Match[str]) -> str:
    return re.sub(r"[^0-9]", "", number[0])


def _repeating(number: re.Match[str]) -> str:
    """Return a repeating decimal as a fraction: 0.1\\overline{6} is (16 - 1) / 90."""
    whole, start, period = number[1] or "0", number[2], number[3]
    value = Fraction(int(whole + start + period) - int(whole + start), 10 ** len(start) * (10 ** len(period) - 1))
    return rf"\frac{{{value.numerator}}}{{{value.denominator}}}"
