"""GSM8K (Cobbe et al. 2021, arXiv:2110.14168): grade-school word problems, answered as `#### <number>`."""

import logging
import re
import time
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from conf.home import InputError
from rewards.jsonl_source import DATA_VARIABLE, checked, data_file, read_rows
from rewards.verifier import Attempt, Problem, Score, Split, Verdict

HUB = ("openai/gsm8k", "main")
FIELDS = {"question": str, "answer": str}
INSTRUCTION = "Reason step by step and end with a last line `#### <number>`."
MARKER = "####"
ECHO = re.compile(r"####[ \t]*<number>")  # the instruction's own marker, repeated

# Each pattern reads a text in linear time: a run of digits, points and commas is taken whole, then judged.
MINUS = "-\N{MINUS SIGN}"
RUN = re.compile(rf"((?<![0-9])[{MINUS}](?:\*\*)?\\?[$€£]?)?(\.?[0-9][0-9.,]*)")
PLAIN = re.compile(r"[0-9]*\.?[0-9]+")
THOUSANDS = re.compile(r"[1-9][0-9]{0,2}(?:,[0-9]{3})+(?:\.[0-9]+)?")
OPERATOR = re.compile(rf"[{MINUS}+*/^×÷·:eExX{{}}]+")  # alone between two numbers: they are a calculation
LONGEST = 60  # digits, points and commas of a number that is still read

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
            answer = _last_number(text)
        elif not marker:
            return "no_answer", f"no {MARKER}"
        numbers = _numbers(answer)
        if not numbers:
            return "no_answer", f"no number after {MARKER}" if marker else "no number"
        right = set(numbers) == {truth}
        return ("correct" if right else "wrong"), f"answered {answer.strip()[:80]}"

    def _rows(self, split: Split) -> list[dict[str, Any]]:
        path = data_file(self.name, f"{split}.jsonl", self.source)
        return _hub_rows(split, self.revision) if path is None else read_rows(path, FIELDS)


def true_number(truth: str) -> Fraction | None:
    """The number after the last `####` of the dataset's answer text; None where it is not exactly one."""
    _, marker, answer = truth.rpartition(MARKER)
    numbers = _numbers(answer) if marker else []
    return numbers[0] if len(numbers) == 1 else None


def _hub_rows(split: Split, revision: str | None) -> list[dict[str, Any]]:
    import datasets  # two seconds to import, and not needed for local files

    try:
        rows = list(datasets.load_dataset(*HUB, split=split, revision=revision))
    except Exception as error:  # whatever the network, the hub or its client come up with
        reason = " ".join(str(error).split())[:200]
        raise InputError(
            f"gsm8k: {HUB[0]} cannot be loaded from the hub ({type(error).__name__}: {reason}); "
            f"set `source` or {DATA_VARIABLE} to a folder with the data, or check the network"
        ) from error
    return [checked(row, FIELDS, f"{HUB[0]}, {split} row {index}") for index, row in enumerate(rows)]


def _without_echo(completion: str, question: str) -> str:
    """The completion without the markers that the prompt itself contains: to repeat them is no answer."""
    if MARKER in question:
        completion = completion.replace(question, " ")
    return ECHO.sub(" ", completion)


def _numbers(answer: str) -> list[Fraction | None]:
    """Every number in a short answer, None for what only looks like one (`1,80`, `1.2.3`, `18½`, `18/18`).

    Currency, thousands commas, a trailing point, bold, percent and words around a number do not matter.
    """
    answer = re.sub(rf"^\s*([{MINUS}])\s+", r"\1", answer)  # `- 18` at the beginning is minus eighteen
    numbers: list[Fraction | None] = []
    end = 0
    for run in RUN.finditer(answer):
        calculated = bool(numbers) and OPERATOR.fullmatch(answer[end : run.start()].strip(" "))
        following = answer[run.end() : run.end() + 2].lstrip(" ")[:1]
        fraction = following.isnumeric() and not following.isascii()  # `18½`, `18²`
        numbers.append(None if calculated or fraction else _value(run))
        end = run.end()
    return numbers


def _value(run: re.Match[str]) -> Fraction | None:
    digits = run[2].rstrip(".,")
    if len(digits) > LONGEST:
        return None
    if THOUSANDS.fullmatch(digits):
        digits = digits.replace(",", "")
    elif not PLAIN.fullmatch(digits):
        return None
    return -Fraction(digits) if run[1] else Fraction(digits)


def _last_number(text: str) -> str:
    """The last run of digits with its sign and what directly follows it, or nothing."""
    runs = list(RUN.finditer(text))
    return text[runs[-1].start() : runs[-1].end() + 2] if runs else ""
