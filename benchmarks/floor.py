"""The arithmetic floor of an update: the matrix products that it cannot do without, timed one by one."""

from collections.abc import Sequence
from pathlib import Path

import torch
from transformers import AutoConfig, AutoModelForCausalLM

from benchmarks.gauge import DEVICE, PRECISION, now
from models.rollout import Rollout

ROWS = 2048  # of a product: more than go through the model at once, so that none is too small to be fast


def seconds_of_matrix_products(student: Path, rollouts: Sequence[Rollout], steps: int) -> list[float]:
    """Seconds that forward and backward products of all linear layers take, `steps` times measured.

    Each prompt counts once a group, each completion once; the head only where a completion's token is predicted. Three
    products a layer, in the update's own precision: the output, the gradient of the input and that of the weight.
    Attention is left out.
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
    weight = torch.randn(shape, dtype=PRECISION, device=DEVICE)
    inputs = torch.randn(ROWS, shape[1], dtype=PRECISION, device=DEVICE)
    gradient = torch.randn(ROWS, shape[0], dtype=PRECISION, device=DEVICE)
    torch.matmul(inputs, weight.T)
    started = now()
    torch.matmul(inputs, weight.T)
    torch.matmul(gradient, weight)
    torch.matmul(gradient.T, inputs)
    return (now() - started) / ROWS
