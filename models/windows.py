"""Windows: contexts for the turns of an episode that is longer than the model's context.

A new context begins with the prompt and the first answer, followed by the latest turns. Sampler and trainer compute
each answer in the same context, so that the trainer's log-probabilities are those of what was sampled.
"""

from collections.abc import Sequence

# [start, opening, kept]: from token `start` of an episode on, its context is the prompt, then the first `opening`
# tokens and by those from `kept` on.
Window = list[int]


def window_of(prompt: int, seen: Sequence[int], length: int, most: int) -> Window | None:
    """Return a window for an episode whose context is full, or None if even the last observation does not fit.

    `prompt`: the number of its tokens. `seen`: where each observation begins in the episode's tokens. `length`: the
    number of these tokens, including the last observation. `most`: how long a context may be. The latest turns fill up
    to half of it, so that it is not full again at the next turn.
    """
    opening = seen[0]
    whole = prompt + opening + length
    kept = next((first for first in seen[1:] if whole - first <= most // 2), seen[-1])
    return [seen[-1], opening, kept] if whole - kept <= most and len(seen) > 1 else None


def context_of(prompt: Sequence[int], tokens: Sequence[int], windows: Sequence[Window]) -> list[int]:
    """Return the context in which an episode goes on after these tokens."""
    _, opening, kept = windows[-1] if windows else (0, 0, 0)
    return [*prompt, *tokens[:opening], *tokens[kept:]]


def contexts(prompt: Sequence[int], tokens: Sequence[int], windows: Sequence[Window]) -> list[tuple[list[int], slice]]:
    """Return what came before each window of an episode, each with the slice of the tokens that follow."""
    ends = [*(start for start, *_ in windows), len(tokens)]
    before = [list(prompt)]
    before += [[*prompt, *tokens[:opening], *tokens[kept:start]] for start, opening, kept in windows]
    return [(one, slice(start, end)) for one, start, end in zip(before, [0, *ends], ends, strict=False)]
