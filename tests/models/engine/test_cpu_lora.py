"""LoRA products of a batch whose tokens have different adapters, or none."""

import pytest
import torch

from models.engine import cpu_lora


@pytest.mark.parametrize("runs", [[(0, 5)], [(1, 2), (-1, 1), (0, 2)], [(-1, 4), (1, 1)]])
def test_each_run_of_tokens_gets_its_own_adapters_product(runs: list[tuple[int, int]]) -> None:
    torch.manual_seed(0)
    inputs, down, up = torch.randn(5, 6), torch.randn(2, 1, 3, 6), torch.randn(2, 1, 4, 3)
    adapters, lengths = (torch.tensor(column) for column in zip(*runs, strict=True))
    starts = lengths.cumsum(0) - lengths
    shrunk, output = torch.full((5, 3), 7.0), torch.ones(5, 10)
    about = (len(runs), int(lengths.max()), 5)
    cpu_lora.shrink(inputs, down, shrunk, starts, lengths, adapters, *about, 0.5)
    cpu_lora.expand_slice(shrunk, up, output, starts, lengths, adapters, *about, 2, 4, True)
    owner = torch.repeat_interleave(adapters, lengths)
    for token, adapter in enumerate(owner.tolist()):
        expected = torch.ones(10)
        if adapter >= 0:
            expected[2:6] += 0.5 * up[adapter, 0] @ (down[adapter, 0] @ inputs[token])
        assert torch.allclose(output[token], expected, atol=1e-5)
