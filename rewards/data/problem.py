"""An item of a benchmark."""

from dataclasses import dataclass, field
from typing import Literal

Split = Literal["train", "test"]


@dataclass(frozen=True)
class Problem:
    """One item of a benchmark. `truth` is in the form that the benchmark's own `score` reads.

    `subject` only serves the exam's figures; problems that differ in nothing else are equal.
    """

    problem_id: str
    benchmark: str
    question: str
    truth: str
    level: str | None = None
    subject: str | None = field(default=None, compare=False)
