"""A trainer's own random numbers: separate from the rest of the process, and part of its saved state."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import torch
from torch import Tensor


class RandomState:
    """The states of torch's generators for one trainer: the CPU's, and on a GPU that device's too."""

    def __init__(self, seed: int, device: torch.device) -> None:
        self._gpus = [device] if device.type == "cuda" else []
        with torch.random.fork_rng(self._gpus, device_type="cuda"):
            torch.manual_seed(seed)
            self._states = self._current()

    @contextmanager
    def drawing(self) -> Iterator[None]:
        """Make torch draw this trainer's numbers; afterwards the process's generators are as they were before.

        If the block raises, the trainer's state does not advance: a retry draws the same numbers.
        """
        with torch.random.fork_rng(self._gpus, device_type="cuda"):
            torch.set_rng_state(self._states["cpu"])
            for gpu in self._gpus:
                torch.cuda.set_rng_state(self._states["cuda"], gpu)
            yield
            self._states = self._current()

    def tensors(self) -> dict[str, Tensor]:
        """Return the generators' states as bytes, by device."""
        return dict(self._states)

    def restore(self, states: Mapping[str, Tensor]) -> None:
        """Continue from what `tensors` returned. A device without a state there keeps its seed's."""
        self._states |= {device: states[device].clone() for device in self._states if device in states}

    def _current(self) -> dict[str, Tensor]:
        states = {"cpu": torch.get_rng_state()}
        for gpu in self._gpus:
            states["cuda"] = torch.cuda.get_rng_state(gpu)
        return states
