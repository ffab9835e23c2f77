"""What prompts begin with alike: an instruction before the question, or the header of a chat template."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

FEWEST = 8  # tokens of a beginning that is worth a row of its own in the attention


@dataclass(frozen=True)
class _Family:
    """Prompts, by their places in the sorted order, and how many tokens they share."""

    members: list[int]
    tokens: int

    @property
    def saved(self) -> int:
        return (len(self.members) - 1) * self.tokens


def shared_beginnings(prompts: Sequence[Sequence[int]]) -> list[int]:
    """Return how many of its first tokens each prompt (token ids) shares with others; never all of them.

    A prompt shares one beginning, with all that have it: a long one with few others or a short one with many, so that
    few tokens would be left if all prompts were in one pack.
    """
    order = sorted(range(len(prompts)), key=lambda row: [*prompts[row]])
    common = [_common(prompts[one], prompts[other]) for one, other in pairwise(order)]
    shared = [0] * len(prompts)
    for family in _families(common, 0, len(common))[0] if prompts else ():
        for place in family.members:
            shared[order[place]] = family.tokens
    return shared


def _common(one: Sequence[int], other: Sequence[int]) -> int:
    """Return how many tokens two prompts begin with alike, without the last token of either."""
    most = min(len(one), len(other)) - 1
    return next((place for place in range(most) if one[place] != other[place]), most)


def _families(common: Sequence[int], first: int, last: int) -> tuple[list[_Family], list[int]]:
    """Return the families of the sorted prompts from `first` to `last`, and the prompts that are in none.

    `common[i]`: what prompts i and i + 1 share. What all of them share makes a family of those that have no longer
    beginning in common with others, or too few others to be worth one.
    """
    if first == last:
        return [], [first]
    least = min(common[first:last])
    cuts = [place for place in range(first, last) if common[place] == least]
    starts, ends = [first, *(cut + 1 for cut in cuts)], [*cuts, last]
    parts = [_families(common, *bounds) for bounds in zip(starts, ends, strict=True)]
    families = [family for found, _ in parts for family in found]
    alone = [place for _, left in parts for place in left]
    joined = [family for family in families if len(family.members) * least > family.saved]
    larger = _Family([*alone, *(place for family in joined for place in family.members)], least)
    if least < FEWEST or larger.saved <= sum(family.saved for family in joined):
        return families, alone
    return [*(family for family in families if family not in joined), larger], []
