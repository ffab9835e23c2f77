"""A problem of a benchmark."""

from dataclasses import dataclass, field
from typing import Literal

Split = Literal["train", "test"]


@dataclass(frozen=True)
class Problem:
    """One problem of a benchmark. `truth` has the format that the benchmark's own `score` reads.

    `subject` serves only the exam's metrics; problems that differ only in their subject are equal.
    """

    problem_id: str
    benchmark: str
    question: str
    truth: str
    level: str | None = None
    subject: str | None = field(default=None, compare=False)
