"""Whatever a model writes: every reading of it ends soon, with a verdict and without an exception."""

import re
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewards.arithmetic import Arithmetic
from rewards.competition_math import CompetitionMath, true_answer
from rewards.data.solution_formats import read_question, read_solution
from rewards.gsm8k import Gsm8k
from rewards.humaneval import whole_program
from rewards.programs.extraction import program_text
from rewards.symbolic.boxed import last_boxed
from rewards.symbolic.limits import refusal
from rewards.symbolic.normalize import decided, passages, read
from rewards.triviaqa import TriviaQa, true_names
from rewards.verifier import Attempt, Benchmark, Problem
from tests.rewards.pace import LINEAR, LONGEST, walks

ANSWER_UNITS = [
    *r"\boxed{ \boxed{} \boxed{5} \boxed{\boxed{ \fbox \boxed\frac boxed{ { } \ \{ \} \\{ {} }{".split(),
    *"#### # ####<number> <number> Answer: answer 1 1, 9 9. -**$ − ,234 1,234 $ % ** ½ ² / ^ ^{ _ ( ) . = x= x".split(),
    *r"\$ \frac \frac1 \frac{ \sqrt \text{ \left( \overline{3} ! a é İ <answer> </answer> <think> </think> #".split(),
    *("\\boxed ", "#### ", "#### 1", "#### <", "# ", "Answer: <answer>", "1 ", "- ", r"\text{ cm}", "cm ", "and "),
    *(" or", "The ", "User:\n", "Assistant:\n", "answer is ", "\x00", "\ud800", "\n", " ", "\t"),
]
PROGRAM_UNITS = [
    *"` ``` ```` ~ { ```{ a def ( [ lambda: def\t".split(),
    *("```\n", "``` \n", "```python\n", "````\n```\n", "~~~\n```\n", " ", "   ```", "\n", "\r", "\r\n", "x\n"),
    *("    x\n", "def twice", "def twice\n", "\n#", "def ", "def f(x):\n    return ", "\x00", "\ud800", " \n", "\t"),
]
ANSWER_STARTS = ("", r"\boxed{", "#### 1", "Answer: ", r"\frac{")
PROGRAM_STARTS = ("", "```python\n", "   ```\n", "    x\n", "def ")
PROMPT = 'import math\n\ndef twice(n):\n    """Twice."""\n'


def scores(benchmark: Benchmark, truth: str) -> Callable[[str], None]:
    """Judge a text and check that it has a verdict."""
    problem = Problem("", benchmark.name, "What is #### 7, \\boxed{7}, Answer: 7?", truth)

    def judge(text: str) -> None:
        [score] = benchmark.score([Attempt(problem, text)])
        assert score.verdict in ("correct", "wrong", "no_answer")
        assert score.reward == float(score.verdict == "correct")

    return judge


def not_blank(reader: Callable[[str], str | None]) -> Callable[[str], None]:
    """Read a program or an answer in a text and check that it is not blank."""

    def check_reading(text: str) -> None:
        found = reader(text)
        assert found is None or found.strip()

    return check_reading


ANSWER_READERS: dict[str, Callable[[str], object]] = {
    "arithmetic": scores(Arithmetic(), "18"),
    "gsm8k": scores(Gsm8k(), "#### 1"),
    "gsm8k, lenient": scores(Gsm8k(lenient=True), "#### 1"),
    "math": scores(CompetitionMath(), r"\boxed{\text{even}}"),
    "triviaqa": scores(TriviaQa(), '["York"]'),
    "last_boxed": last_boxed,
    "an answer of any length": lambda text: decided(read(text), read("5")),
    "an answer of 1,000 characters": lambda text: decided(read(text[:1000]), read("5")),
    "refusal": refusal,
    "a truth of MATH": true_answer,
    "a truth of TriviaQA": true_names,
    "a question": lambda text: passages(text[:2000]),
    "a worked solution": not_blank(lambda text: solution.answer if (solution := read_solution(text)) else None),
    "a prompt": read_question,
}
PROGRAM_READERS: dict[str, Callable[[str], object]] = {
    "program_text": not_blank(program_text),
    "whole_program": not_blank(lambda text: whole_program(text, PROMPT, "twice")),
}
READERS = ANSWER_READERS | PROGRAM_READERS


def check(name: str, text: str) -> None:
    """Read the text without an exception, in linear time (see `tests/rewards/pace.py`), with empty caches."""

    def reading() -> None:
        for cached in (read, true_answer, true_names, passages):
            cached.cache_clear()
        READERS[name](text)

    assert walks(reading) < LINEAR


@st.composite
def hostile(draw: st.DrawFn, units: list[str], starts: tuple[str, ...]) -> str:
    """A few short strings repeated often, in a row or mixed, up to 20,000 characters."""
    chosen = draw(st.lists(st.sampled_from(units) | st.text(max_size=3), min_size=1, max_size=4))
    counts = [draw(st.integers(1, LONGEST)) for _ in chosen]
    text = draw(st.sampled_from(starts))
    if draw(st.booleans()):
        text += "".join(unit * count for unit, count in zip(chosen, counts, strict=True))
    else:
        text += "".join(chosen) * counts[0]
    return text[:LONGEST] if draw(st.booleans()) else text[: LONGEST - 1] + "}"


def mixed(units: list[str]) -> st.SearchStrategy[str]:
    return st.lists(st.sampled_from(units) | st.sampled_from("0123456789.,-x \n"), max_size=40).map("".join)


@pytest.mark.parametrize("name", ANSWER_READERS)
@given(text=hostile(ANSWER_UNITS, ANSWER_STARTS) | mixed(ANSWER_UNITS) | st.text())
def test_no_answer_raises_or_takes_long(name: str, text: str) -> None:
    check(name, text)


@pytest.mark.parametrize("name", PROGRAM_READERS)
@given(text=hostile(PROGRAM_UNITS, PROGRAM_STARTS) | mixed(PROGRAM_UNITS) | st.text())
def test_no_program_raises_or_takes_long(name: str, text: str) -> None:
    check(name, text)


@pytest.mark.full
@pytest.mark.parametrize("name", READERS)
def test_no_repetition_takes_long(name: str) -> None:
    """Every unit alone, and behind every opening, at the full length."""
    of_programs = name in PROGRAM_READERS
    for unit in PROGRAM_UNITS if of_programs else ANSWER_UNITS:
        for start in PROGRAM_STARTS if of_programs else ANSWER_STARTS:
            check(name, (start + unit * LONGEST)[:LONGEST])


@pytest.mark.parametrize(("pattern", "linear"), [("a+b", False), ("b", True), ("[^b]*$", True), ("(?:a|b)", True)])
def test_the_pace_tells_linear_from_quadratic(pattern: str, linear: bool) -> None:
    assert (walks(lambda: re.findall(pattern, "a" * LONGEST)) < LINEAR) is linear
