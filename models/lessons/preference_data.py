"""Feedback as token ids (picks, rated answers, examples), the age weight of picks, and the held-out split."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from models.transcript import Window, contexts

Example = tuple[list[int], list[int]]  # a prompt and the answer to train on


class EpisodeExample(NamedTuple):
    """A teacher's episode: its first observation, all later tokens, which of these to train on, and the windows."""

    prompt: list[int]
    tokens: list[int]
    mask: list[bool]
    windows: list[Window]

    @property
    def longest(self) -> int:
        """The number of tokens in the longest context, with the answers written in it."""
        return max(
            len(before) + span.stop - span.start for before, span in contexts(*self[:2], self.windows, self.mask)
        )


@dataclass(frozen=True)
class RatedAnswer:
    """A prompt and an answer with its rating, from -1 (bad) to 1 (good), but not 0."""

    prompt: list[int]
    answer: list[int]
    rating: float


@dataclass(frozen=True)
class Pick:
    """A prompt, the answers that were shown (end tokens included), and the index of the chosen one.

    `weight`: how much the pick counts in a fit, relative to other picks.
    """

    prompt: tuple[int, ...]
    answers: tuple[tuple[int, ...], ...]
    chosen: int
    weight: float = 1.0

    @property
    def lengths(self) -> list[int]:
        """The answers' lengths in tokens."""
        return [len(answer) for answer in self.answers]


def age_weight(nights: float, half_life: float) -> float:
    """Return ½^(nights ÷ half_life): 1 for tonight's picks, halved every `half_life` nights."""
    return 0.5 ** (max(0.0, nights) / half_life)


def is_held_out(messages: Sequence[Mapping[str, Any]], share: float) -> bool:
    """Return whether a conversation belongs to the approximate `share` that is held out for evaluation.

    A hash of the conversation's opening decides, so all of its turns stay on the same side every night.
    """
    digest = hashlib.sha256(opening(messages).encode()).digest()
    return int.from_bytes(digest[:8]) / 2**64 < share


def opening(messages: Sequence[Mapping[str, Any]]) -> str:
    """Return the owner's first turn as JSON text. All prompts of a conversation have this turn in common.

    Later prompts contain earlier answers, including chosen ones, so a conversation must not be split between training
    and evaluation. The system text is left out, because a date in it could put the same question on both sides.
    """
    turns = [[str(message["role"]), str(message["content"])] for message in messages]
    return json.dumps([turn for turn in turns if turn[0] == "user"][:1] or turns)
