"""GSM8K (Cobbe et al. 2021, arXiv:2110.14168): grade-school word problems, answered as `#### <number>`."""

import re
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from itertools import islice
from typing import Any

from conf.sections.benchmark import LEVELS
from rewards.data.dataset_rows import Excluded, data_file, drop_excluded, hub_rows, read_once, read_rows
from rewards.symbolic.numbers import last_number, numbers
from rewards.verifier import Attempt, Benchmark, Problem, Score, Split

HUB = ("openai/gsm8k", "main")
FIELDS = {"question": str, "answer": str}
MARKER = "####"
CALCULATOR = re.compile(r"<<[^<>]*>>")
ECHO = re.compile(r"####[ \t]*<number>")  # the instruction's placeholder, copied into an answer


class Gsm8k(Benchmark):
    """7,473 training and 1,319 exam problems, from a folder of JSONL files or from the hub.

    A problem's level is the number of calculations in its solution, from "1" to "5" (5 or more). With `lenient`, the
    last number of a text without a marker is graded as its answer; this is for models that do not know the format.
    """

    name = "gsm8k"
    instruction = "Solve this word problem. Reason step by step and end with `#### <number>` on a last line."
    answer_line = "#### {}"
    truth_marker = MARKER
    bounded = True

    def __init__(
        self,
        source: str | None = None,
        revision: str | None = None,
        lenient: bool = False,
        levels: Sequence[str] | None = None,
    ) -> None:
        self.source, self.revision, self.lenient, self.levels = source, revision, lenient, levels

    @read_once
    def problems(self, split: Split) -> list[Problem]:
        """Return a split's problems at the chosen levels, in the file's order, without those whose truth is unreadable.

        Raises InputError if the data is missing or broken.
        """
        file = data_file(self.name, self.source, f"{split}.jsonl")
        rows = read_rows(file, FIELDS) if file else hub_rows(*HUB, split, FIELDS, self.revision)
        found = (_as_problem(f"gsm8k/{split}/{index}", row) for index, row in enumerate(rows))
        problems = drop_excluded(self, split, found)
        return [each for each in problems if self.levels is None or each.level in self.levels]

    def solutions(self) -> list[tuple[Problem, str]]:
        """Return the training problems, each with its solution stripped of calculator annotations (`<<48/2=24>>`)."""
        return [(problem, CALCULATOR.sub("", problem.truth)) for problem in self.problems("train")]

    def score_one(self, attempt: Attempt) -> Score:
        """Give a reward of 1 if the number after the last `####` is right, else 0; None if the truth is unreadable."""
        truth = true_number(attempt.problem.truth)
        if truth is None:
            return Score.of("grader_failed", "the truth does not end in `#### <number>`")
        text = _without_echo(attempt.completion, attempt.problem.question)
        _, marker, answer = text.rpartition(MARKER)
        if not marker and self.lenient:
            answer = last_number(text)
        elif not marker:
            return Score.of("no_answer", f"no {MARKER}")
        values = list(numbers(answer))
        if not values:
            return Score.of("no_answer", f"no number after {MARKER}" if marker else "no number")
        correct = all(value == truth for value in values)
        return Score.of("correct" if correct else "wrong", f"answered {answer.strip()[:80]!r}")


def true_number(truth: str) -> Fraction | None:
    """Return the number after the last `####` in the dataset's answer text; None unless exactly one number follows."""
    _, marker, answer = truth.rpartition(MARKER)
    values = list(islice(numbers(answer), 2)) if marker else []
    return values[0] if len(values) == 1 else None


def _as_problem(problem_id: str, row: dict[str, Any]) -> Problem | Excluded:
    if true_number(row["answer"]) is None:
        return Excluded(problem_id, "its answer does not end in `#### <number>`")
    level = min(max(len(CALCULATOR.findall(row["answer"])), 1), int(LEVELS[-1]))
    return Problem(problem_id, "gsm8k", row["question"], row["answer"], str(level))


def _without_echo(completion: str, question: str) -> str:
    """Remove markers copied from the prompt, because repeating them is not an answer.

    A line of the question that contains a marker is removed at most as often as the question contains the line.
    """
    if MARKER in question and question in completion:
        completion = completion.replace(question, " ")
    elif MARKER in question:
        echoes = Counter(line.strip() for line in question.splitlines() if MARKER in line)
        kept = []
        for line in completion.splitlines():
            echoes[line.strip()] -= 1
            if echoes[line.strip()] < 0:
                kept.append(line)
        completion = "\n".join(kept)
    return ECHO.sub(" ", completion)
