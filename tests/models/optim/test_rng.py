"""A trainer's random numbers: its seed's own, whoever else draws, and nobody else's the fewer."""

import pytest
import torch
from torch import Tensor

from models.optim.rng import RandomState

CPU = torch.device("cpu")


def drawn(state: RandomState, count: int = 3) -> Tensor:
    with state.drawing():
        return torch.rand(count)


def seeded(seed: int, count: int) -> Tensor:
    return torch.rand(count, generator=torch.Generator().manual_seed(seed))


def test_they_are_the_seeds_own_whoever_draws_in_between() -> None:
    state = RandomState(7, CPU)
    parts = [drawn(state)]
    torch.rand(50)
    parts.append(drawn(state))
    torch.manual_seed(1)
    parts.append(drawn(state))
    assert torch.cat(parts).equal(seeded(7, 9))


def test_nobody_else_notices() -> None:
    torch.manual_seed(5)
    first = torch.rand(2)
    drawn(RandomState(7, CPU))
    assert torch.cat([first, torch.rand(2)]).equal(seeded(5, 4))


def broken_off(state: RandomState) -> None:
    with state.drawing():
        torch.rand(4)
        raise MemoryError


def test_what_broke_off_has_drawn_nothing() -> None:
    state = RandomState(7, CPU)
    drawn(state, 2)
    torch.manual_seed(5)
    with pytest.raises(MemoryError):
        broken_off(state)
    assert torch.rand(3).equal(seeded(5, 3))
    assert drawn(state).equal(seeded(7, 5)[2:])


def test_going_on() -> None:
    state, other = RandomState(7, CPU), RandomState(8, CPU)
    drawn(state)
    note = state.tensors()
    expected = drawn(state)
    assert note.keys() == {"cpu"}
    assert note["cpu"].dtype == torch.uint8
    for again in (other, state):
        again.restore(note)
        assert drawn(again).equal(expected)


def test_a_gpus_state_on_a_machine_without() -> None:
    state = RandomState(7, CPU)
    state.restore(RandomState(8, CPU).tensors() | {"cuda": torch.zeros(16, dtype=torch.uint8)})
    assert drawn(state).equal(seeded(8, 3))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_on_a_gpu() -> None:
    gpu = torch.device("cuda")

    def numbers(state: RandomState) -> Tensor:
        with state.drawing():
            return torch.rand(3, device=gpu)

    state, other = RandomState(7, gpu), RandomState(8, gpu)
    first = numbers(state)
    note = state.tensors()
    torch.rand(9, device=gpu)
    expected = numbers(state)
    assert not expected.equal(first)
    other.restore(note)
    assert numbers(other).equal(expected)
