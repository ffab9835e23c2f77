"""The contract between a benchmark, what a model wrote, and the reward."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

Verdict = Literal[
    "correct",
    "wrong",
    "no_answer",
    "timeout",
    "out_of_memory",
    "crashed",
    "forbidden",
    "grader_failed",
    "judged",  # no truth is known: the learned reward judged it
]
Split = Literal["train", "test"]


@dataclass(frozen=True)
class Problem:
    """One item of a benchmark. `truth` is what the benchmark's own `score` understands.

    `subject` is for the exam's figures only; it tells no problem from another.
    """

    problem_id: str
    benchmark: str
    question: str
    truth: str
    level: str | None = None
    subject: str | None = field(default=None, compare=False)


@dataclass(frozen=True)
class Attempt:
    """One completion of a problem's prompt; `tokens` is its length, the end token included."""

    problem: Problem
    completion: str
    group: int = 0
    finish_reason: str = "stop"
    tokens: int = 0


@dataclass(frozen=True)
class Score:
    """A judgement. `reward` is None where the grader itself failed: never a 0 in disguise."""

    reward: float | None
    verdict: Verdict
    detail: str = ""
    parts: Mapping[str, float] = field(default_factory=dict)
    seconds: float = 0.0


class Benchmark(Protocol):
    """Problems with a known truth, how they are asked and how answers are judged."""

    name: str

    def problems(self, split: Split) -> list[Problem]:
        """All problems of a split, in a fixed order."""
        ...

    def kind(self, problem: Problem) -> str:
        """What the problem's solve rate is counted under."""
        ...

    def prompt(self, problem: Problem) -> str:
        """The user's turn: the question and the format that the answer must have."""
        ...

    def score(self, attempts: Sequence[Attempt]) -> list[Score]:
        """One score an attempt, in the same order. Never raises for what a model wrote."""
        ...
