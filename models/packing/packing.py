"""Pack groups of completions into one sequence that contains each prompt once for all its completions.

    beginning 0 | … | prompt 0 | prompt 1 | … | completion 0.0 | completion 0.1 | … | completion 1.0 | …

A beginning is a prefix that prompts of several groups share (`models/packing/prefixes.py`). It is packed only once, and
each of these prompts continues it. Every token except a completion's last goes through the model. A completion attends
to its prompt and itself (`models/packing/attention.py`). All matrix products outside attention run over the whole pack,
unpadded. The head computes logits only for tokens to train on (in multi-turn episodes, those that the model wrote).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, compress, count, pairwise
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor
from transformers import PreTrainedModel

from models.packing.layout import Layout, Table, table_of
from models.packing.prefixes import shared_prefix_lengths


@dataclass(frozen=True)
class Group:
    """A prompt with some of its completions, as token ids. `rows`: the completions' indices in the batch.

    `masks`: for each completion, a mask of the tokens to train on, at least one (None: all tokens). `shared`: the
    length of the prompt's prefix (never the whole prompt) that other groups' prompts may share.
    """

    prompt: Sequence[int]
    completions: Sequence[Sequence[int]]
    rows: Sequence[int]
    masks: Sequence[Sequence[bool]] | None = None
    shared: int = 0

    @property
    def tokens(self) -> int:
        """The number of tokens in a pack of this group alone."""
        return len(self.prompt) + sum(len(completion) - 1 for completion in self.completions)

    @property
    def beginning(self) -> tuple[int, ...]:
        """The prompt prefix that other groups may share."""
        return tuple(self.prompt[: self.shared])


def answer_groups(answers: Sequence[tuple[Sequence[int], Sequence[Sequence[int]]]]) -> list[Group]:
    """Return prompts and their answers (token ids) as groups, with the answers' rows numbered from 0."""
    rows = count()
    return [Group(prompt, shown, [next(rows) for _ in shown]) for prompt, shown in answers]


@dataclass(frozen=True)
class Pack:
    """A packed sequence: the model's inputs, and the positions (`predictors`) that predict the tokens to train on.

    `lengths`: the number of tokens to train on in each completion. `temperature`: divides the logits.
    """

    input_ids: Int[Tensor, "1 tokens"]
    position_ids: Int[Tensor, "1 tokens"]
    layout: Layout
    groups: tuple[Group, ...]
    predictors: Int[Tensor, "predicted"]
    targets: Int[Tensor, "predicted"]
    lengths: tuple[int, ...]
    rows: tuple[int, ...]
    temperature: float = 1.0


def split(groups: Sequence[Group], budget: int) -> list[list[Group]]:
    """Split groups into microbatches of up to `budget` tokens. Only a single completion with its prompt may exceed it.

    A larger group is cut into pieces that each repeat its prompt. Groups of similar length go together, because
    attention pads a microbatch's completions to the longest one. A shared prefix counts once per microbatch.
    """
    shared = shared_prefix_lengths([group.prompt for group in groups])
    sharing = [replace(group, shared=length) for group, length in zip(groups, shared, strict=True)]
    batches: list[list[Group]] = [[]]
    begun: set[tuple[int, ...]] = set()
    taken = 0
    for group in sorted(sharing, key=lambda group: max(map(len, group.completions))):
        for piece in _pieces(group, budget):
            new = piece.tokens - (piece.shared if piece.beginning in begun else 0)
            if batches[-1] and taken + new > budget:
                batches.append([])
                begun, taken, new = set(), 0, piece.tokens
            batches[-1].append(piece)
            begun.add(piece.beginning)
            taken += new
    return [batch for batch in batches if batch]


def _pieces(group: Group, budget: int) -> list[Group]:
    pieces: list[list[int]] = [[]]
    taken = len(group.prompt)
    for index, completion in enumerate(group.completions):
        if pieces[-1] and taken + len(completion) - 1 > budget:
            pieces.append([])
            taken = len(group.prompt)
        pieces[-1].append(index)
        taken += len(completion) - 1
    return [
        replace(
            group,
            completions=[group.completions[i] for i in piece],
            rows=[group.rows[i] for i in piece],
            masks=group.masks and [group.masks[i] for i in piece],
        )
        for piece in pieces
    ]


class _Level(NamedTuple):
    """Consecutive sequences, each with the index of its owner in the previous level and its first token's position."""

    sequences: Sequence[Sequence[int]]
    owners: Sequence[int]
    positions: Sequence[int]


def pack(groups: Sequence[Group], device: torch.device, temperature: float = 1.0) -> Pack:
    """Pack groups: first the prefixes that prompts share, then the rest of each prompt, then the completions.

    No prompt and no completion may be empty.
    """
    beginnings = {tokens: row for row, tokens in enumerate(dict.fromkeys(group.beginning for group in groups))}
    if len(beginnings) == len(groups) or not any(beginnings):  # nothing is shared
        groups, beginnings = [replace(group, shared=0) for group in groups], {}
    levels = _levels(groups, beginnings)
    ends = [*accumulate((len(sequence) for level in levels for sequence in level.sequences), initial=0)]
    places = [range(*pair) for pair in pairwise(ends)]
    asked, answered = places[len(beginnings) :], places[len(beginnings) + len(groups) :]
    completions = [completion for group in groups for completion in group.completions]
    masks = [mask for group in groups for mask in (group.masks or [[True] * len(each) for each in group.completions])]
    predictors = [
        place
        for owner, own, mask in zip(levels[-1].owners, answered, masks, strict=True)
        for place in compress((asked[owner][-1], *own), mask)
    ]
    targets = [token for each, mask in zip(completions, masks, strict=True) for token in compress(each, mask)]
    return Pack(
        torch.tensor([[token for level in levels for tokens in level.sequences for token in tokens]], device=device),
        torch.tensor([[place for level in levels for place in _positions(level)]], device=device),
        _layout(levels, device),
        tuple(groups),
        torch.tensor(predictors, device=device),
        torch.tensor(targets, device=device),
        tuple(map(sum, masks)),
        tuple(row for group in groups for row in group.rows),
        temperature,
    )


def _levels(groups: Sequence[Group], beginnings: Mapping[tuple[int, ...], int]) -> list[_Level]:
    """Return the shared prefixes (if any), the prompts without them, and all completions without their last tokens."""
    follow = [beginnings[group.beginning] for group in groups] if beginnings else []
    prompts = [group.prompt[group.shared :] for group in groups]
    owners = [owner for owner, group in enumerate(groups) for _ in group.completions]
    return [
        *([_Level([*beginnings], [], [0] * len(beginnings))] if beginnings else []),
        _Level(prompts, follow, [group.shared for group in groups]),
        _Level(
            [completion[:-1] for group in groups for completion in group.completions],
            owners,
            [len(groups[owner].prompt) for owner in owners],
        ),
    ]


def _positions(level: _Level) -> Iterator[int]:
    for sequence, first in zip(level.sequences, level.positions, strict=True):
        yield from range(first, first + len(sequence))


def _layout(levels: Sequence[_Level], device: torch.device) -> Layout:
    """Convert the levels to tables. A completion of one token has no row."""
    tables: list[Table] = []
    start = 0
    for level in levels:
        rows = [row for row, sequence in enumerate(level.sequences) if sequence or level is not levels[-1]]
        if rows:
            owners = [level.owners[row] for row in rows] if level.owners else None
            tables.append(table_of(start, [len(level.sequences[row]) for row in rows], owners, device))
            start += tables[-1].tokens
    return Layout(tuple(tables))


def hidden_states(model: PreTrainedModel, packed: Pack) -> Float[Tensor, "predicted hidden"]:
    """Return the last layer's hidden state at each position that predicts a token to train on, in `targets` order."""
    output = model.base_model(
        input_ids=packed.input_ids, position_ids=packed.position_ids, use_cache=False, layout=packed.layout
    )
    return output.last_hidden_state[0].index_select(0, packed.predictors)
