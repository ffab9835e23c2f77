"""Microbatches and configurations for tests of the GRPO loss, drawn by Hypothesis, and the loss with its gradient."""

from collections.abc import Sequence
from typing import Any

import torch
from hypothesis import strategies as st
from torch import Tensor

from conf.schema import GrpoConfig
from models.grpo import grpo_loss, loss_denominator

AGGREGATIONS = ["token", "sequence", "constant"]
IMPORTANCES = ["token", "sequence"]
Batch = dict[str, Tensor]


@st.composite
def microbatches(draw: st.DrawFn, *, per_token: bool = False, holes: bool = False) -> Batch:
    """Healthy microbatches: completions of 1 to 6 tokens, ratios around 1.

    `per_token`: an advantage for each token; `holes`: tokens within completions that the policy did not write.
    """
    lengths = draw(st.lists(st.integers(1, 6), min_size=1, max_size=5))
    chance = torch.Generator().manual_seed(draw(st.integers(0, 2**31)))
    shape = (len(lengths), max(lengths))
    old = -3 * torch.rand(shape, generator=chance) - 0.05
    mask = torch.arange(shape[1]) < torch.tensor(lengths)[:, None]
    if holes:
        mask[:, 1:] &= torch.rand(shape, generator=chance)[:, 1:] > 0.3
    return {
        "policy": old + 0.4 * torch.randn(shape, generator=chance),
        "old": old,
        "advantages": torch.randn(shape if per_token else shape[:1], generator=chance),
        "mask": mask,
        "sampler": old + 0.1 * torch.randn(shape, generator=chance),
        "ref": old + 0.5 * torch.randn(shape, generator=chance),
    }


@st.composite
def configs(draw: st.DrawFn, **fixed: Any) -> GrpoConfig:
    """Every aggregation and importance, without and with a pull to the reference."""
    drawn = {
        "aggregation": draw(st.sampled_from(AGGREGATIONS)),
        "importance": draw(st.sampled_from(IMPORTANCES)),
        "kl_coefficient": draw(st.sampled_from([0.0, 0.1])),
    }
    return GrpoConfig(**(drawn | fixed))


def evaluate(
    batch: Batch, config: GrpoConfig, denominator: float | None = None
) -> tuple[Tensor, Tensor, dict[str, float]]:
    """A microbatch's loss, its gradient with respect to the policy's log-probabilities, and the metrics.

    The denominator is its own unless one is given. `mask` (then all tokens count), `sampler` and `ref` may be missing.
    """
    policy = batch["policy"].clone().requires_grad_()
    loss, metrics = grpo_loss(
        policy,
        batch["old"],
        batch["advantages"],
        batch.get("mask", torch.ones_like(policy, dtype=torch.bool)),
        config=config,
        denominator=own_denominator(batch, config) if denominator is None else denominator,
        sampler_logprobs=batch.get("sampler"),
        ref_logprobs=batch.get("ref"),
    )
    return loss.detach(), torch.autograd.grad(loss, policy)[0], metrics


def own_denominator(batch: Batch, config: GrpoConfig) -> float:
    """The denominator of an optimizer step on this microbatch alone."""
    return loss_denominator(batch["mask"].sum(dim=1).tolist(), config)


def rows_of(batch: Batch, rows: Sequence[int], padding: int = 0) -> Batch:
    """Some of a microbatch's completions, in the given order, with further padding on the right."""
    return {
        name: torch.nn.functional.pad(value[rows], (0, padding)) if value.dim() == 2 else value[rows]
        for name, value in batch.items()
    }
