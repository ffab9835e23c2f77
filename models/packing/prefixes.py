"""Find prefixes that prompts share, such as an instruction before the question or the header of a chat template."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

FEWEST = 8  # tokens in the shortest prefix that is worth a separate row in the attention


@dataclass(frozen=True)
class _Family:
    """Prompts that share a prefix. `members`: their indices among the sorted prompts. `tokens`: the prefix's length."""

    members: list[int]
    tokens: int

    @property
    def saved(self) -> int:
        return (len(self.members) - 1) * self.tokens


def shared_prefix_lengths(prompts: Sequence[Sequence[int]]) -> list[int]:
    """Return, for each prompt (token ids), how many of its first tokens it shares with others; never the whole prompt.

    Prompts with a common prefix form a family, and each prompt belongs to at most one: a small family with a long
    prefix or a large one with a short prefix. The families are chosen so that one pack of all prompts has few tokens.
    """
    order = sorted(range(len(prompts)), key=lambda row: [*prompts[row]])
    common = [_common(prompts[one], prompts[other]) for one, other in pairwise(order)]
    shared = [0] * len(prompts)
    for family in _families(common, 0, len(common))[0] if prompts else ():
        for place in family.members:
            shared[order[place]] = family.tokens
    return shared


def _common(one: Sequence[int], other: Sequence[int]) -> int:
    """Return the length of two prompts' common prefix in tokens, not counting the last token of either."""
    most = min(len(one), len(other)) - 1
    return next((place for place in range(most) if one[place] != other[place]), most)


def _families(common: Sequence[int], first: int, last: int) -> tuple[list[_Family], list[int]]:
    """Return the families among the sorted prompts from `first` to `last`, and the prompts in no family.

    `common[i]`: the number of tokens that prompts i and i + 1 share. Prompts with longer prefixes form families first.
    The other prompts, and families that save less, then form one family with the prefix common to all, if that saves
    tokens.
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
