"""Causal attention over packed groups: prompts over themselves, each completion over its prompt and itself.

Registered with transformers under the name `packed_groups`. On the CPU it is matrix products with a custom backward
pass: torch's fused kernel is several times slower there on short completions, and autograd would keep every score and
scatter every gradient. The products run over tables of equally long rows (see `Table`).
"""

from dataclasses import dataclass, field
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention
from transformers import AttentionInterface

ATTENTION = "packed_groups"
BLOCK = 64  # tokens of a row that attend at once, so that keys after them can be skipped
KEPT = 512  # rows of up to so many tokens keep their attention weights for the backward pass


@dataclass(frozen=True)
class Table:
    """Sequences of the pack, one per row, padded on the right.

    `start`, `tokens`: the sequences are contiguous in the pack, from `start` on, `tokens` in all. `places`: the index
    of a row's token among these (0 for padding); `slots`: the inverse, each token's index in the flattened table.
    `valid`: which are not padding. A `full` table has no padding.
    """

    start: int
    tokens: int
    places: Int[Tensor, "rows longest"]
    slots: Int[Tensor, "tokens"]
    valid: Bool[Tensor, "rows longest"]
    full: bool

    def rows(self, packed: Float[Tensor, "all heads width"]) -> Float[Tensor, "rows longest heads width"]:
        """Return the sequences of the pack as rows; values in the padding are meaningless."""
        own = packed[self.start : self.start + self.tokens]
        found = own if self.full else own.index_select(0, self.places.flatten())
        return found.unflatten(0, self.places.shape)

    def tokens_of(self, rows: Float[Tensor, "rows longest heads width"]) -> Float[Tensor, "tokens heads width"]:
        """Return the inverse of `rows`: the tokens in the order of the pack, without padding."""
        flat = rows.flatten(0, 1)
        return flat if self.full else flat.index_select(0, self.slots)


@dataclass(frozen=True)
class Layout:
    """Where a pack's prompts and completions are, and which prompt each completion has.

    No token follows a completion's last one, so the rows of `completions` end before it, and a completion of one token
    has no row.
    """

    prompts: Table
    completions: Table
    owners: Int[Tensor, "completions"]
    biases: dict[Any, Tensor] = field(default_factory=dict, repr=False, compare=False)  # filled on first use


def packed_attention(
    module: torch.nn.Module,
    query: Float[Tensor, "1 heads tokens width"],
    key: Float[Tensor, "1 kv_heads tokens width"],
    value: Float[Tensor, "1 kv_heads tokens width"],
    attention_mask: None,
    scaling: float | None = None,
    *,
    layout: Layout,
    sliding_window: int | None = None,
    softcap: float | None = None,
    s_aux: Tensor | None = None,
    **_: object,
) -> tuple[Float[Tensor, "1 tokens heads width"], None]:
    """Return softmax(query · keyᵀ · scale) · value for each token over what it may see, in `query`'s precision.

    Each key/value head serves its share of the query heads. `layout` is a keyword of the model's forward call. Raises
    ValueError for unsupported kinds of attention.
    """
    del module, attention_mask
    if softcap is not None or s_aux is not None:
        raise ValueError("its attention is softcapped, or has sinks")
    scale = query.shape[-1] ** -0.5 if scaling is None else scaling
    own = [x[0].transpose(0, 1) for x in (query, key, value)]
    if query.device.type == "cpu":
        return _PackedAttention.apply(*own, layout, scale, sliding_window).unsqueeze(0), None  # pyright: ignore
    return _fused(own[0], own[1], own[2], layout, scale, sliding_window).unsqueeze(0), None


class _PackedAttention(torch.autograd.Function):
    """Keeps queries, keys and values, and the attention weights of rows of up to KEPT tokens; those of longer rows,
    which would be most of the memory, are computed again in the backward pass.
    """

    @staticmethod
    def forward(
        ctx: Any, query: Tensor, key: Tensor, value: Tensor, layout: Layout, scale: float, window: int | None
    ) -> Tensor:
        """Return the attention of query, key and value [tokens, heads, width], in the query's shape."""
        ctx.layout, ctx.scale, ctx.window = layout, scale, window
        out, kept = torch.empty(query.shape, dtype=query.dtype), []
        for table, prefixed in _tables(layout):
            keys, values = _keys(key, layout, prefixed), _keys(value, layout, prefixed)
            own, found = table.rows(query), out.new_empty(*table.places.shape, *query.shape[1:])
            for columns, seen in _blocks(found.shape[1], keys.shape[1]):
                queries = _folded(own[:, columns] * scale, key.shape[1])
                shares = _shares(queries, keys[:, :seen], layout, prefixed, columns, window)
                _unfold(shares @ values[:, :seen], found[:, columns], key.shape[1])
                kept.append(shares if found.shape[1] <= KEPT else None)
            out[table.start : table.start + table.tokens] = table.tokens_of(found)
        ctx.save_for_backward(query, key, value, *kept)
        return out

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        """Return the gradients of query, key and value, each in its own shape."""
        query, key, value, *kept = ctx.saved_tensors
        layout, scale, window, kv_heads = ctx.layout, ctx.scale, ctx.window, key.shape[1]
        found = [torch.empty(x.shape, dtype=x.dtype) for x in (query, key, value)]
        for table, prefixed in reversed(_tables(layout)):  # the completions add to their prompts' gradients
            keys, values = _keys(key, layout, prefixed), _keys(value, layout, prefixed)
            own, above = table.rows(query), table.rows(gradients[0])
            if not table.full:
                above = above.masked_fill(~table.valid[:, :, None, None], 0.0)
            d_query, d_keys, d_values = torch.empty_like(own), torch.zeros_like(keys), torch.zeros_like(values)
            for columns, seen in reversed(_blocks(d_query.shape[1], keys.shape[1])):
                queries = _folded(own[:, columns] * scale, kv_heads)
                gradient = _folded(above[:, columns], kv_heads)
                shares = kept.pop()
                if shares is None:
                    shares = _shares(queries, keys[:, :seen], layout, prefixed, columns, window)
                d_values[:, :seen] += shares.transpose(1, 2) @ gradient
                d_shares = gradient @ values[:, :seen].transpose(1, 2)
                d_scores = torch._softmax_backward_data(d_shares, shares, -1, shares.dtype)
                d_keys[:, :seen] += d_scores.transpose(1, 2) @ queries
                _unfold((d_scores @ keys[:, :seen]).mul_(scale), d_query[:, columns], kv_heads)
            found[0][table.start : table.start + table.tokens] = table.tokens_of(d_query)
            for whole, d_rows in zip(found[1:], (d_keys, d_values), strict=True):
                _collect(whole, d_rows.unflatten(0, (-1, kv_heads)).transpose(1, 2), layout, prefixed)
        return *found, None, None, None


def _tables(layout: Layout) -> list[tuple[Table, bool]]:
    return [(layout.prompts, False), *([(layout.completions, True)] if layout.completions.tokens else [])]


def _blocks(longest: int, keys: int) -> list[tuple[slice, int]]:
    """Return parts of a table's columns, each with how many of its `keys` its last column may see."""
    ends = [min(start + BLOCK, longest) for start in range(0, longest, BLOCK)]
    return [(slice(start, end), keys - longest + end) for start, end in zip([0, *ends], ends, strict=False)]


def _keys(
    packed: Float[Tensor, "tokens kv_heads width"], layout: Layout, prefixed: bool
) -> Float[Tensor, "rows_kv_heads keys width"]:
    """Return the prompts' rows, or each completion's row after its prompt's, head by head."""
    rows = layout.prompts.rows(packed)
    if prefixed:
        rows = torch.cat([rows.index_select(0, layout.owners), layout.completions.rows(packed)], dim=1)
    return rows.transpose(1, 2).flatten(0, 1)


def _folded(
    rows: Float[Tensor, "rows columns heads width"], kv_heads: int
) -> Float[Tensor, "rows_kv_heads share_columns width"]:
    """Group the query heads by the key/value head that serves them."""
    return rows.unflatten(2, (kv_heads, -1)).permute(0, 2, 3, 1, 4).flatten(2, 3).flatten(0, 1)


def _unfold(
    folded: Float[Tensor, "rows_kv_heads share_columns width"],
    rows: Float[Tensor, "rows columns heads width"],
    kv_heads: int,
) -> None:
    """Write the inverse of `_folded` into `rows`."""
    part = rows.unflatten(2, (kv_heads, -1))
    part.copy_(folded.unflatten(0, (-1, kv_heads)).unflatten(2, (-1, rows.shape[1])).permute(0, 3, 1, 2, 4))


def _shares(
    queries: Float[Tensor, "rows_kv_heads share_columns width"],
    keys: Float[Tensor, "rows_kv_heads keys width"],
    layout: Layout,
    prefixed: bool,
    columns: slice,
    window: int | None,
) -> Float[Tensor, "rows_kv_heads share_columns keys"]:
    """Return each token's attention weights: 0 for keys that it may not see."""
    place = (prefixed, columns.start, window, keys.shape, queries.shape, queries.dtype)
    if place not in layout.biases:  # the same in every layer of a model
        layout.biases[place] = _bias(queries, keys, layout, prefixed, columns, window)
    return torch.baddbmm(layout.biases[place], queries, keys.transpose(1, 2)).softmax(dim=-1)


def _bias(
    queries: Tensor, keys: Tensor, layout: Layout, prefixed: bool, columns: slice, window: int | None
) -> Float[Tensor, "share_columns keys"] | Float[Tensor, "rows_kv_heads share_columns keys"]:
    """Return 0 where a token may see a key, else −inf; one for all rows if their prompts are equally long."""
    seen = _visible(layout, prefixed, columns, keys.shape[1], window)
    bias = torch.zeros(seen.shape, dtype=queries.dtype).masked_fill_(~seen, float("-inf"))
    share = queries.shape[1] // bias.shape[1]
    if len(bias) == 1:
        return bias[0].repeat(share, 1)
    return bias.repeat_interleave(len(queries) // len(bias), dim=0).repeat(1, share, 1)


def _visible(
    layout: Layout, prefixed: bool, columns: slice, keys: int, window: int | None
) -> Bool[Tensor, "rows columns keys"]:
    """Return which keys a token may see: its prompt's and those up to itself; at most `window` of them."""
    device = layout.owners.device
    own = torch.arange(columns.stop, device=device)
    known, before = own[:0].bool()[None], own[:0][None]
    if prefixed:
        rows = layout.owners[:1] if layout.prompts.full else layout.owners
        known = layout.prompts.valid.index_select(0, rows)
        # positions count from the prompt's own length, not the longest prompt's
        before = torch.arange(keys - columns.stop, device=device) - known.sum(dim=1, keepdim=True)
    places = torch.cat([before, own.expand(len(before), -1)], dim=1)
    distances = own[columns, None] - places[:, None]
    seen = (distances >= 0) & torch.cat([known, own.expand(len(known), -1) >= 0], dim=1)[:, None]
    return seen if window is None else seen & (distances < window)


def _collect(
    whole: Float[Tensor, "all kv_heads width"],
    d_rows: Float[Tensor, "rows keys kv_heads width"],
    layout: Layout,
    prefixed: bool,
) -> None:
    """Write the gradients of a table's keys or values; those of the prompts before its rows are summed by prompt."""
    prompts, table = layout.prompts, layout.completions if prefixed else layout.prompts
    prefix = d_rows.shape[1] - table.places.shape[1]
    span = slice(table.start, table.start + table.tokens)
    own = table.tokens_of(d_rows[:, prefix:])
    if prefixed:
        whole[span] = own
        members = torch.nn.functional.one_hot(layout.owners, len(prompts.places)).T.to(d_rows.dtype)
        summed = (members @ d_rows[:, :prefix].flatten(1)).unflatten(1, (prefix, *d_rows.shape[2:]))
        whole[prompts.start : prompts.start + prompts.tokens] = prompts.tokens_of(summed)
    elif layout.completions.tokens:
        whole[span] += own
    else:
        whole[span] = own


def _fused(query: Tensor, key: Tensor, value: Tensor, layout: Layout, scale: float, window: int | None) -> Tensor:
    """Return the same through torch's fused kernels and autograd, for a GPU.

    Prompts are plainly causal, which needs no mask: what pads them on the right is seen by padding only. With a mask,
    torch has no fused kernel for grouped key/value heads, so these are repeated.
    """
    share = query.shape[1] // key.shape[1]
    parts = []
    for table, prefixed in _tables(layout):
        queries = _Rows.apply(query, table).transpose(1, 2)
        keys, values = (_rows_before(x, layout, prefixed).transpose(1, 2) for x in (key, value))
        if not prefixed and window is None:
            found = scaled_dot_product_attention(queries, keys, values, is_causal=True, scale=scale, enable_gqa=True)
        else:
            seen = _visible(layout, prefixed, slice(0, queries.shape[2]), keys.shape[2], window)[:, None]
            keys, values = (x.repeat_interleave(share, dim=1) for x in (keys, values))
            found = scaled_dot_product_attention(queries, keys, values, attn_mask=seen, scale=scale)
        parts.append(table.tokens_of(found.transpose(1, 2)))
    return torch.cat(parts)


def _rows_before(
    packed: Float[Tensor, "tokens kv_heads width"], layout: Layout, prefixed: bool
) -> Float[Tensor, "rows keys kv_heads width"]:
    """Return the prompts' rows, or each completion's row after its prompt's, differentiable."""
    rows: Tensor = _Rows.apply(packed, layout.prompts)  # pyright: ignore[reportAssignmentType]
    if prefixed:
        own: Tensor = _Rows.apply(packed, layout.completions)  # pyright: ignore[reportAssignmentType]
        rows = torch.cat([_Owned.apply(rows, layout.owners), own], dim=1)  # pyright: ignore
    return rows


class _Rows(torch.autograd.Function):
    """`Table.rows`, whose gradient is `Table.tokens_of`: autograd's own would be added up atomically, in any order."""

    @staticmethod
    def forward(ctx: Any, packed: Tensor, table: Table) -> Tensor:
        ctx.table, ctx.shape = table, packed.shape
        return table.rows(packed)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        table, whole = ctx.table, gradients[0].new_zeros(ctx.shape)
        whole[table.start : table.start + table.tokens] = table.tokens_of(gradients[0])
        return whole, None


class _Owned(torch.autograd.Function):
    """Each completion's prompt, whose gradient is the sum over its completions, as one product."""

    @staticmethod
    def forward(ctx: Any, prompts: Tensor, owners: Tensor) -> Tensor:
        ctx.owners, ctx.count = owners, len(prompts)
        return prompts.index_select(0, owners)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        members = torch.nn.functional.one_hot(ctx.owners, ctx.count).T.to(gradients[0].dtype)
        return (members @ gradients[0].flatten(1)).unflatten(1, gradients[0].shape[1:]), None


AttentionInterface.register(ATTENTION, packed_attention)
