"""Whatever a model writes: every reading of it ends soon, with a verdict and without an exception."""

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rewards.arithmetic import Arithmetic
from rewards.competition_math import CompetitionMath, true_answer
from rewards.gsm8k import Gsm8k
from rewards.symbolic.boxed import last_boxed
from rewards.symbolic.limits import refusal
from rewards.symbolic.normalize import decided, passages, read
from rewards.triviaqa import TriviaQa, true_names
from rewards.verifier import Attempt, Benchmark, Problem
from tests.rewards.pace import LINEAR, LONGEST, walks

UNITS = [
    *(
        r"\boxed{",
        r"\boxed{}",
        r"\boxed{5}",
        r"\boxed{\boxed{",
        r"\fbox",
        r"\boxed ",
        r"\boxed\frac",
        "boxed{",
        "{",
        "}",
    ),
    *("\\", r"\{", r"\}", "\\\\{", "{}", "}{", "####", "#### ", "#", "####<number>", "#### 1", "<number>", "Answer:"),
    *(
        "Answer: <answer>",
        "answer",
        "1",
        "1,",
        "9.",
        "1 ",
        "-",
        "−",
        "- ",
        ",234",
        "1,234",
        r"\$",
        "$",
        "%",
        "**",
        "½",
        "²",
    ),
    *(
        "/",
        "^",
        "^{",
        "_",
        "(",
        ")",
        r"\frac",
        r"\frac1",
        r"\frac{",
        r"\sqrt",
        r"\text{",
        r"\text{ cm}",
        "cm ",
        r"\left(",
    ),
    *(
        r"\overline{3}",
        ".",
        "=",
        "x=",
        "x",
        "and ",
        " or",
        "!",
        "a",
        "The ",
        "é",
        "İ",
        "\x00",
        "\ud800",
        "\n",
        " ",
        "\t",
    ),
]


@st.composite
def hostile(draw: st.DrawFn) -> str:
    """A few short strings repeated often, in a row or mixed, up to 20,000 characters."""
    units = draw(st.lists(st.sampled_from(UNITS) | st.text(max_size=3), min_size=1, max_size=4))
    counts = [draw(st.integers(1, LONGEST)) for _ in units]
    text = draw(st.sampled_from(["", r"\boxed{", "#### ", "Answer: ", r"\boxed{5} "]))
    if draw(st.booleans()):
        text += "".join(unit * count for unit, count in zip(units, counts, strict=True))
    else:
        text += "".join(units) * counts[0]
    return text[:LONGEST] if draw(st.booleans()) else text[: LONGEST - 1] + "}"


def readers() -> dict[str, Callable[[str], object]]:
    """Everything that is done with a model's text before math-verify sees it."""

    def benchmark(judge: Benchmark, truth: str) -> Callable[[str], object]:
        problem = Problem("", judge.name, "What is #### 7, \\boxed{7}, Answer: 7?", truth)
        return lambda text: judge.score([Attempt(problem, text)])

    return {
        "arithmetic": benchmark(Arithmetic(), "18"),
        "gsm8k": benchmark(Gsm8k(), "#### 1"),
        "gsm8k lenient": benchmark(Gsm8k(lenient=True), "#### 1"),
        "math": benchmark(CompetitionMath(), r"\boxed{\text{even}}"),
        "triviaqa": benchmark(TriviaQa(), '["York"]'),
        "last_boxed": last_boxed,
        "an answer of any length": lambda text: decided(read(text), read("5")),
        "an answer of 1,000 characters": lambda text: decided(read(text[:1000]), read("5")),
        "refusal": refusal,
        "a truth of MATH": true_answer,
        "a truth of TriviaQA": true_names,
        "a question": lambda text: passages(text[:2000]),
    }


READERS = readers()


def pace(reader: Callable[[str], object], text: str) -> float:
    """In walks (see `tests/rewards/pace.py`); what is remembered of another try is forgotten."""

    def reading() -> None:
        for cached in (read, true_answer, true_names, passages):
            cached.cache_clear()
        reader(text)

    return walks(reading)


@pytest.mark.parametrize("name", READERS)
@settings(max_examples=120, deadline=None)
@given(text=hostile() | st.text(max_size=200))
def test_no_text_raises_or_takes_long(name: str, text: str) -> None:
    assert pace(READERS[name], text) < LINEAR


@pytest.mark.parametrize("name", READERS)
def test_no_unit_takes_long(name: str) -> None:
    """Every unit alone, and behind every opening, at the full length."""
    for unit in UNITS:
        for start in ("", r"\boxed{", "#### 1", "Answer: ", r"\frac{"):
            text = (start + unit * LONGEST)[:LONGEST]
            assert pace(READERS[name], text) < LINEAR, (start, unit)


@pytest.mark.parametrize(
    "text", ["", "\x00", "\ud800", "\x00" * 100_000, "x" * 100_000, "\ud800#### \udfff \\boxed{\ud800}"]
)
@pytest.mark.parametrize("name", ["arithmetic", "gsm8k", "gsm8k lenient", "math", "triviaqa"])
def test_odd_texts_have_a_verdict(name: str, text: str) -> None:
    [score] = READERS[name](text)  # pyright: ignore[reportGeneralTypeIssues]
    assert score.verdict in ("wrong", "no_answer")
    assert score.reward == 0.0
