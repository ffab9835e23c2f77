"""Convert rollouts to groups, compute their log-probabilities in packs, and convert a pack's values to rows."""

from collections import defaultdict
from collections.abc import Iterable, Sequence

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence
from transformers import PreTrainedModel

from models.packing.packing import Group, Pack, pack, split
from models.packing.self_check import LogProbs
from models.rollout import Rollout, by_context


def grouped(rollouts: Sequence[Rollout], rows: Iterable[int]) -> list[Group]:
    """Group the rollouts at the indices `rows` by problem, group number and prompt, ordered by each group's first row.

    The groups' masks mark the tokens that the policy wrote, because log-probabilities and advantages cover only these.
    """
    members: dict[tuple[str, int, tuple[int, ...]], list[int]] = defaultdict(list)
    for row in rows:
        one = rollouts[row]
        members[one.problem_id, one.group, tuple(one.prompt_token_ids)].append(row)
    return [
        Group(
            rollouts[own[0]].prompt_token_ids,
            [rollouts[row].token_ids for row in own],
            own,
            [rollouts[row].loss_mask for row in own],
        )
        for own in members.values()
    ]


def padded_rows(flat: Float[Tensor, "tokens"], packed: Pack) -> Float[Tensor, "B T"]:
    """Convert a pack's flat values, one per token to train on, to one row per completion. Rows are padded with 0."""
    return pad_sequence(list(flat.split(packed.lengths)), batch_first=True)


def rollout_logprobs(
    model: PreTrainedModel, logprobs: LogProbs, rollouts: Sequence[Rollout], budget: int, temperature: float = 1.0
) -> list[list[float]]:
    """Return the log-probabilities of each rollout's tokens, in nats, from microbatches of up to `budget` tokens.

    For a multi-turn episode, only the tokens that the policy wrote are included.
    """
    parts, places = by_context(rollouts)
    groups = grouped(parts, [part for part, rollout in enumerate(parts) if any(rollout.loss_mask)])
    found = logprobs_by_row(model, logprobs, groups, budget, temperature)
    result: list[list[float]] = [[] for _ in rollouts]
    for part, (row, _) in enumerate(places):
        result[row] += found[part].tolist() if part in found else []
    return result


@torch.no_grad()
def logprobs_by_row(
    model: PreTrainedModel, logprobs: LogProbs, groups: Sequence[Group], budget: int, temperature: float = 1.0
) -> dict[int, Float[Tensor, "T"]]:
    """Compute the log-probabilities (nats, no gradient) of each row's tokens to train on, `budget` tokens at a time."""
    found: dict[int, Tensor] = {}
    for batch in split(groups, budget):
        packed = pack(batch, model.device, temperature)
        found |= dict(zip(packed.rows, logprobs(model, packed)[0].split(packed.lengths), strict=True))
    return found
