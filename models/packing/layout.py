"""How a pack stores its sequences: in tables. Each row of a table continues a row of the previous table."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor


@dataclass(frozen=True)
class Table:
    """Some of a pack's sequences, one per row, padded on the right.

    The sequences are contiguous in the pack: they begin at index `start` and have `tokens` tokens in total. `places`:
    each row's token indices, relative to `start` (0 for padding). `slots`: the inverse of `places`, each token's index
    in the flattened table. `valid`: False for padding. `full`: whether the table has no padding. `owners`: for each
    row, the row of the previous table that it continues; None in the first table.
    """

    start: int
    tokens: int
    places: Int[Tensor, "rows longest"]
    slots: Int[Tensor, "tokens"]
    valid: Bool[Tensor, "rows longest"]
    full: bool
    owners: Int[Tensor, "rows"] | None

    def rows(self, packed: Float[Tensor, "all heads width"]) -> Float[Tensor, "rows longest heads width"]:
        """Return this table's part of a packed tensor as rows. The values in the padding are meaningless."""
        own = packed[self.start : self.start + self.tokens]
        found = own if self.full else own.index_select(0, self.places.flatten())
        return found.unflatten(0, self.places.shape)

    def tokens_of(self, rows: Float[Tensor, "rows longest heads width"]) -> Float[Tensor, "tokens heads width"]:
        """Invert `rows`: return the tokens of this table in pack order, without padding."""
        flat = rows.flatten(0, 1)
        return flat if self.full else flat.index_select(0, self.slots)


@dataclass(frozen=True)
class Layout:
    """A pack's tables: prefixes that prompts share (if any), the prompts without these prefixes, and the completions.

    Each row continues where its owner ends. A completion's last token predicts nothing, so the completion's row leaves
    it out, and a completion of one token has no row.
    """

    tables: tuple[Table, ...]
    biases: dict[Any, Tensor] = field(default_factory=dict, repr=False, compare=False)  # filled on first use


def table_of(start: int, lengths: Sequence[int], owners: Sequence[int] | None, device: torch.device) -> Table:
    """Return the `Table` of consecutive sequences with the given lengths. The first sequence begins at `start`."""
    sizes = torch.tensor(lengths, dtype=torch.long)
    columns = torch.arange(max(lengths))
    valid = columns < sizes[:, None]
    places = torch.where(valid, (sizes.cumsum(0) - sizes)[:, None] + columns, 0)
    slots = valid.flatten().nonzero().squeeze(1)
    followed = None if owners is None else torch.tensor(owners, device=device)
    full = bool(valid.all())
    return Table(start, len(slots), places.to(device), slots.to(device), valid.to(device), full, followed)
