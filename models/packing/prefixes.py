"""Find prefixes that prompts share, such as an instruction before the question or the header of a chat template."""

from collections.abc import Sequence
from itertools import pairwise

FEWEST = 8  # tokens in the shortest prefix that is worth a separate row in the attention


def shared_prefix_lengths(prompts: Sequence[Sequence[int]]) -> list[int]:
    """Return, for each prompt (token ids), how many of its first tokens it shares with others; never the whole prompt.

    Prompts that share at least a certain number of tokens form a family. This number is the same for all families: the
    one with which one pack of all prompts has the fewest tokens.
    """
    order = sorted(range(len(prompts)), key=lambda row: [*prompts[row]])
    common = [_common(prompts[one], prompts[other]) for one, other in pairwise(order)]
    choices = [_families(common, least) for least in sorted({count for count in common if count >= FEWEST})]
    shared = [0] * len(prompts)
    for members, tokens in max(choices, key=_saved, default=[]):
        for place in members:
            shared[order[place]] = tokens
    return shared


def _common(one: Sequence[int], other: Sequence[int]) -> int:
    """Return the length of two prompts' common prefix in tokens, not counting the last token of either."""
    most = min(len(one), len(other)) - 1
    return next((place for place in range(most) if one[place] != other[place]), most)


def _families(common: Sequence[int], least: int) -> list[tuple[range, int]]:
    """Return the runs of sorted prompts whose neighbours share at least `least` tokens, each with what all in it share.

    `common[i]`: the number of tokens that prompts i and i + 1 share.
    """
    families, start = [], 0
    for place, count in enumerate([*common, 0]):
        if count < least:
            if place > start:
                families.append((range(start, place + 1), min(common[start:place])))
            start = place + 1
    return families


def _saved(families: Sequence[tuple[range, int]]) -> int:
    """Return how many tokens a pack with these families has less."""
    return sum((len(members) - 1) * tokens for members, tokens in families)
