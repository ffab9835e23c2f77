"""GSM8K: what an answer is worth, to the letter; that nothing a model writes can upset it."""

from functools import partial
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from rewards.gsm8k import Gsm8k, true_number
from rewards.verifier import Attempt, Problem, Score
from tests.rewards.pace import LINEAR, LONGEST, walks

QUESTION = "Janet has 16 eggs and sells 9 of the rest at $2. How many dollars does she make?"


def scored(completion: str, number: str = "18", lenient: bool = False, question: str = QUESTION) -> Score:
    problem = Problem("gsm8k/test/0", "gsm8k", question, f"9 * 2 = $<<9*2=18>>{number}.\n#### {number}")
    [score] = Gsm8k(lenient=lenient).score([Attempt(problem, completion)])
    return score


CORRECT = [
    ("9 * 2 = 18\n#### 18", "18"),
    ("####18", "18"),
    ("##### 18", "18"),
    ("####\n18", "18"),
    ("#### 18\n", "18"),
    ("#### 18.", "18"),
    ("#### 18.0", "18"),
    ("#### 18.00", "18"),
    ("#### 018", "18"),
    ("#### +18", "18"),
    ("#### $18", "18"),
    ("#### $ 18", "18"),
    ("#### \\$18", "18"),
    ("#### $18$", "18"),
    ("#### $18.00", "18"),
    ("#### €18", "18"),
    ("#### USD 18", "18"),
    ("#### 18 dollars", "18"),
    ("#### 18 dollars.", "18"),
    ("#### 18km", "18"),
    ("#### 18 m²", "18"),
    ("#### 18 m^2", "18"),
    ("#### 18 ft2", "18"),
    ("#### 18 cm^{3}", "18"),
    ("#### 18 __dollars__", "18"),
    ("#### *18*", "18"),
    ("#### 18/hour", "18"),
    ("#### 18,", "18"),
    ("#### 18%", "18"),
    ("#### 18 %", "18"),
    ("#### 18 percent", "18"),
    ("#### **18**", "18"),
    ("#### **$18**", "18"),
    ("#### **18 dollars**.", "18"),
    ("**#### 18**", "18"),
    ("`#### 18`", "18"),
    ("#### <18>", "18"),
    ("#### \\boxed{18}", "18"),
    ("#### x = 18", "18"),
    ("#### The answer is 18.", "18"),
    ("#### 18 = 18.0", "18"),
    ("#### 18 (18 dollars)", "18"),
    ("#### 18\n**18**", "18"),
    ("#### 18<|im_end|>", "18"),
    ("#### 17\n#### 18", "18"),
    ("#### <number>\n#### 18", "18"),
    ("#### 18\n#### <number>", "18"),
    ("#### 1080", "1,080"),
    ("#### 1,080", "1,080"),
    ("#### $1,080.00 dollars", "1,080"),
    ("#### 109,200,000", "109,200,000"),
    ("#### -5", "-5"),
    ("#### \N{MINUS SIGN}5", "-5"),
    ("#### - 5", "-5"),
    ("#### -$5", "-5"),
    ("#### $-5", "-5"),
    ("#### **-5** degrees", "-5"),
    ("#### -0", "0"),
    ("#### .5", "0.5"),
    ("#### 0.50", "0.5"),
    ("#### 0.1", "0.10"),
]
WRONG = [
    ("#### 17", "18"),
    ("#### -18", "18"),
    ("#### \N{MINUS SIGN}18", "18"),
    ("#### - 18", "18"),
    ("#### 5", "-5"),
    ("#### 18.5", "18"),
    ("#### 18.0000000000000000000000000001", "18"),
    ("#### 0.18", "18"),
    ("#### 1800%", "18"),
    ("#### 18,000", "18"),
    ("#### 1.080", "1,080"),
    ("#### 10,80", "1,080"),
    ("#### 1,0800", "1,080"),
    ("#### 1,080,1080", "1,080"),
    ("#### 0,018", "18"),
    ("#### 1 080", "1,080"),
    ("#### 1 8", "18"),
    ("#### 1**8**", "18"),
    ("#### 17 or 18", "18"),
    ("#### 18 or 19", "18"),
    ("#### 18, 19", "18"),
    ("#### 18,19", "18"),
    ("#### 18-20", "18"),
    ("#### 18 dollars in 2 days", "18"),
    ("#### 18\n\nQuestion: Tom has 5 apples.", "18"),
    ("#### 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18", "18"),
    ("#### 36/2", "18"),
    ("#### 36/2 = 18", "18"),
    ("#### 18/18", "18"),
    ("#### 18 - 18", "18"),
    ("#### 18-18", "18"),
    ("#### 18 * 18", "18"),
    ("#### 18**18", "18"),
    ("#### 18^18", "18"),
    ("#### \\frac{18}{18}", "18"),
    ("#### 18e18", "18"),
    ("#### 18e2", "18"),
    ("#### 18x2", "18"),
    ("#### 18 m^2 3", "18"),
    ("#### 18 m4", "18"),
    ("#### 18 in 2", "18"),
    ("#### 18:00", "18"),
    ("#### 1.8e1", "18"),
    ("#### 18½", "18"),
    ("#### 18 ½", "18"),
    ("#### 18²", "18"),
    ("#### 18.0.0", "18"),
    ("#### 18..5", "18"),
    ("#### 1_8", "18"),
    ("#### " + "9" * 19_000, "18"),
    ("#### 18." + "0" * 19_000, "18"),
    ("#### 18\n#### 17", "18"),
    ("18\n#### 17", "18"),
]
NO_ANSWER = [
    ("", "18"),
    ("18", "18"),
    ("The answer is 18.", "18"),
    ("\\boxed{18}", "18"),
    ("### 18", "18"),
    ("# # # # 18", "18"),
    ("####", "18"),
    ("#### ", "18"),
    ("18 ####", "18"),
    ("#### 18 ####", "18"),
    ("#### eighteen", "18"),
    ("#### $", "18"),
    ("#### \u0661\u0668", "18"),  # Arabic-Indic digits
    ("#### \uff11\uff18", "18"),  # full-width digits
    ("#### nan", "18"),
    ("#### <number>", "18"),
    ("####<number>", "18"),
    ("18\n#### <number>", "18"),
    ("#### <number> 18", "18"),
    ("end with a last line `#### <number>`. The answer is 18.", "18"),
    (f"{QUESTION}\nReason step by step and end with a last line `#### <number>`.", "18"),
]
ROWS = [
    (completion, number, verdict)
    for verdict, rows in (("correct", CORRECT), ("wrong", WRONG), ("no_answer", NO_ANSWER))
    for completion, number in rows
]


@pytest.mark.parametrize(("completion", "number", "verdict"), ROWS)
def test_what_a_completion_is_worth(completion: str, number: str, verdict: str) -> None:
    score = scored(completion, number)
    assert score.verdict == verdict
    assert score.reward == (1.0 if verdict == "correct" else 0.0)
    assert score.parts == {"correct": score.reward}
    assert score.detail.isprintable()


@pytest.mark.parametrize(
    ("completion", "verdict"),
    [
        ("The answer is 18.", "correct"),
        ("9 * 2 = 18", "correct"),
        ("From 20-18", "correct"),
        ("18 or rather 17", "wrong"),
        ("It is -18", "wrong"),
        ("It is 18½", "wrong"),
        ("#### 17 no, 18", "wrong"),
        ("18\n####", "no_answer"),
        ("eighteen", "no_answer"),
        ("", "no_answer"),
    ],
)
def test_lenient_reads_the_last_number_only_where_there_is_no_marker(completion: str, verdict: str) -> None:
    assert scored(completion, lenient=True).verdict == verdict


def test_to_repeat_a_marker_of_the_question_is_no_answer() -> None:
    question = "What stands in the line\n#### 18\nafter the marker?"
    echo = Gsm8k().prompt(Problem("", "gsm8k", question, "#### 18"))
    assert scored(echo, question=question).verdict == "no_answer"
    assert scored(f"{echo}\n#### 18", question=question).verdict == "correct"


@pytest.mark.parametrize(
    ("completion", "verdict"),
    [
        ("Write it like #### 18 at the end.", "no_answer"),
        ("  Write it like #### 18 at the end.\nI do not know.", "no_answer"),
        ("Write it like #### 18 at the end.\n#### 18", "correct"),
        ("#### 18", "correct"),
        ("Write it like #### 18 at the end.\nWrite it like #### 18 at the end.", "correct"),  # its own, the second time
    ],
)
def test_to_repeat_a_line_of_the_question_is_no_answer(completion: str, verdict: str) -> None:
    question = "How many eggs are 9 * 2?\nWrite it like #### 18 at the end."
    assert scored(completion, question=question).verdict == verdict


@pytest.mark.parametrize("truth", ["18", "", "####", "#### eighteen", "#### 18 or 19", "#### 18/2", "18 ####"])
def test_an_unreadable_truth_is_the_graders_failure_never_a_zero(truth: str) -> None:
    assert true_number(truth) is None
    [score] = Gsm8k().score([Attempt(Problem("gsm8k/test/0", "gsm8k", QUESTION, truth), "#### 18")])
    assert (score.reward, score.verdict) == (None, "grader_failed")


def test_scores_come_in_the_attempts_order() -> None:
    problem = Problem("gsm8k/test/0", "gsm8k", QUESTION, "#### 18")
    scores = Gsm8k().score([Attempt(problem, text) for text in ("#### 1", "#### 18", "none")])
    assert [score.reward for score in scores] == [0.0, 1.0, 0.0]


HOSTILE = st.text(alphabet="#<number> 0123456789.,-$*%/½²\\\n", max_size=200)


@settings(max_examples=400, deadline=None)
@given(st.text() | HOSTILE | HOSTILE.map(lambda text: f"####{text}"), st.booleans())
@example("#### " + "1," * 50, True)
def test_scoring_never_raises(completion: str, lenient: bool) -> None:
    score = scored(completion, lenient=lenient)
    assert score.verdict in ("correct", "wrong", "no_answer")
    assert score.reward == float(score.verdict == "correct")


@given(
    st.integers(min_value=-(10**9), max_value=10**9),
    st.integers(min_value=-(10**9), max_value=10**9),
    st.sampled_from(["{}", "{:,}", "{}.", "{}.0", "**{}**", "${}", "{} dollars", "{:,} %", "x = {}"]),
)
def test_exactly_the_true_number_is_right_however_it_is_dressed(truth: int, other: int, dress: str) -> None:
    assert scored(f"steps\n#### {dress.format(truth)}", f"{truth:,}").verdict == "correct"
    expected = "correct" if other == truth else "wrong"
    assert scored(f"steps\n#### {dress.format(other)}", f"{truth:,}").verdict == expected
    assert scored(f"#### {dress.format(truth)} or {dress.format(other)}", str(truth)).verdict == expected


@pytest.mark.parametrize("lenient", [False, True])
@pytest.mark.parametrize(
    "unit",
    ["#", "# ", "####", "#### <", "####<number>", "9", "1,", ",234", ".", "1.", "-", "- ", "1 ", "*", "-**$", "\n"],
)
def test_no_text_takes_long(unit: str, lenient: bool) -> None:
    for start in ("#### ", "#### 1", ""):
        text = start + unit * (LONGEST // len(unit))
        for end in ("", "x"):
            assert walks(partial(scored, text + end, lenient=lenient)) < LINEAR, (start, end)


def test_the_prompt_and_the_kind() -> None:
    problem = Problem("gsm8k/train/7", "gsm8k", "How many?", "#### 3")
    assert Gsm8k().prompt(problem) == "How many?\nReason step by step and end with a last line `#### <number>`."
    assert Gsm8k().kind(problem) == "gsm8k/train/7"


def test_scoring_needs_no_data(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("NIGHTSCHOOL_DATA", str(tmp_path))
    assert scored("#### 18").reward == 1.0
