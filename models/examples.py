"""What lessons are made of, as token ids; an answer ends with its end token."""

from dataclasses import dataclass

Example = tuple[list[int], list[int]]  # a prompt and the answer to learn


@dataclass(frozen=True)
class Judged:
    """An answer that was praised (`desirable`) or scolded."""

    prompt: list[int]
    answer: list[int]
    desirable: bool


@dataclass(frozen=True)
class Pick:
    """The answer that was picked, and those that it was picked from: one at least, each another than it."""

    prompt: list[int]
    picked: list[int]
    others: list[list[int]]
