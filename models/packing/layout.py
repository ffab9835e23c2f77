"""Where a pack has its sequences: tables of rows that follow one another."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor


@dataclass(frozen=True)
class Table:
    """Sequences of the pack, one per row, padded on the right.

    `start`, `tokens`: the sequences are contiguous in the pack, from `start` on, `tokens` in all. `places`: the index
    of a row's token among these (0 for padding); `slots`: the inverse, each token's index in the flattened table.
    `valid`: which are not padding. A `full` table has no padding. `owners`: the row of the table before that each row
    follows; None in the first table.
    """

    start: int
    tokens: int
    places: Int[Tensor, "rows longest"]
    slots: Int[Tensor, "tokens"]
    valid: Bool[Tensor, "rows longest"]
    full: bool
    owners: Int[Tensor, "rows"] | None

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
    """The tables of a pack: the beginnings that prompts share, if any, the (rest of the) prompts, and the completions.

    Each row goes on where its owner ends. No token follows a completion's last one, so its row ends before it, and a
    completion of one token has no row.
    """

    tables: tuple[Table, ...]
    biases: dict[Any, Tensor] = field(default_factory=dict, repr=False, compare=False)  # filled on first use


def table_of(start: int, lengths: Sequence[int], owners: Sequence[int] | None, device: torch.device) -> Table:
    """Return the table of sequences of these lengths, one after the other from `start` on; see `Table`."""
    sizes = torch.tensor(lengths, dtype=torch.long)
    columns = torch.arange(max(lengths))
    valid = columns < sizes[:, None]
    places = torch.where(valid, (sizes.cumsum(0) - sizes)[:, None] + columns, 0)
    slots = valid.flatten().nonzero().squeeze(1)
    followed = None if owners is None else torch.tensor(owners, device=device)
    full = bool(valid.all())
    return Table(start, len(slots), places.to(device), slots.to(device), valid.to(device), full, followed)
