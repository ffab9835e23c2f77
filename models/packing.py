"""Groups of completions as one packed sequence, in which a prompt stands once for all its completions.

    prompt 0 | completion 0.0 | completion 0.1 | … | prompt 1 | completion 1.0 | …

Every token but a completion's last goes through the model; a completion attends to its prompt and to itself. All
matrix products run over the whole pack without padding, the attention group by group.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention
from transformers import AttentionInterface, PreTrainedModel

ATTENTION = "packed_groups"


@dataclass(frozen=True)
class Group:
    """A prompt with some of its completions, as token ids; `rows` are the completions' places in the batch."""

    prompt: Sequence[int]
    completions: Sequence[Sequence[int]]
    rows: Sequence[int]

    @property
    def tokens(self) -> int:
        """How many tokens of a pack it takes."""
        return len(self.prompt) + sum(len(completion) - 1 for completion in self.completions)


@dataclass(frozen=True)
class GroupLayout:
    """Where a group's tokens stand in the pack.

    `inputs`: pack positions of the completions' input tokens, padded to [size, longest]; `valid`: which of them are
    not padding; `bias`: 0 where a completion's token may attend to [prompt, own completion], else −inf;
    `prompt_bias`: the same within the prompt.
    """

    start: int
    prompt: int
    inputs: Int[Tensor, "size longest"]
    valid: Bool[Tensor, "size longest"]
    bias: Float[Tensor, "longest keys"]
    prompt_bias: Float[Tensor, "prompt prompt"]


@dataclass(frozen=True)
class Pack:
    """A packed sequence: what the model reads, and where the completions' tokens are predicted."""

    input_ids: Int[Tensor, "1 tokens"]
    position_ids: Int[Tensor, "1 tokens"]
    groups: tuple[GroupLayout, ...]
    predictors: Int[Tensor, "predicted"]
    targets: Int[Tensor, "predicted"]
    lengths: tuple[int, ...]
    rows: tuple[int, ...]


def split(groups: Sequence[Group], budget: int) -> list[list[Group]]:
    """Microbatches of at most `budget` tokens, in the given order; a larger group is cut, its prompt repeated."""
    batches: list[list[Group]] = [[]]
    taken = 0
    for group in groups:
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
    return [Group(group.prompt, [group.completions[i] for i in p], [group.rows[i] for i in p]) for p in pieces]


def pack(groups: Sequence[Group], dtype: torch.dtype, device: torch.device) -> Pack:
    """Lays the groups out one after the other. Prompts and completions must not be empty."""
    ids: list[int] = []
    positions: list[int] = []
    predictors: list[int] = []
    targets: list[int] = []
    layouts = []
    for group in groups:
        start, prompt = len(ids), len(group.prompt)
        ids += group.prompt
        positions += range(prompt)
        places = []
        for completion in group.completions:
            first = len(ids)
            places.append(range(first, first + len(completion) - 1))
            predictors += [start + prompt - 1, *places[-1]]
            targets += completion
            ids += completion[:-1]
            positions += range(prompt, prompt + len(completion) - 1)
        layouts.append(_layout(start, prompt, places, dtype, device))
    return Pack(
        torch.tensor([ids], device=device),
        torch.tensor([positions], device=device),
        tuple(layouts),
        torch.tensor(predictors, device=device),
        torch.tensor(targets, device=device),
        tuple(len(completion) for group in groups for completion in group.completions),
        tuple(row for group in groups for row in group.rows),
    )


def _layout(start: int, prompt: int, places: Sequence[range], dtype: torch.dtype, device: torch.device) -> GroupLayout:
    longest = max(len(place) for place in places)
    inputs = torch.full((len(places), longest), start, device=device)
    valid = torch.zeros(len(places), longest, dtype=torch.bool, device=device)
    for row, place in enumerate(places):
        inputs[row, : len(place)] = torch.arange(place.start, place.stop, device=device)
        valid[row, : len(place)] = True
    bias = torch.cat([torch.zeros(longest, prompt, dtype=dtype, device=device), _causal(longest, dtype, device)], dim=1)
    return GroupLayout(start, prompt, inputs, valid, bias, _causal(prompt, dtype, device))


def _causal(size: int, dtype: torch.dtype, device: torch.device) -> Float[Tensor, "size size"]:
    """0 on and below the diagonal, −inf above."""
    return torch.full((size, size), float("-inf"), dtype=dtype, device=device).triu(1)


def hidden_states(model: PreTrainedModel, packed: Pack) -> Float[Tensor, "predicted hidden"]:
    """The last hidden state at every position that predicts a completion's token, in the order of the targets."""
    output = model.base_model(
        input_ids=packed.input_ids, position_ids=packed.position_ids, use_cache=False, groups=packed.groups
    )
    return output.last_hidden_state[0, packed.predictors]


def packed_attention(
    module: torch.nn.Module,
    query: Float[Tensor, "1 heads tokens width"],
    key: Float[Tensor, "1 kv_heads tokens width"],
    value: Float[Tensor, "1 kv_heads tokens width"],
    attention_mask: None,
    scaling: float | None = None,
    *,
    groups: Sequence[GroupLayout],
    sliding_window: int | None = None,
    softcap: float | None = None,
    **_: object,
) -> tuple[Float[Tensor, "1 tokens heads width"], None]:
    """Attention within each group: the prompt causally, each completion over the prompt and itself.

    Registered with transformers under the name `packed_groups`; `groups` comes along as a keyword of the model's
    forward call. Raises ValueError for kinds of attention that this is not.
    """
    del module, attention_mask
    longest = max(group.prompt + group.inputs.shape[1] for group in groups)
    if softcap is not None or (sliding_window is not None and longest > sliding_window):
        raise ValueError(
            "a model with softcapped attention, or with a window shorter than a completion, is not trained"
        )
    pieces = []
    for group in groups:
        prompt = slice(group.start, group.start + group.prompt)
        own = _attend(query[:, :, prompt], key[:, :, prompt], value[:, :, prompt], group.prompt_bias, scaling)
        pieces.append(own[0].transpose(0, 1))
        if group.valid.any():
            pieces.append(_completions(query[0], key[0], value[0], group, prompt, scaling))
    return torch.cat(pieces).unsqueeze(0), None


def _completions(
    query: Tensor, key: Tensor, value: Tensor, group: GroupLayout, prompt: slice, scale: float | None
) -> Float[Tensor, "inputs heads width"]:
    size = len(group.inputs)
    q = query[:, group.inputs].transpose(0, 1)
    k, v = (
        torch.cat([x[:, prompt].expand(size, -1, -1, -1), x[:, group.inputs].transpose(0, 1)], dim=2)
        for x in (key, value)
    )
    return _attend(q, k, v, group.bias, scale).transpose(1, 2)[group.valid]


def _attend(
    query: Float[Tensor, "size heads rows width"],
    key: Float[Tensor, "size kv_heads keys width"],
    value: Float[Tensor, "size kv_heads keys width"],
    bias: Float[Tensor, "rows keys"],
    scale: float | None,
) -> Float[Tensor, "size heads rows width"]:
    """softmax(query · keyᵀ · scale + bias) · value, each key/value head serving its share of the query heads.

    On the CPU as matrix products: torch's fused kernel is several times slower there on short completions, in its
    backward pass above all.
    """
    if query.device.type != "cpu":
        return scaled_dot_product_attention(query, key, value, attn_mask=bias, scale=scale, enable_gqa=True)
    size, heads, rows, width = query.shape
    shared = key.shape[1]
    folded = query.reshape(size, shared, heads // shared * rows, width) * (width**-0.5 if scale is None else scale)
    scores = (folded @ key.transpose(-1, -2)).view(size, shared, heads // shared, rows, -1) + bias
    shares = scores.softmax(dim=-1).view(size, shared, heads // shared * rows, -1)
    return (shares @ value).view(size, heads, rows, width)


AttentionInterface.register(ATTENTION, packed_attention)
