"""The arithmetic floor of an update: its indispensable matrix products, timed one by one."""

from collections.abc import Sequence
from pathlib import Path

import torch
from transformers import AutoConfig, AutoModelForCausalLM

from benchmarks.machine.gauge import DEVICE, PRECISION, now
from models.rollout import Rollout

ROWS = 2048  # of each product: more than in a microbatch, so that every product is large enough to be fast


def seconds_of_matrix_products(student: Path, rollouts: Sequence[Rollout], steps: int) -> list[float]:
    """Return the seconds of the forward and backward products of all linear layers, measured `steps` times.

    A prompt counts once per group, a completion once, and the head only for the completions' tokens. A layer has three
    products, in the update's precision: its output, the gradient of its input, and that of its weight. Attention is
    left out.
    """
    prompts = {rollout.group: len(rollout.prompt_token_ids) for rollout in rollouts}
    predicted = sum(len(rollout.token_ids) for rollout in rollouts)
    tokens = sum(prompts.values()) + predicted - len(rollouts)
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(AutoConfig.from_pretrained(student))
    head = model.get_output_embeddings()
    shapes = [
        (m.out_features, m.in_features) for m in model.modules() if isinstance(m, torch.nn.Linear) and m is not head
    ]
    return [
        sum(_rate(shape) * tokens for shape in shapes) + _rate((head.out_features, head.in_features)) * predicted
        for _ in range(steps)
    ]


def _rate(shape: tuple[int, int]) -> float:
    """Return the seconds per row of a layer's three products."""
    weight = torch.randn(shape, dtype=PRECISION, device=DEVICE)
    inputs = torch.randn(ROWS, shape[1], dtype=PRECISION, device=DEVICE)
    gradient = torch.randn(ROWS, shape[0], dtype=PRECISION, device=DEVICE)
    torch.matmul(inputs, weight.T)
    started = now()
    torch.matmul(inputs, weight.T)
    torch.matmul(gradient, weight)
    torch.matmul(gradient.T, inputs)
    return (now() - started) / ROWS
