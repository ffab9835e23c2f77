"""The arithmetic floor of an update: the matrix products that it cannot do without, timed one by one."""

import time
from collections.abc import Sequence
from pathlib import Path

import torch
from transformers import AutoConfig, AutoModelForCausalLM

from models.rollout import Rollout

ROWS = 2048  # of a product: as many tokens as go through the model at once


def seconds_of_matrix_products(student: Path, rollouts: Sequence[Rollout], steps: int) -> list[float]:
    """Seconds that forward and backward products of all linear layers take in bf16, `steps` times measured.

    Each prompt counts once a group, each completion once; the head only where a completion's token is predicted. Three
    products a layer: the output, the gradient of the input and that of the weight. Attention is left out.
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
    """Seconds a row of the three products of one layer."""
    weight = torch.randn(shape, dtype=torch.bfloat16)
    inputs = torch.randn(ROWS, shape[1], dtype=torch.bfloat16)
    gradient = torch.randn(ROWS, shape[0], dtype=torch.bfloat16)
    torch.matmul(inputs, weight.T)
    started = time.perf_counter()
    torch.matmul(inputs, weight.T)
    torch.matmul(gradient, weight)
    torch.matmul(gradient.T, inputs)
    return (time.perf_counter() - started) / ROWS
