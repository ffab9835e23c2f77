"""A trainer's random numbers: its seed's own, whoever else draws, and without effect on anybody else's."""

import pytest
import torch
from torch import Tensor

from models.optim.rng import RandomState

CPU = torch.device("cpu")
GPU = pytest.param(torch.device("cuda"), marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU"))


def drawn(state: RandomState, device: torch.device = CPU) -> Tensor:
    with state.drawing():
        return torch.rand(3, device=device)


def seeded(seed: int, count: int) -> Tensor:
    return torch.rand(count, generator=torch.Generator().manual_seed(seed))


def test_neither_the_trainer_nor_the_process_notices_the_other() -> None:
    state = RandomState(7, CPU)
    torch.manual_seed(5)
    parts, others = [], []
    for _ in range(3):
        parts.append(drawn(state))
        others.append(torch.rand(2))
    assert torch.cat(parts).equal(seeded(7, 9))
    assert torch.cat(others).equal(seeded(5, 6))


@pytest.mark.parametrize("device", [CPU, GPU])
def test_a_restored_state_continues(device: torch.device) -> None:
    state, other = RandomState(7, device), RandomState(8, device)
    drawn(state, device=device)
    saved = state.tensors()
    expected = drawn(state, device=device)
    for again in (other, state):
        again.restore(saved)
        assert drawn(again, device=device).equal(expected)
