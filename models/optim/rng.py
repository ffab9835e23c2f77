"""A trainer's own random numbers: apart from everybody else's in the process, and part of what it goes on from."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import torch
from torch import Tensor


class RandomState:
    """Where torch's generators stand for one trainer: the CPU's, and on a GPU that device's too."""

    def __init__(self, seed: int, device: torch.device) -> None:
        self._gpus = [device] if device.type == "cuda" else []
        with torch.random.fork_rng(self._gpus, device_type="cuda"):
            torch.manual_seed(seed)
            self._states = self._standing()

    @contextmanager
    def drawing(self) -> Iterator[None]:
        """Within, torch draws this trainer's numbers; afterwards everybody else's go on as if nothing had been drawn.

        What breaks off with an error has drawn nothing: tried again, it draws the same.
        """
        with torch.random.fork_rng(self._gpus, device_type="cuda"):
            torch.set_rng_state(self._states["cpu"])
            for gpu in self._gpus:
                torch.cuda.set_rng_state(self._states["cuda"], gpu)
            yield
            self._states = self._standing()

    def tensors(self) -> dict[str, Tensor]:
        """The generators' states as bytes, by device."""
        return dict(self._states)

    def restore(self, states: Mapping[str, Tensor]) -> None:
        """Goes on from what `tensors` returned. A device without a state goes on from its seed."""
        self._states |= {device: states[device].clone() for device in self._states if device in states}

    def _standing(self) -> dict[str, Tensor]:
        states = {"cpu": torch.get_rng_state()}
        for gpu in self._gpus:
            states["cuda"] = torch.cuda.get_rng_state(gpu)
        return states
