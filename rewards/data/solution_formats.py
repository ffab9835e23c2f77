r"""Read worked solutions in common formats, and rewrite them in a benchmark's own format.

The formats are `<think>…</think> <answer>…</answer>` (DeepSeek-R1, arXiv:2501.12948, table 1), `\boxed{…}`, `#### …`,
and `The answer is …`.
"""

import json
import re
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rewards.data.former_prompts import asked_now, instruction
from rewards.symbolic.boxed import last_boxed
from rewards.verifier import Benchmark

TAGS = re.compile(r"</?(?:think|answer)>")
TAGGED = re.compile(r"<answer>(?P<answer>(?:(?!</?answer>).)*)</answer>", re.DOTALL)
MARKED = re.compile(r"^[ \t]*####(?P<answer>[^\n]*)", re.MULTILINE)
SAID = re.compile(r"\banswer(?: is|:)(?P<answer>[^\n]*?)(?:\.(?=\s|\Z)|$)", re.IGNORECASE | re.MULTILINE)
# Columns that may hold the truth, in order of preference. Most files store solutions under other names.
TRUTH_COLUMNS = ("ground_truth", "truth", "answer")
DOLLAR = re.compile(r"(?<!\\)\$|\\[()]")  # LaTeX's math delimiters; \$ is money


@dataclass(frozen=True)
class Solution:
    """A worked solution, split into its parts. `answer` is the bare result, without any marker."""

    reasoning: str
    answer: str


def read_question(prompt: str, benchmark: Benchmark | None = None) -> str:
    """Return the question that a prompt asks, without DeepSeek-R1's preamble or the benchmark's instruction."""
    question = _users_turn(prompt).strip()
    if benchmark is not None:
        question = asked_now(question, benchmark).removeprefix(instruction(benchmark))
    return question.strip()


def has_tags(response: str) -> bool:
    """Return whether a response contains DeepSeek-R1's tags, which no benchmark here asks for."""
    return TAGS.search(response) is not None


def read_solution(response: str) -> Solution | None:
    """Return the reasoning and the last answer of a response in one of the formats; None if it has no answer.

    The content of `<answer>` may itself be in one of the other formats.
    """
    tagged = _last(TAGGED, response)
    if tagged:
        inner = read_solution(tagged["answer"])
        answer = inner.answer if inner else tagged["answer"]
        return _solution(response[: tagged.start()], answer)
    if has_tags(response.rpartition("</think>")[2]):
        return None  # an unfinished answer
    if (boxed := last_boxed(response)) is not None:
        return _solution(response, boxed)
    if marked := _last(MARKED, response):
        return _solution(response[: marked.start()], marked["answer"])
    said = _last(SAID, response)
    return _solution(response, said["answer"]) if said else None


def rewritten(solution: Solution, benchmark: Benchmark) -> str | None:
    """Return the reasoning and then the benchmark's answer line; None if it has no such line (as for programs)."""
    if benchmark.answer_line is None:
        return None
    return f"{solution.reasoning}\n{benchmark.answer_line.format(solution.answer)}".strip()


def truth_of(row: Mapping[str, Any]) -> str | None:
    """Return the truth in a row of a file; None if the row has none. A truth that is not a text is returned as JSON."""
    truth = next((row[column] for column in TRUTH_COLUMNS if row.get(column) is not None), None)
    return truth if truth is None or isinstance(truth, str) else json.dumps(truth, ensure_ascii=False)


def marked_truth(truth: str, benchmark: Benchmark) -> str:
    """Return a truth with the benchmark's marker (GSM8K's `####`) or as a list of names, if the file left that out."""
    if benchmark.truth_is_list and not truth.lstrip().startswith("["):
        return json.dumps([truth.strip()], ensure_ascii=False)
    marker = benchmark.truth_marker
    return f"{marker} {truth.strip()}" if marker and marker not in truth else truth


def _users_turn(prompt: str) -> str:
    """Return the question of an R1 prompt (`… User: question Assistant: <think>`), or any other prompt unchanged."""
    before, _, opening = f"\n{prompt}".rpartition("\nAssistant:")
    _, user, question = before.partition("\nUser:")
    return question if user and opening.strip() in ("", "<think>") else prompt


def _solution(reasoning: str, answer: str) -> Solution | None:
    plain = DOLLAR.sub("", answer).replace(r"\$", "").strip(" \t\n*:").removesuffix(".").rstrip()
    return Solution(TAGS.sub("", reasoning).strip(), plain) if plain else None


def _last(pattern: re.Pattern[str], text: str) -> re.Match[str] | None:
    return next(iter(deque(pattern.finditer(text), maxlen=1)), None)
