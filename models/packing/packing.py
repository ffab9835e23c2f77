"""Pack groups of completions into one sequence that contains each prompt once for all its completions.

    prompt 0 | prompt 1 | … | completion 0.0 | completion 0.1 | … | completion 1.0 | …

Every token except a completion's last goes through the model; a completion attends to its prompt and to itself (see
`models/packing/attention.py`). All other matrix products run over the whole pack without padding. The head computes
only what is trained on: of an episode of several turns, what the model wrote in each.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, compress

import torch
from jaxtyping import Float, Int
from torch import Tensor
from transformers import PreTrainedModel

from models.packing.attention import Layout, Table


@dataclass(frozen=True)
class Group:
    """A prompt with some of its completions, as token ids; `rows` are the completions' places in the batch.

    `masks`: for each completion, which of its tokens are predicted, at least one; None: all.
    """

    prompt: Sequence[int]
    completions: Sequence[Sequence[int]]
    rows: Sequence[int]
    masks: Sequence[Sequence[bool]] | None = None

    @property
    def tokens(self) -> int:
        """The number of tokens in a pack."""
        return len(self.prompt) + sum(len(completion) - 1 for completion in self.completions)


@dataclass(frozen=True)
class Pack:
    """A packed sequence: what the model reads, and where the completions' tokens are predicted.

    `lengths`: how many tokens of each completion are predicted.
    """

    input_ids: Int[Tensor, "1 tokens"]
    position_ids: Int[Tensor, "1 tokens"]
    layout: Layout
    groups: tuple[Group, ...]
    predictors: Int[Tensor, "predicted"]
    targets: Int[Tensor, "predicted"]
    lengths: tuple[int, ...]
    rows: tuple[int, ...]


def split(groups: Sequence[Group], budget: int) -> list[list[Group]]:
    """Return microbatches of at most `budget` tokens; a larger group is cut and its prompt repeated.

    Groups of similar length come together: the attention pads a microbatch's completions to its longest.
    """
    batches: list[list[Group]] = [[]]
    taken = 0
    for group in sorted(groups, key=lambda group: max(map(len, group.completions))):
        for piece in _pieces(group, budget):
            if batches[-1] and taken + piece.tokens > budget:
                batches.append([])
                taken = 0
            batches[-1].append(piece)
            taken += piece.tokens
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
        Group(
            group.prompt,
            [group.completions[i] for i in piece],
            [group.rows[i] for i in piece],
            group.masks and [group.masks[i] for i in piece],
        )
        for piece in pieces
    ]


def pack(groups: Sequence[Group], device: torch.device) -> Pack:
    """Lay out the prompts one after the other, then the completions. Neither may be empty."""
    prompts = [group.prompt for group in groups]
    completions = [completion for group in groups for completion in group.completions]
    masks = [mask for group in groups for mask in (group.masks or [[True] * len(each) for each in group.completions])]
    owners = [owner for owner, group in enumerate(groups) for _ in group.completions]
    ends = list(accumulate(map(len, prompts)))
    starts = list(accumulate((len(completion) - 1 for completion in completions), initial=ends[-1]))
    read = [completion[:-1] for completion in completions]
    predictors = [
        place
        for owner, start, tokens, mask in zip(owners, starts, read, masks, strict=False)
        for place, predicted in zip((ends[owner] - 1, *range(start, start + len(tokens))), mask, strict=True)
        if predicted
    ]
    positions = [place for prompt in prompts for place in range(len(prompt))]
    positions += [
        len(prompts[owner]) + place for owner, tokens in zip(owners, read, strict=True) for place in range(len(tokens))
    ]
    ids = [token for tokens in (*prompts, *read) for token in tokens]
    return Pack(
        torch.tensor([ids], device=device),
        torch.tensor([positions], device=device),
        Layout(
            _table(0, list(map(len, prompts)), device),
            _table(ends[-1], [len(tokens) for tokens in read if tokens], device),
            torch.tensor([owner for owner, tokens in zip(owners, read, strict=True) if tokens], device=device),
        ),
        tuple(groups),
        torch.tensor(predictors, device=device),
        torch.tensor(
            [token for each, mask in zip(completions, masks, strict=True) for token in compress(each, mask)],
            device=device,
        ),
        tuple(map(sum, masks)),
        tuple(row for group in groups for row in group.rows),
    )


def _table(start: int, lengths: Sequence[int], device: torch.device) -> Table:
    sizes = torch.tensor(lengths, dtype=torch.long)
    columns = torch.arange(max(lengths, default=0))
    valid = columns < sizes[:, None]
    places = torch.where(valid, (sizes.cumsum(0) - sizes)[:, None] + columns, 0)
    slots = valid.flatten().nonzero().squeeze(1)
    return Table(start, len(slots), places.to(device), slots.to(device), valid.to(device), bool(valid.all()))


def hidden_states(model: PreTrainedModel, packed: Pack) -> Float[Tensor, "predicted hidden"]:
    """Return the last hidden state at every position that predicts a completion's token, in the order of targets."""
    output = model.base_model(
        input_ids=packed.input_ids, position_ids=packed.position_ids, use_cache=False, layout=packed.layout
    )
    return output.last_hidden_state[0].index_select(0, packed.predictors)
