"""GSM8K (Cobbe et al. 2021, arXiv:2110.14168): grade-school word problems, answered as `#### <number>`."""

import logging
import re
import time
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from itertools import islice
from typing import Any

from conf.storage.home import InputError
from rewards.data.dataset_rows import data_file, hub_rows, read_rows
from rewards.symbolic.numbers import last_number, numbers
from rewards.verifier import Attempt, Problem, Score, Split, Verdict

HUB = ("openai/gsm8k", "main")
FIELDS = {"question": str, "answer": str}
INSTRUCTION = "Reason step by step and end with a last line `#### <number>`."
MARKER = "####"
ECHO = re.compile(r"####[ \t]*<number>")  # the instruction's own marker, repeated

log = logging.getLogger(__name__)


class Gsm8k:
    """7,473 training and 1,319 exam problems, from a folder of JSONL or from the hub.

    `lenient` also takes a text without any marker and reads its last number, for models that were never
    told of the format. `excluded` lists, per split read, the problems whose truth could not be parsed.
    """

    name = "gsm8k"

    def __init__(
        self,
        source: str | None = None,
        levels: Sequence[str] | None = None,
        revision: str | None = None,
        lenient: bool = False,
    ) -> None:
        if levels is not None:
            raise InputError("gsm8k: its problems have no levels; remove `levels`")
        self.source, self.revision, self.lenient = source, revision, lenient
        self.excluded: dict[Split, list[str]] = {}

    def problems(self, split: Split) -> list[Problem]:
        """All problems of a split in the file's order, without those whose truth cannot be parsed.

        Raises InputError where the data is missing or broken.
        """
        problems, excluded = [], []
        for index, row in enumerate(self._rows(split)):
            problem = Problem(f"gsm8k/{split}/{index}", self.name, row["question"], row["answer"])
            if true_number(problem.truth) is None:
                log.warning("%s is excluded: its answer does not end in `#### <number>`", problem.problem_id)
                excluded.append(problem.problem_id)
            else:
                problems.append(problem)
        self.excluded[split] = excluded
        if excluded:
            log.warning("gsm8k: %d of %d %s problems are excluded", len(excluded), len(excluded + problems), split)
        return problems

    def kind(self, problem: Problem) -> str:
        """Each problem is its own kind."""
        return problem.problem_id

    def prompt(self, problem: Problem) -> str:
        """The question, and the format of the answer."""
        return f"{problem.question}\n{INSTRUCTION}"

    def score(self, attempts: Sequence[Attempt]) -> list[Score]:
        """1 where the number after the last `####` is the true one, else 0; null where the truth is unreadable."""
        return [self._score(attempt) for attempt in attempts]

    def _score(self, attempt: Attempt) -> Score:
        started = time.perf_counter()
        truth = true_number(attempt.problem.truth)
        if truth is None:
            return Score(None, "grader_failed", "the truth does not end in `#### <number>`")
        verdict, detail = self._judge(attempt, truth)
        correct = float(verdict == "correct")
        return Score(correct, verdict, detail, {"correct": correct}, time.perf_counter() - started)

    def _judge(self, attempt: Attempt, truth: Fraction) -> tuple[Verdict, str]:
        text = _without_echo(attempt.completion, attempt.problem.question)
        _, marker, answer = text.rpartition(MARKER)
        if not marker and self.lenient:
            answer = last_number(text)
        elif not marker:
            return "no_answer", f"no {MARKER}"
        answers = numbers(answer)
        first = next(answers, "none")
        if first == "none":
            return "no_answer", f"no number after {MARKER}" if marker else "no number"
        right = first == truth and all(other == truth for other in answers)
        return ("correct" if right else "wrong"), f"answered {answer.strip()[:80]!r}"

    def _rows(self, split: Split) -> list[dict[str, Any]]:
        path = data_file(self.name, f"{split}.jsonl", self.source)
        return hub_rows(*HUB, split, FIELDS, self.revision) if path is None else read_rows(path, FIELDS)


def true_number(truth: str) -> Fraction | None:
    """The number after the last `####` of the dataset's answer text; None where it is not exactly one."""
    _, marker, answer = truth.rpartition(MARKER)
    found = list(islice(numbers(answer), 2)) if marker else []
    return found[0] if len(found) == 1 else None


def _without_echo(completion: str, question: str) -> str:
    """The completion without the markers that the prompt itself contains: to repeat them is no answer.

    Where the question has lines with a marker, they are taken away as often as the question has them.
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
