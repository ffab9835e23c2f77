"""The owner's picks as token ids: which count how much, and which are kept apart to judge by."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Pick:
    """A prompt, the answers that were shown (their end tokens included), and which one was picked.

    `weight`: how much it counts in a fit, beside the others.
    """

    prompt: tuple[int, ...]
    answers: tuple[tuple[int, ...], ...]
    chosen: int
    weight: float = 1.0

    @property
    def lengths(self) -> list[int]:
        """The answers' tokens."""
        return [len(answer) for answer in self.answers]


def age_weight(nights: float, half_life: float) -> float:
    """½^(nights ÷ half_life): 1 for tonight's picks, half of it every `half_life` nights."""
    return 0.5 ** (max(0.0, nights) / half_life)


def is_held_out(messages: Sequence[Mapping[str, Any]], share: float) -> bool:
    """Whether a conversation judges what is learnt instead of being learnt: so about a `share` of all do.

    The hash of its opening decides: all that was said in it is on the same side, and on the same one every night.
    """
    digest = hashlib.sha256(opening(messages).encode()).digest()
    return int.from_bytes(digest[:8]) / 2**64 < share


def opening(messages: Sequence[Mapping[str, Any]]) -> str:
    """The owner's first turn, as text: what all prompts of a conversation have in common.

    Later ones hold earlier answers, the picked one among them, so none of them may be on the other side. The system
    text is no part of it: with the date in it, the same question would be on both.
    """
    turns = [[str(message["role"]), str(message["content"])] for message in messages]
    return json.dumps([turn for turn in turns if turn[0] == "user"][:1] or turns)


Example = tuple[list[int], list[int]]  # a prompt and the answer to learn


@dataclass(frozen=True)
class RatedAnswer:
    """An answer that was praised (`desirable`) or scolded."""

    prompt: list[int]
    answer: list[int]
    desirable: bool
