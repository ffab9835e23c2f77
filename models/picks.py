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
    """Whether a prompt's picks judge the fit instead of taking part in it: so for about a `share` of all prompts.

    The prompt's own hash decides: all its picks are on the same side, and on the same one every night.
    """
    turns = [[str(message["role"]), str(message["content"])] for message in messages]
    digest = hashlib.sha256(json.dumps(turns).encode()).digest()
    return int.from_bytes(digest[:8]) / 2**64 < share
