"""GSM8K: exactly the true number is right, however it is written."""

from hypothesis import example, given
from hypothesis import strategies as st

from rewards.gsm8k import Gsm8k
from rewards.verifier import Attempt, Problem

NUMBERS = st.integers(min_value=-(10**9), max_value=10**9)
FORMS = ["{}", "{:,}", "{}.", "{}.0", "**{}**", "${}", "{} dollars", "{:,} %", "x = {}"]


def verdict(completion: str, number: str) -> str:
    problem = Problem("gsm8k/test/0", "gsm8k", "How many?", f"9 * 2 = $<<9*2=18>>18.\n#### {number}")
    [score] = Gsm8k().score([Attempt(problem, completion)])
    return score.verdict


@given(NUMBERS, NUMBERS, st.sampled_from(FORMS))
@example(1080, 1081, "${}")
def test_exactly_the_true_number_is_right_in_any_form(truth: int, other: int, form: str) -> None:
    assert verdict(f"steps\n#### {form.format(truth)}", f"{truth:,}") == "correct"
    expected = "correct" if other == truth else "wrong"
    assert verdict(f"steps\n#### {form.format(other)}", f"{truth:,}") == expected
    assert verdict(f"#### {form.format(truth)} or {form.format(other)}", str(truth)) == expected
