"""Causal attention over packed groups: a token attends to its sequence's prefix, and to its sequence up to itself.

It is registered with transformers as `packed_groups`. On a CPU, it uses matrix products, because torch's fused kernel
is several times slower there on short completions. Its backward pass is custom, because autograd would keep all scores
and scatter all gradients. The products run over tables with rows of equal length (see `models/packing/layout.py`).
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.functional import one_hot, scaled_dot_product_attention
from transformers import AttentionInterface

from models.packing.layout import Layout, Table

ATTENTION = "packed_groups"
BLOCK = 64  # tokens of a row that are computed together; keys after the block are skipped
KEPT = 512  # rows of up to this many tokens keep their attention weights for the backward pass


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
    """Return softmax(query · keyᵀ · scale) · value for each token, over the keys it may see, in `query`'s precision.

    Each key/value head serves an equal share of the query heads. Pass `layout` as a keyword argument of the model's
    forward call. Raises ValueError if the model uses softcapped attention or attention sinks.
    """
    del module, attention_mask
    if softcap is not None or s_aux is not None:
        raise ValueError("its attention is softcapped, or has sinks")
    scale = query.shape[-1] ** -0.5 if scaling is None else scaling
    own = [x[0].transpose(0, 1) for x in (query, key, value)]
    if query.device.type == "cpu":
        return _PackedAttention.apply(*own, layout, scale, sliding_window).unsqueeze(0), None
    return _fused(own[0], own[1], own[2], layout, scale, sliding_window).unsqueeze(0), None


class _PackedAttention(torch.autograd.Function):
    """Packed attention with a custom backward pass. Saves queries, keys, values, and the attention weights of rows of
    up to KEPT tokens. Weights of longer rows would take most of the memory, so the backward pass recomputes them.
    """

    @staticmethod
    def forward(
        ctx: Any, query: Tensor, key: Tensor, value: Tensor, layout: Layout, scale: float, window: int | None
    ) -> Tensor:
        """Return the attention output for query, key and value [tokens, heads, width], in the query's shape."""
        ctx.layout, ctx.scale, ctx.window = layout, scale, window
        out, kept = torch.empty(query.shape, dtype=query.dtype), []
        for number, (table, keys, values) in enumerate(_tables(layout, key, value)):
            own, found = table.rows(query), out.new_empty(*table.places.shape, *query.shape[1:])
            for columns, seen in _blocks(found.shape[1], keys.shape[1]):
                queries = _folded(own[:, columns] * scale, key.shape[1])
                shares = _shares(queries, keys[:, :seen], layout, number, columns, window)
                _unfold(shares @ values[:, :seen], found[:, columns], key.shape[1])
                kept.append(shares if found.shape[1] <= KEPT else None)
            out[table.start : table.start + table.tokens] = table.tokens_of(found)
        ctx.save_for_backward(query, key, value, *kept)
        return out

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        """Return the gradients of query, key and value, each in the shape of its input."""
        query, key, value, *kept = ctx.saved_tensors
        layout, scale, window, kv_heads = ctx.layout, ctx.scale, ctx.window, key.shape[1]
        found = [torch.empty(x.shape, dtype=x.dtype) for x in (query, key, value)]
        from_below: list[Tensor | None] = [None, None]  # key and value gradients from later tables
        for number, (table, keys, values) in reversed([*enumerate(_tables(layout, key, value))]):
            own, above = table.rows(query), table.rows(gradients[0])
            if not table.full:
                above = above.masked_fill(~table.valid[:, :, None, None], 0.0)
            d_query = torch.empty_like(own)
            d_keys, d_values = (torch.zeros_like(keys) if below is None else below for below in from_below)
            for columns, seen in reversed(_blocks(d_query.shape[1], keys.shape[1])):
                queries = _folded(own[:, columns] * scale, kv_heads)
                gradient = _folded(above[:, columns], kv_heads)
                shares = kept.pop()
                if shares is None:
                    shares = _shares(queries, keys[:, :seen], layout, number, columns, window)
                d_values[:, :seen] += shares.transpose(1, 2) @ gradient
                d_shares = gradient @ values[:, :seen].transpose(1, 2)
                d_scores = torch._softmax_backward_data(d_shares, shares, -1, shares.dtype)
                d_keys[:, :seen] += d_scores.transpose(1, 2) @ queries
                _unfold((d_scores @ keys[:, :seen]).mul_(scale), d_query[:, columns], kv_heads)
            found[0][table.start : table.start + table.tokens] = table.tokens_of(d_query)
            before = len(layout.tables[number - 1].places) if number else 0
            from_below = [_collect(x, d, table, before) for x, d in zip(found[1:], (d_keys, d_values), strict=True)]
        return *found, None, None, None


def _tables(layout: Layout, key: Tensor, value: Tensor) -> Iterator[tuple[Table, Tensor, Tensor]]:
    """Yield each table with its rows' keys and values, prefixes included. Rows and heads share the first dimension."""
    keys = values = None
    for table in layout.tables:
        keys, values = _after(keys, key, table), _after(values, value, table)
        yield table, keys.flatten(0, 1), values.flatten(0, 1)


def _after(
    before: Float[Tensor, "owners kv_heads earlier width"] | None,
    packed: Float[Tensor, "tokens kv_heads width"],
    table: Table,
) -> Float[Tensor, "rows kv_heads keys width"]:
    """Return the keys or values of a table's rows, each preceded by those of its owner."""
    own = table.rows(packed).transpose(1, 2)
    if before is None:
        return own.contiguous()
    assert table.owners is not None
    return torch.cat([before.index_select(0, table.owners), own], dim=2)


def _blocks(longest: int, keys: int) -> list[tuple[slice, int]]:
    """Return a table's columns as blocks, each with the number of `keys` that the block's last column may see."""
    ends = [min(start + BLOCK, longest) for start in range(0, longest, BLOCK)]
    return [(slice(start, end), keys - longest + end) for start, end in zip([0, *ends], ends, strict=False)]


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
    """Undo `_folded`, writing the result to `rows`."""
    part = rows.unflatten(2, (kv_heads, -1))
    part.copy_(folded.unflatten(0, (-1, kv_heads)).unflatten(2, (-1, rows.shape[1])).permute(0, 3, 1, 2, 4))


def _shares(
    queries: Float[Tensor, "rows_kv_heads share_columns width"],
    keys: Float[Tensor, "rows_kv_heads keys width"],
    layout: Layout,
    number: int,
    columns: slice,
    window: int | None,
) -> Float[Tensor, "rows_kv_heads share_columns keys"]:
    """Return each token's attention weights, 0 for keys that it may not see. `number` is the table's index."""
    place = (number, columns.start, window, keys.shape, queries.shape, queries.dtype)
    if place not in layout.biases:  # shared by all layers of a model
        layout.biases[place] = _bias(queries, layout, number, columns, window)
    return torch.baddbmm(layout.biases[place], queries, keys.transpose(1, 2)).softmax(dim=-1)


def _bias(
    queries: Tensor, layout: Layout, number: int, columns: slice, window: int | None
) -> Float[Tensor, "share_columns keys"] | Float[Tensor, "rows_kv_heads share_columns keys"]:
    """Return a bias: 0 for keys that a token may see, else −inf. One bias serves all rows if no prefix is padded."""
    seen = _visible(layout, number, columns, window)
    bias = torch.zeros(seen.shape, dtype=queries.dtype).masked_fill_(~seen, float("-inf"))
    share = queries.shape[1] // bias.shape[1]
    if len(bias) == 1:
        return bias[0].repeat(share, 1)
    return bias.repeat_interleave(len(queries) // len(bias), dim=0).repeat(1, share, 1)


def _visible(
    layout: Layout, number: int, columns: slice, window: int | None
) -> Bool[Tensor, "rows columns keys"] | Bool[Tensor, "1 columns keys"]:
    """Return which keys each token sees: the last `window` keys (None: all) of its prefix and its row up to itself."""
    known = _known(layout.tables[: number + 1])
    own = torch.arange(columns.stop, device=known.device).expand(len(known), -1)
    # positions are relative to the row's first token; padding in earlier tables does not count
    before = known.cumsum(dim=1) - 1 - known.sum(dim=1, keepdim=True)
    distances = own[:, columns, None] - torch.cat([before, own], dim=1)[:, None]
    seen = (distances >= 0) & torch.cat([known, own >= 0], dim=1)[:, None]
    return seen if window is None else seen & (distances < window)


def _known(tables: Sequence[Table]) -> Bool[Tensor, "rows earlier"] | Bool[Tensor, "1 earlier"]:
    """Return which prefix keys are not padding for each row of the last table, or one row for all if none is padded."""
    known = tables[0].valid[:, :0]
    for above, table in pairwise(tables):
        assert table.owners is not None
        known = torch.cat([known, above.valid], dim=1).index_select(0, table.owners)
    return known[:1] if all(above.full for above in tables[:-1]) else known


def _collect(
    whole: Float[Tensor, "all kv_heads width"],
    d_rows: Float[Tensor, "rows_kv_heads keys width"],
    table: Table,
    before: int,
) -> Float[Tensor, "before_kv_heads earlier width"] | None:
    """Write a table's own key or value gradients to `whole`. Return its prefixes' gradients, summed by owner."""
    rows = d_rows.unflatten(0, (-1, whole.shape[1]))
    earlier = rows.shape[2] - table.places.shape[1]
    whole[table.start : table.start + table.tokens] = table.tokens_of(rows[:, :, earlier:].transpose(1, 2))
    if table.owners is None:
        return None
    others = rows[:, :, :earlier]
    return _summed(others, table.owners, before).flatten(0, 1)


def _summed(
    rows: Float[Tensor, "rows *shape"], owners: Int[Tensor, "rows"], count: int
) -> Float[Tensor, "count *shape"]:
    """Sum the rows of each of `count` owners by one matrix product, so that the summation order never changes."""
    members = one_hot(owners, count).T.to(rows.dtype)
    return (members @ rows.flatten(1)).unflatten(1, rows.shape[1:])


def _fused(query: Tensor, key: Tensor, value: Tensor, layout: Layout, scale: float, window: int | None) -> Tensor:
    """Return the same output as `_PackedAttention`, computed on a GPU by torch's fused kernels and autograd.

    Without a sliding window, the first table uses plain causal attention and no mask: padding is on the right, where no
    token sees it. With a mask, torch has no fused kernel for grouped key/value heads, so these heads are repeated.
    """
    share = query.shape[1] // key.shape[1]
    parts: list[Tensor] = []
    keys = values = None
    for number, table in enumerate(layout.tables):
        queries = _Rows.apply(query, table).transpose(1, 2)
        keys, values = _rows_after(keys, key, table), _rows_after(values, value, table)
        each = keys.transpose(1, 2), values.transpose(1, 2)
        if number == 0 and window is None:
            found = scaled_dot_product_attention(queries, *each, is_causal=True, scale=scale, enable_gqa=True)
        else:
            seen = _visible(layout, number, slice(0, queries.shape[2]), window)[:, None]
            k, v = (x.repeat_interleave(share, dim=1) for x in each)
            found = scaled_dot_product_attention(queries, k, v, attn_mask=seen, scale=scale)
        parts.append(table.tokens_of(found.transpose(1, 2)))
    return torch.cat(parts)


def _rows_after(
    before: Float[Tensor, "owners earlier kv_heads width"] | None,
    packed: Float[Tensor, "tokens kv_heads width"],
    table: Table,
) -> Float[Tensor, "rows keys kv_heads width"]:
    """Return, differentiably, the keys or values of a table's rows, each preceded by those of its owner."""
    own: Tensor = _Rows.apply(packed, table)
    if before is None:
        return own
    return torch.cat([_Owned.apply(before, table.owners), own], dim=1)


class _Rows(torch.autograd.Function):
    """`Table.rows` with `Table.tokens_of` as backward pass. Autograd would sum gradients atomically, in any order."""

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
    """Gathers each row's owner. In the backward pass, an owner's gradient is the sum of its rows' gradients."""

    @staticmethod
    def forward(ctx: Any, before: Tensor, owners: Tensor) -> Tensor:
        ctx.owners, ctx.count = owners, len(before)
        return before.index_select(0, owners)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        return _summed(gradients[0], ctx.owners, ctx.count), None


AttentionInterface.register(ATTENTION, packed_attention)
