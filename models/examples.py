"""What lessons are made of, as token ids; an answer ends with its end token."""

from dataclasses import dataclass

Example = tuple[list[int], list[int]]  # a prompt and the answer to learn


@dataclass(frozen=True)
class Judged:
    """An answer that was praised (`desirable`) or scolded."""

    prompt: list[int]
    answer: list[int]
    desirable: bool
