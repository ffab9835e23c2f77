"""A trainer's random number generators, separate from the process's own and saved with the trainer's state."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import torch
from torch import Tensor


class RandomState:
    """The random generator states of one trainer: one for the CPU and, if it trains on a GPU, one for that GPU."""

    def __init__(self, seed: int, device: torch.device) -> None:
        self._gpus = [device] if device.type == "cuda" else []
        with torch.random.fork_rng(self._gpus, device_type="cuda"):
            torch.manual_seed(seed)
            self._states = self._current()

    @contextmanager
    def drawing(self) -> Iterator[None]:
        """Make torch use this trainer's generators inside the block, then restore the process's generators.

        If the block raises, the trainer's state does not advance, so a retry draws the same numbers.
        """
        with torch.random.fork_rng(self._gpus, device_type="cuda"):
            torch.set_rng_state(self._states["cpu"])
            for gpu in self._gpus:
                torch.cuda.set_rng_state(self._states["cuda"], gpu)
            yield
            self._states = self._current()

    def tensors(self) -> dict[str, Tensor]:
        """Return the generators' states as byte tensors, with the keys `cpu` and, on a GPU, `cuda`."""
        return dict(self._states)

    def restore(self, states: Mapping[str, Tensor]) -> None:
        """Restore the states that `tensors` returned. A device missing from `states` keeps its current state."""
        self._states |= {device: states[device].clone() for device in self._states if device in states}

    def _current(self) -> dict[str, Tensor]:
        states = {"cpu": torch.get_rng_state()}
        for gpu in self._gpus:
            states["cuda"] = torch.cuda.get_rng_state(gpu)
        return states
