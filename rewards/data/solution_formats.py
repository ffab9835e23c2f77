r"""Worked solutions in the forms that people have them in, read and written anew in a benchmark's own form.

Known are `<think>…</think> <answer>…</answer>` (DeepSeek-R1, arXiv:2501.12948, table 1), `\boxed{…}`, `#### …`, and
`The answer is …`.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rewards.symbolic.boxed import last_boxed
from rewards.verifier import Benchmark, Problem

TAGS = re.compile(r"</?(?:think|answer)>")
TAGGED = re.compile(r"<answer>(?P<answer>(?:(?!</?answer>).)*)</answer>", re.DOTALL)
MARKED = re.compile(r"^[ \t]*####(?P<answer>[^\n]*)", re.MULTILINE)
SAID = re.compile(r"\banswer(?: is|:)(?P<answer>[^\n]*?)(?:\.(?=\s|\Z)|$)", re.IGNORECASE | re.MULTILINE)
# Columns of a truth: the first that a row has. `answer` is one, as in most files; a solution is called otherwise.
TRUTHS = ("ground_truth", "truth", "answer")
DOLLAR = re.compile(r"(?<!\\)\$|\\[()]")  # LaTeX's own brackets around a formula; \$ is money


@dataclass(frozen=True)
class Solution:
    """A worked solution taken apart; `answer` is what it comes to, without the form around it."""

    reasoning: str
    answer: str


def read_question(prompt: str, benchmark: Benchmark | None = None) -> str:
    """The question that a prompt asks, without R1's preamble and without the benchmark's own instruction."""
    question = _users_turn(prompt).strip()
    if benchmark is not None:
        question = question.removesuffix(benchmark.prompt(Problem("", benchmark.name, "", "")).strip())
    return question.strip()


def has_tags(response: str) -> bool:
    """Whether a response is written in tags that no benchmark here asks for."""
    return TAGS.search(response) is not None


def read_solution(response: str) -> Solution | None:
    """Reasoning and answer of a response in one of the forms; None where no answer can be found, or an empty one.

    The last one counts. What stands in `<answer>` may itself be in one of the other forms.
    """
    tagged = _last(TAGGED, response)
    if tagged:
        inner = read_solution(tagged["answer"])
        answer = inner.answer if inner else tagged["answer"]
        return _solution(response[: tagged.start()], answer)
    if has_tags(response.rpartition("</think>")[2]):
        return None  # an answer that was begun and not ended
    if (boxed := last_boxed(response)) is not None:
        return _solution(response, boxed)
    if marked := _last(MARKED, response):
        return _solution(response[: marked.start()], marked["answer"])
    said = _last(SAID, response)
    return _solution(response, said["answer"]) if said else None


def written(solution: Solution, benchmark: str) -> str | None:
    """The solution in a benchmark's own form: its reasoning, then the answer; None where the answer is a program."""
    match benchmark:
        case "arithmetic" | "gsm8k":
            last = f"#### {solution.answer}"
        case "math":
            last = rf"The answer is $\boxed{{{solution.answer}}}$."
        case "triviaqa":
            last = f"Answer: {solution.answer}"
        case _:
            return None
    return f"{solution.reasoning}\n{last}".strip()


def truth_of(row: Mapping[str, Any]) -> str | None:
    """The truth in the row of a file, a number or a list as JSON writes it; None where the row has none."""
    found = next((row[column] for column in TRUTHS if row.get(column) is not None), None)
    return found if found is None or isinstance(found, str) else json.dumps(found, ensure_ascii=False)


def own_truth(truth: str, benchmark: str) -> str:
    """A truth as the benchmark writes it: GSM8K's has a marker, which other people's files leave out."""
    return f"#### {truth.strip()}" if benchmark == "gsm8k" and "####" not in truth else truth


def _users_turn(prompt: str) -> str:
    """R1's prompt is what the two are told, `User:` and the question, then `Assistant:` and what it begins with."""
    before, _, begun = f"\n{prompt}".rpartition("\nAssistant:")
    _, user, question = before.partition("\nUser:")
    return question if user and begun.strip() in ("", "<think>") else prompt


def _solution(reasoning: str, answer: str) -> Solution | None:
    plain = DOLLAR.sub("", answer).replace(r"\$", "").strip(" \t\n*:").removesuffix(".").rstrip()
    return Solution(TAGS.sub("", reasoning).strip(), plain) if plain else None


def _last(pattern: re.Pattern[str], text: str) -> re.Match[str] | None:
    found = None
    for found in pattern.finditer(text):  # noqa: B007
        pass
    return found
