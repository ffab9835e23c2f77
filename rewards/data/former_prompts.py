"""Convert the prompts of version 0.1.0, which put the question first, to the benchmarks' current prompts.

Worked solutions in a journal, in files and in the tables of earlier nights may still have the old prompts.
"""

import re

from rewards.mbpp import PROMPT
from rewards.verifier import Benchmark, Problem

# By benchmark: the instruction that followed the question in 0.1.0.
BEHIND = {
    "arithmetic": "Give the steps, then the answer on a last line as #### <number>.",
    "gsm8k": "Reason step by step and end with a last line `#### <number>`.",
    "math": r"Please reason step by step, and put your final answer within \boxed{}.",
    "triviaqa": "Give a short answer, without a sentence around it, on a last line `Answer: <answer>`.",
    "reasoning_gym": "Give only the final answer between <answer> and </answer>.",
}
MBPP = re.compile(
    r"You are an expert Python programmer, and here is your task: (?P<task>.*) Your code should pass this test:\n\n"
    r"(?P<test>.*)\n\nAnswer with the whole program in one ```python block\.",
    re.DOTALL,
)


def instruction(benchmark: Benchmark) -> str:
    """Return the instruction that a benchmark adds to a question: its prompt for an empty question."""
    return benchmark.prompt(Problem("", benchmark.name, "", "")).strip()


def asked_now(prompt: str, benchmark: Benchmark) -> str:
    """Convert a prompt of 0.1.0 to the benchmark's current wording; return any other prompt unchanged."""
    text = prompt.strip()
    if benchmark.name == "mbpp" and (task := MBPP.fullmatch(text)):
        return PROMPT.format(**task.groupdict())
    behind = BEHIND.get(benchmark.name)
    if behind is None or not text.endswith(behind) or text.startswith(instruction(benchmark)):
        return prompt
    return benchmark.prompt(Problem("", benchmark.name, text.removesuffix(behind).strip(), ""))
