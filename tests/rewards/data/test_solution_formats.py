"""The common forms of worked solutions, read and rewritten."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewards.data.benchmarks import load
from rewards.data.former_prompts import asked_now
from rewards.data.solution_formats import Solution, has_tags, marked_truth, read_question, read_solution, rewritten
from rewards.programs.unit_tests import ProgramTests
from rewards.verifier import Problem

PREAMBLE = (
    "A conversation between User and Assistant. The User asks a question, and the Assistant solves it. The thinking"
    " is enclosed within <think> </think> and answer is enclosed within <answer> </answer> tags.\n\n"
)


@pytest.mark.parametrize(
    ("response", "reasoning", "answer"),
    [
        (" 4 * 4 = 16. </think> <answer> 16 </answer>", "4 * 4 = 16.", "16"),
        ("<think>4 * 4 = 16.</think>\n<answer>16.</answer>", "4 * 4 = 16.", "16"),
        (r"<think>So</think><answer>It is $\boxed{\frac{1}{2}}$.</answer>", "So", r"\frac{1}{2}"),
        ("<think>So</think><answer>The answer is 3.5 km.</answer>", "So", "3.5 km"),
        (r"Half: \boxed{\frac{1}{2}}", r"Half: \boxed{\frac{1}{2}}", r"\frac{1}{2}"),
        ("1 + 1 = 2\n#### 2", "1 + 1 = 2", "2"),
        ("#### 1\nNo:\n#### 2", "#### 1\nNo:", "2"),
        ("First 3, then 4. The answer is 7.", "First 3, then 4. The answer is 7.", "7"),
        ("**Answer:** 7", "**Answer:** 7", "7"),
        ("The answer is $\\$16$. Done", "The answer is $\\$16$. Done", "16"),
        (r"<answer>\( x^2 \)</answer>", "", "x^2"),
        ("<answer>1</answer> no, <answer>2</answer>", "1 no,", "2"),
    ],
)
def test_reading(response: str, reasoning: str, answer: str) -> None:
    assert read_solution(response) == Solution(reasoning, answer)


@pytest.mark.parametrize(
    "response",
    [
        "",
        "It is 14.",
        "<think>1 + 1 = 2",
        "x </think> <answer> 16",
        "</think><answer> </answer>",
        "####",
        "<answer>$$</answer>",
    ],
)
def test_no_answer(response: str) -> None:
    assert read_solution(response) is None


@pytest.mark.parametrize(
    ("benchmark", "text"),
    [
        ("math", "So\nThe answer is $\\boxed{16}$."),
        ("gsm8k", "So\n#### 16"),
        ("arithmetic", "So\n#### 16"),
        ("triviaqa", "So\nAnswer: 16"),
        ("mbpp", None),
    ],
)
def test_rewriting(benchmark: str, text: str | None) -> None:
    assert rewritten(Solution("So", "16"), load(benchmark)) == text
    assert rewritten(Solution("", "16"), load(benchmark)) == (text and text.removeprefix("So\n"))


@given(st.text(), st.from_regex(r"[a-z0-9+]{1,12}", fullmatch=True), st.sampled_from(["math", "gsm8k", "triviaqa"]))
def test_what_was_rewritten_reads_the_same(reasoning: str, answer: str, benchmark: str) -> None:
    text = rewritten(Solution(reasoning.replace("<", " "), answer), load(benchmark))
    assert text is not None
    solution = read_solution(text)
    assert solution is not None
    if not {"\\", "#"} & set(reasoning):  # a box or a marker in the reasoning is read as the answer
        assert solution.answer == answer


def test_tags() -> None:
    assert has_tags("a </think> b")
    assert not has_tags("a < b, c > d: <b>think</b>")


def test_the_question_of_a_prompt() -> None:
    question = "How many?\n\nUser: is a word here"
    assert read_question(f"{PREAMBLE}User: {question}\nAssistant: <think>") == question
    assert read_question(f"User: {question}\nAssistant:") == question
    assert read_question(f"{PREAMBLE}User: {question}") == f"{PREAMBLE}User: {question}"
    assert read_question("Who is the User: you\nAssistant: me") == "Who is the User: you\nAssistant: me"
    assert read_question("  2 + 2? ") == "2 + 2?"


FORMER = {  # of 0.1.0
    "arithmetic": "{}\nGive the steps, then the answer on a last line as #### <number>.",
    "gsm8k": "{}\nReason step by step and end with a last line `#### <number>`.",
    "math": "{}\nPlease reason step by step, and put your final answer within \\boxed{{}}.",
    "triviaqa": "{}\nGive a short answer, without a sentence around it, on a last line `Answer: <answer>`.",
    "mbpp": "You are an expert Python programmer, and here is your task: {} Your code should pass this test:\n\n"
    "assert f(1) == 2\n\nAnswer with the whole program in one ```python block.",
}


@pytest.mark.parametrize("name", FORMER)
def test_a_former_prompt_is_asked_anew(name: str) -> None:
    benchmark = load(name)
    program = ProgramTests("", ("assert f(1) == 2",), "f").truth()
    now = benchmark.prompt(Problem("", name, "What is 2?", program))
    assert asked_now(FORMER[name].format("What is 2?"), benchmark) == now
    assert asked_now(now, benchmark) == now
    assert asked_now("What is 2?", benchmark) == "What is 2?"


@pytest.mark.parametrize("name", ["arithmetic", "math"])
def test_the_benchmarks_own_instruction_is_not_part_of_the_question(name: str) -> None:
    benchmark = load(name)
    asked = benchmark.prompt(Problem("1", benchmark.name, "What is 2?", "2"))
    assert asked != "What is 2?"
    assert read_question(asked, benchmark) == "What is 2?"
    assert read_question("What is 2?", benchmark) == "What is 2?"


def test_truths_of_gsm8k_get_their_marker() -> None:
    assert marked_truth(" 18 ", load("gsm8k")) == "#### 18"
    assert marked_truth("9 + 9\n#### 18", load("gsm8k")) == "9 + 9\n#### 18"
    assert marked_truth(" 18 ", load("math")) == " 18 "
